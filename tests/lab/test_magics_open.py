"""Magics over what the virtual machine runs: open sizes, control flow, sizes that data decides."""

import numpy as np
import pytest

from relaylab import study

pytestmark = pytest.mark.slow

OPEN = "def @main(%x: Tensor[(n, 3), float32]) { nn.softmax(nn.relu(%x)) }"


def test_an_open_program_is_built_run_measured_and_looked_at(cell, ip):
    cell(f"%%relay -o rows\n{OPEN}")
    ip.user_ns["x"] = np.ones((5, 3), "float32")
    assert "specializations" in cell("%relay_build rows -o exe").out
    np.testing.assert_allclose(cell("%relay_run exe x=x").result, np.full((5, 3), 1 / 3), rtol=1e-6)
    profiled = cell("%relay_profile exe x=x -n 2 --hot 1").out
    assert "1. tvmgen_open_fused" in profiled and "fn (%p0: Tensor[(n, 3), float32]" in profiled
    for line in ("%relay_asm exe", "%relay_asm rows"):
        assert "for all sizes, figures for n" in cell(line).out
    listing = cell("%relay_asm exe softmax --stage all").out
    assert "sizes say how many items" in listing and "define " in listing and "know their Relay nodes" in listing
    assert "loop" in str(cell("%relay_asm exe softmax --picture").result)
    assert "sroa" in cell("%relay_asm exe softmax --llvm-passes").out
    assert "@main for the virtual machine" in repr(ip.user_ns["exe"])


def test_sizes_stand_behind_the_name_of_a_program(cell, ip):
    """What asks for numbers takes them as files do, and says them."""
    cell(f"%%relay -o rows\n{OPEN}")
    assert "tvmgen_default_fused" in cell("%relay_profile rows:n=5 -n 2").out
    assert "define" in cell("%relay_asm rows:x=5x3 softmax --stage llvm").out
    assert "error" in cell("%%relay_schedule rows:n=5 softmax\nsplit i0 2").out
    told = study.load(ip.user_ns["rows"], {"n": 5})
    assert "[n=5]" in str(study.sweep(study.cells([told], measures=["counts"])))
    assert study.roofline(told, repeat=1).title == "module[n=5]: kernels under the roof"
    for line, words in (
        ("%relay_profile rows:m=5", "no open size and no input `m`"),
        ("%relay_profile rows:n=", "`n=` is no size"),
        ("%%relay_schedule rows softmax\nsplit i0 2", "say sizes behind the name, as in"),
    ):
        assert words in str(cell(line).error_in_exec), line


def test_a_mistake_is_one_line(cell, ip):
    cell(f"%%relay -o rows\n{OPEN}")
    cell("%relay_build rows -o exe -q")
    for line, words in (
        ("%relay_run exe xx=[[1,2,3]]", "did you mean `x`"),
        ("%relay_asm exe dense", "there is no kernel `dense`"),
        ("%relay_run exe x=[[[1.0]]]", "asks for Tensor[(n, 3), float32]"),
        ("%relay_profile exe -n 2", "the input `x` has open sizes"),
    ):
        assert words in str(cell(line).error_in_exec), line
