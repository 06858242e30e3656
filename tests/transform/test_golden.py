"""Golden cases: one page with the program before, `// ---- after`, the program after.

The first line of a case names the pass, with its arguments as JSON: `// ConvertLayout {"desired_layouts": ...}`;
the second may say what the case shows. `--update-golden` rewrites the second half.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.values import assert_same_results

import relaylab.text  # noqa: F401
from relaylab.analysis import well_formed
from relaylab.compat.registry import register_op_attr
from relaylab.ir import IRModule, assert_structural_equal
from relaylab.transform import PASSES, PassContext, create, run_pipeline

for taken in ("add", "multiply", "nn.relu"):
    register_op_attr(taken, "target.example", True)

ROOT = Path(__file__).resolve().parents[1] / "golden" / "transform"
MARK = "// ---- after\n"
CASES = sorted(ROOT.glob("*/*.relay"))
APPROXIMATE = {"FastMath": 2e-2, "ToMixedPrecision": 2e-2}


def text_of(mod: IRModule) -> str:
    return mod.astext(True, annotate=lambda node: "")


def read(text: str) -> IRModule:
    return create("InferType")(IRModule.from_text(text))


def head_of(text: str) -> tuple[str, dict]:
    """The pass that a case tries, and its arguments."""
    name, _, rest = text.split("\n", 1)[0].removeprefix("// ").partition(" ")
    return name, json.loads(rest or "{}")


def round_trip(mod: IRModule) -> None:
    assert_structural_equal(read(text_of(mod)), create("InferType")(mod), map_free_vars=True)
    for func in mod.functions.values():
        assert well_formed(func)


@pytest.mark.parametrize("path", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_golden(path: Path, update_golden: bool) -> None:
    before_text, _, after_text = path.read_text(encoding="utf-8").partition(MARK)
    name, arguments = head_of(before_text)
    before = read(before_text)
    round_trip(before)
    level = max(4, PASSES[name].info.opt_level)
    history = run_pipeline(before, create(name, **arguments), PassContext(opt_level=level))
    if history.error is not None:
        raise history.error
    after = history.mod
    if update_golden:
        path.write_text(f"{before_text}{MARK}{text_of(after)}", encoding="utf-8")
        return
    assert text_of(after) == after_text
    round_trip(after)
    assert not [(n, type(n)) for stage in history for n in stage.unaccounted()]
    if PASSES[name].preserves:
        assert_same_results(before, after, APPROXIMATE.get(name, 1e-5), low=0.1, high=1.0)
    if PASSES[name].idempotent:
        with PassContext(opt_level=level):
            assert create(name, **arguments)(after) is after


def test_every_pass_has_golden_cases() -> None:
    tried = {head_of(p.read_text(encoding="utf-8"))[0] for p in CASES}
    assert set(PASSES) - tried <= {"InferType", "PrintIR"}
    for path in CASES:
        assert MARK in path.read_text(encoding="utf-8")


def test_each_case_lies_in_the_folder_of_its_pass() -> None:
    for path in CASES:
        name = head_of(path.read_text(encoding="utf-8"))[0]
        module = PASSES[name].factory.__module__.rpartition(".")[2]
        assert path.parent.name == module
