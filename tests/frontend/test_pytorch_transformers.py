"""Models as libraries of transformers and of diffusion write them: they come in, agree with torch, say their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
import pytorch_transformers
from pytorch_tools import agree, compare, run, torch, wanted
from pytorch_transformers import LINES, MODELS

from relaylab import relay

SOURCE = Path(pytorch_transformers.__file__)


@pytest.mark.parametrize("name", MODELS)
def test_models_agree_and_name_their_lines(name: str) -> None:
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    mod, _ = agree(model, *inputs, executor="graph", tolerance=1e-4)
    found: set[tuple[str, str, int]] = set()

    def look(e) -> None:
        if isinstance(e, relay.Call):
            place, line, _ = str(e.span).rsplit(":", 2)
            found.add((e.op.name, place, int(line)))

    relay.analysis.post_order_visit(mod["main"], look)
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    assert all(place.endswith(SOURCE.name) and 0 < line <= len(lines) for _, place, line in found)
    for op, module, text in LINES[name]:
        there = [(p, lines[k - 1]) for o, p, k in found if o == op]
        assert any(p.startswith(module) and (" at " in p) == bool(module) and text in t for p, t in there), (op, there)


def test_a_cache_of_any_length() -> None:
    torch.manual_seed(0)
    model, inputs = MODELS["decoder"]()
    free = torch.export.Dim.AUTO
    mod, params = agree(model, *inputs, executor="vm", dynamic=({}, {1: free}, {2: free}, {2: free}))
    (past,) = (p.type_annotation.shape[2] for p in mod["main"].params if p.name_hint == "keys")
    assert [t.shape[2] for t in mod["main"].ret_type.fields[1:]] == [past + 3] * 2
    longer = (inputs[0], torch.ones(2, 14, dtype=torch.int64), *(torch.randn(2, 2, 11, 8) for _ in range(2)))
    compare(run(mod, params, longer, "vm"), wanted(model, longer), 1e-4)
