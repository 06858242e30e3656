"""Passes are declared: options with types, checked when the pass is made; text and its inverse; equality by value."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest

from relaylab import relay, transform
from relaylab.ir import IRModule
from relaylab.support.errors import RelayAttributeError, RelayError, RelayTypeError, RelayValueError
from relaylab.transform import PASSES, FunctionPass, ModulePass, default_passes, parse_pass, pass_
from relaylab.transform.engine.options import REQUIRED


@pytest.fixture
def many():
    @pass_(level=2, requires=["InferType"], idempotent=True, preserves=False, example={"names": ["a"]})
    class ManyOptions(FunctionPass):
        """Has an option of every type.

        And more to say.
        """

        names: Annotated[Sequence[str], "Some names."]
        flag: bool = False
        size: int = 1
        share: float = 0.5
        table: Mapping[str, Sequence[int]] | None = None
        other: object = None
        counted: ClassVar[int] = 0

        def run(self, func, mod, ctx):
            return func

    yield ManyOptions
    PASSES.remove("ManyOptions")


def test_options_are_records(many):
    entry = PASSES["ManyOptions"]
    assert [(o.name, o.type, o.default) for o in entry.options] == [
        ("names", "Sequence[str]", REQUIRED),
        ("flag", "bool", False),
        ("size", "int", 1),
        ("share", "float", 0.5),
        ("table", "Mapping[str, Sequence[int]] | None", None),
        ("other", "object", None),
    ]
    assert entry.options[0].doc == "Some names." and entry.summary == "Has an option of every type."
    assert (entry.info.opt_level, entry.info.required) == (2, ("InferType",))
    assert entry.idempotent and not entry.preserves and repr(entry.make()) == "ManyOptions(names=['a'])"
    assert list(inspect.signature(many).parameters) == [o.name for o in entry.options]


@pytest.mark.parametrize(
    "args, options, words",
    [
        ((), {}, "`names` of ManyOptions must be given"),
        (("ab",), {}, "`names` of ManyOptions is Sequence[str], not 'ab'"),
        (([1],), {}, "`names` of ManyOptions is Sequence[str], not [1]"),
        ((["a"],), {"flag": "no"}, "`flag` of ManyOptions is bool, not 'no'"),
        ((["a"],), {"flag": 2}, "`flag` of ManyOptions is bool, not 2"),
        ((["a"],), {"size": 2.7}, "`size` of ManyOptions is int, not 2.7"),
        ((["a"],), {"size": True}, "`size` of ManyOptions is int, not True"),
        ((["a"],), {"share": "abc"}, "`share` of ManyOptions is float, not 'abc'"),
        ((["a"],), {"share": 10**400}, "`share` of ManyOptions is float, not 1000"),
        ((["a"],), {"table": {1: [2]}}, "`table` of ManyOptions is Mapping[str, Sequence[int]] | None, not {1: [2]}"),
        ((["a"],), {"sise": 2}, "did you mean `size`?"),
        ((["a"], False), {"flag": True}, "`flag` of ManyOptions is given twice"),
        ((["a"], False, 1, 1.0, None, None, 3), {}, "has 6 options, not 7"),
    ],
)
def test_options_are_checked_when_the_pass_is_made(many, args, options, words):
    with pytest.raises(RelayTypeError) as error:
        many(*args, **options)
    assert words in str(error.value)


def test_values_are_held_as_they_are_declared(many):
    names, table = ["a"], {"b": [1]}
    made = many(names, 1, np.int64(3), 2, table)
    assert (made.names, made.flag, made.size, made.share) == (("a",), True, 3, 2.0)
    names.append("b")
    table["b"].append(2)
    assert repr(made) == "ManyOptions(names=['a'], flag=True, size=3, share=2.0, table={'b': [1]})"
    with pytest.raises(RelayAttributeError, match="cannot be changed"):
        made.size = 4
    with pytest.raises(RelayAttributeError, match="cannot be changed"):
        del made.size


def test_text_and_pass_are_inverse(many):
    made = [many(["a", "it's"], share=float("inf"), table={"x": (1, 2)}), many([], True, -3)]
    made += [e.make() for e in PASSES.values() if e.name != "ManyOptions"]
    made += default_passes(4) + default_passes(4, vm=True)
    for p in made:
        again = parse_pass(repr(p))
        assert again == p and hash(again) == hash(p) and repr(again) == repr(p) and again.info == p.info


def test_equal_are_passes_with_equal_options(many):
    assert many(["a"]) == many(("a",), size=1) and many(["a"]) != many(["a"], size=2)
    assert many(["a"], other=1) != many(["a"], other=True) and many(["a"], other=1) != many(["a"], other=1.0)
    array = np.zeros(3)
    assert many(["a"], other=array) == many(["a"], other=array) != many(["a"], other=np.zeros(3))
    assert len({relay.transform.FoldConstant(), relay.transform.FoldConstant(True), parse_pass("FoldConstant")}) == 2
    assert relay.transform.FoldConstant() != relay.transform.FuseOps()


@pytest.mark.parametrize("text", ["FuseOps(", "FuseOps(x)", "FuseOps(**{})(1)", "1", "(lambda: 1)()", "F(<skip>)"])
def test_what_is_no_pass_is_refused_and_nothing_is_evaluated(text):
    with pytest.raises(RelayError, match="is not a pass"):
        parse_pass(text)


def test_tvm_prints_what_it_printed():
    assert str(relay.transform.FoldConstant()) == "Run FunctionPass pass: FoldConstant at the optimization level 2"
    assert str(relay.transform.FoldScaleAxis()) == "Run Sequential pass: FoldScaleAxis at the optimization level 0"
    assert str(relay.transform.Inline()) == "Run ModulePass pass: InlineGlobals at the optimization level 1"
    by_hand = relay.transform.function_pass(lambda func, mod, ctx: func, opt_level=1, name="Mine")
    assert str(by_hand) == repr(by_hand) == "Run FunctionPass pass: Mine at the optimization level 1"


def test_a_class_without_a_base_gets_the_one_that_its_run_calls_for():
    @pass_(level=1)
    class OnModules:
        def run(self, mod, ctx):
            return mod

    try:
        assert isinstance(OnModules(), ModulePass) and OnModules()(mod := IRModule()) is mod
    finally:
        PASSES.remove("OnModules")


@pytest.mark.parametrize(
    "body, words",
    [
        ({}, "needs a method `run`"),
        ({"run": lambda self, func: func}, "it is called with (self, func, mod, ctx)"),
        ({"run": lambda self, mod, ctx: mod, "__annotations__": {"info": int}}, "every pass has"),
        ({"run": lambda self, mod, ctx: mod, "__annotations__": {"n": "Unheard"}}, "types that are not known"),
        ({"run": lambda self, mod, ctx: mod, "__annotations__": {"n": int}, "n": "x"}, "`n` is int, not 'x'"),
    ],
)
def test_wrong_declarations_are_refused(body, words):
    with pytest.raises(RelayTypeError) as error:
        pass_(level=0)(type("Wrong", (), {"__module__": __name__, **body}))
    assert words in str(error.value) and "Wrong" not in PASSES


def test_a_name_that_is_taken_needs_replace():
    with pytest.raises(RelayValueError, match="exists already"):

        @pass_(level=0)
        class FoldConstant:
            def run(self, func, mod, ctx):
                return func


def test_every_option_of_ours_has_a_sentence():
    silent = [f"{e.name}.{o.name}" for e in PASSES.values() for o in e.options if not o.doc.endswith((".", "?"))]
    assert not silent


def test_the_face_publishes_what_it_lists(update_golden):
    names = dir(transform)
    golden = Path(__file__).resolve().parents[1] / "golden" / "faces" / "transform.txt"
    if update_golden:
        golden.write_text("\n".join(names) + "\n", encoding="utf-8")
    assert names == sorted(transform.__all__) == golden.read_text(encoding="utf-8").split()
    assert not [n for n in names if inspect.ismodule(getattr(transform, n))]
    assert set(PASSES) <= set(names)
