"""What the reference implementation answered: types and results of its small programs, numbers of its networks."""

from __future__ import annotations


import numpy as np
import pytest
from support.recorded import recorded

import relaylab.op  # noqa: F401
from relaylab.analysis import get_total_mac_number, infer_module, list_op_freqs
from relaylab.interp import Interpreter
from relaylab.ir import assert_structural_equal, type_text
from relaylab.text import parse

PROGRAMS = "adt closure closure_graph constfold conv cse dead ifscope parallel_conv poly recur share tuple".split()
NETWORKS = "mlp dqn lstm synthetic dcgan".split()


def agrees(value, answer) -> None:
    if isinstance(answer, list):
        assert isinstance(value, tuple) and len(value) == len(answer)
        for v, a in zip(value, answer):
            agrees(v, a)
        return
    assert list(value.shape) == answer["shape"] and value.dtype.name == answer["dtype"]
    np.testing.assert_allclose(value.ravel()[: len(answer["v"])], answer["v"], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_types(name: str) -> None:
    sample = recorded("program", name)
    found, expected = infer_module(parse(sample["src"])), parse(sample["typed"])
    assert_structural_equal(found, infer_module(expected), map_free_vars=True)
    for gv, func in expected.functions.items():
        stated = func.annotated_type()
        assert stated is not None and type_text(found[gv.name_hint].checked_type) == type_text(stated)


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str) -> None:
    sample = recorded("program", name)
    inputs = [np.array(i["v"], i["dtype"]).reshape(i["shape"]) for i in sample["inputs"]]
    agrees(Interpreter(infer_module(parse(sample["src"]))).evaluate()(*inputs), sample["debug"])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    sample = recorded("network", name)
    mod = infer_module(parse(sample["text"]))
    assert get_total_mac_number(mod["main"]) == sample["macs"]
    assert list_op_freqs(mod) == {k: n for k, n in sample["hist"].items() if k[0] != "<" and k != "Function"}
