"""The debug executor: per-node times, dumped outputs, trace and graph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny

from relaylab.runtime import cpu, debug_executor, load_param_dict
from relaylab.support.errors import RelayValueError


def test_run_dumps_and_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lib = tiny.factory()
    module = debug_executor.create(lib.get_graph_json(), lib, cpu(0), dump_root=tmp_path)
    x = np.random.default_rng(0).normal(size=tiny.SIZE).astype("float32")
    module.run(number=1, min_repeat_ms=0, x=x)
    assert "tvmgen_default_fused_affine" in capsys.readouterr().out
    folder = tmp_path / "_tvmdbg_device_CPU_0"
    outputs = load_param_dict((folder / "output_tensors.params").read_bytes())
    np.testing.assert_allclose(outputs["tvmgen_default_fused_affine____0"].numpy(), tiny.expected(x), rtol=1e-6)
    assert len(json.loads((folder / "_tvmdbg_execution_trace.json").read_text())["traceEvents"]) == 2
    assert json.loads((folder / "_tvmdbg_graph_dump.json").read_text()) == json.loads(tiny.graph())
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)


def test_single_nodes() -> None:
    lib = tiny.factory()
    module = debug_executor.GraphModuleDebug(lib["debug_create"]("default", cpu(0)), [cpu(0)], lib.get_graph_json())
    times = module.run_individual(number=2)
    assert times[:2] == [0.0, 0.0] and all(t > 0 for t in times[2:])
    assert module.run_individual_node(3, number=1).mean > 0
    with pytest.raises(RelayValueError):
        module.run_individual_node(0)
    assert module.dump_path.exists()
    module.exit()
    assert not module.dump_path.exists()
