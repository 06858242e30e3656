"""Text as TVM 0.6 to 0.16 print it, one file for each thing that once was refused; constants without data."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Constant, walk
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.text import ParseWarning

PRINTED = sorted((Path(__file__).parents[1] / "data" / "printed").glob("*.relay"))
WITHOUT_DATA = {"conv_bn_relu_fused": 2, "partitioned": 1, "quantized": 4, "virtual_machine": 1}
HOLE = "fn (%x: Tensor[(2, 3), float32]) { nn.dense(%x, meta[relay.Constant][7] /* ty=Tensor[(4, 3), float32] */) }"


@pytest.mark.parametrize("path", PRINTED, ids=lambda p: p.stem)
def test_it_is_read_as_it_stands_and_equals_its_own_text(path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mod = relay.parse(path.read_text(encoding="utf-8"), path.name)
    lacking = WITHOUT_DATA.get(path.stem, 0)
    assert [f"no data for {lacking} constant" in str(w.message) for w in caught] == [True] * bool(lacking)
    holes = {p.name_hint for gv in mod.functions for p in mod[gv].params if p.name_hint.startswith("constant_")}
    assert len(holes) == lacking
    again = relay.parse(mod.astext())
    if path.stem != "unknown_dimensions":  # a size of unknown value equals only itself
        relay.assert_structural_equal(mod, again)
    assert again.astext() == mod.astext() and mod["main"].checked_type


@pytest.mark.parametrize("stem", [p.stem for p in PRINTED if p.stem not in ("virtual_machine", "unknown_dimensions")])
def test_it_runs_with_constants_drawn_from_a_seed(stem: str) -> None:
    text = next(p for p in PRINTED if p.stem == stem).read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mod, same, other = (relay.parse(text, fill=seed) for seed in (3, 3, 4))
    relay.assert_structural_equal(mod, same)
    if WITHOUT_DATA.get(stem):
        assert not relay.structural_equal(mod, other)
        assert any(isinstance(n, Constant) and n.data.ndim for f in mod.functions.values() for n in walk((f,)))
    rng = np.random.default_rng(0)
    args = [rng.random(p.checked_type.concrete_shape).astype(p.checked_type.dtype) for p in mod["main"].params]
    kind = "debug" if stem == "data_types" else "vm"
    found, expected = (relay.create_executor(k, mod).evaluate()(*args) for k in (kind, "debug"))
    for a, b in zip(*(v if isinstance(v, (tuple, list)) or hasattr(v, "fields") else (v,) for v in (found, expected))):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_numbers_hold_within_a_function() -> None:
    mod = relay.parse(next(p for p in PRINTED if p.stem == "two_functions_same_numbers").read_text())
    assert float(relay.create_executor("debug", mod).evaluate()(5.0).numpy()) == (5 + 2) - ((5 + 2) * 2 + 3)


def test_a_dot_is_part_of_a_name_if_there_is_such_a_name_and_else_takes_a_field() -> None:
    x, y = (
        relay.var("x", relay.TupleType([relay.scalar_type("int32"), relay.scalar_type("float32")])),
        relay.var("x.1", shape=(2,)),
    )
    mod = relay.IRModule.from_expr(relay.Function([x, y], relay.Tuple([relay.TupleGetItem(x, 1), y])))
    assert "(%x).1" in str(mod)
    relay.assert_structural_equal(relay.parse(mod.astext()), relay.transform.InferType()(mod))
    assert [p.name_hint for p in relay.parse(mod.astext())["main"].params] == ["x", "x.1"]
    plain = relay.parse("fn (%x: (int32, (int32, float32))) { %x.1.1 }")
    assert plain["main"].ret_type == relay.scalar_type("float32")
    for text, words in (
        ("fn (%x: (int32,)) { %y.0 }", "%y is not bound"),
        ("fn (%x: (int32,)) { %x.a }", "not the number"),
    ):
        with pytest.raises(DiagnosticError, match=words):
            relay.parse(text)


def test_constants_without_data_are_parameters_of_every_function_that_needs_them() -> None:
    text = (
        "def @f(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][1] /* ty=Tensor[(2), float32] */) }\n"
        "def @g(%x: Tensor[(2), float32]) { @f(%x) }\n"
        "def @main(%x: Tensor[(2), float32]) { add(@g(%x), meta[relay.Constant][0] /* ty=float32 */) }"
    )
    with pytest.warns(ParseWarning, match="parameters"):
        mod = relay.parse(text)
    assert [[p.name_hint for p in mod[n].params] for n in "fg"] == [["x", "constant_1"]] * 2
    assert [p.name_hint for p in mod["main"].params] == ["x", "constant_0", "constant_1"]
    ones = np.ones(2, "float32")
    assert relay.create_executor("debug", mod).evaluate()(ones, np.float32(2), 4 * ones).numpy().tolist() == [7, 7]


def test_a_constant_without_data_has_the_type_in_its_comment_or_the_inferred_one() -> None:
    with pytest.warns(ParseWarning):
        main = relay.parse(HOLE)["main"]
    assert str(main.params[1].checked_type) == "Tensor[(4, 3), float32]"
    with pytest.warns(ParseWarning):
        main = relay.parse("fn (%x: Tensor[(1, 3, 8, 8), float32]) { nn.bias_add(%x, meta[relay.Constant][0]) }")[
            "main"
        ]
    assert str(main.params[1].checked_type) == "Tensor[(3), float32]"
    for text, words in (
        ("fn (%x: int32) { (%x, meta[relay.Constant][0]) }", "cannot be inferred"),
        ("fn () { meta[relay.Constant][0] /* ty=Tensor[(?), float32] */ }", "not known"),
    ):
        with pytest.raises(RelayError, match=words) as caught:
            relay.parse(text, fill=0)
        assert "ty=Tensor" in caught.value.help


def test_a_fused_function_gets_its_constants_as_parameters() -> None:
    text = (
        "fn (%x: Tensor[(2), float32]) { %0 = fn (%p: Tensor[(2), float32], Primitive=1) { "
        "add(%p, meta[relay.Constant][0] /* ty=Tensor[(2), float32] */) }; add(%0(%x), %0(%x)) }"
    )
    with pytest.warns(ParseWarning):
        mod = relay.parse(text)
    ones = np.ones(2, "float32")
    for kind in ("graph", "vm", "debug"):
        assert relay.create_executor(kind, mod).evaluate()(ones, 2 * ones).numpy().tolist() == [6, 6]


def test_what_lies_below_relay_is_named() -> None:
    with pytest.raises(DiagnosticError, match="this is TIR"):
        relay.parse("@fused_add = primfn(x: handle) -> ()")


def test_a_function_that_lacks_constants_cannot_be_a_value() -> None:
    with pytest.raises(DiagnosticError, match="@f is a value here") as caught:
        relay.parse(f"def @f{HOLE[3:]}\ndef @main() {{ @f }}")
    assert "astext()" in str(caught.value)


# what documentation writes, the place, and the edit that is asked for
PSEUDO = [
    ("data Numbers {\n  Empty : () -> Numbers\n  Pair : (int32, int32) -> Numbers\n}", "1:1",
     "type Numbers { Empty, Pair(int32, int32) }"),
    ("data List[A] { Nil, Cons(A, List[A]) }", "1:1", "type List[A] { Nil, Cons(A, List[A]) }"),
    ("type P { Pair(int32, int32) }\ndef @f(%p: P) {\n match (%p) {\n  case Pair(x, y) { x + y } } }", "4:3",
     "Pair(%x, %y) => { … },"),
    ("def @f(%x: float32) {\n  %1 = exp(%x)\n  %1\n}", "2:14", "every binding ends with `;`"),
    ("def @f(%x: float32) {\n  let %y = exp(%x)\n  %y\n}", "2:18", "expected `;` at the end of this line"),
    ("def @f(%x: float32) { mul(%x, %x) }", "1:23", "write `multiply` for `mul`"),
    ("def @f(%x: float32) { sub(%x, %x) }", "1:23", "write `subtract` for `sub`"),
    ("def @f(%x: Tensor[(1, 2), float32]) { softmax(%x) }", "1:39", "write `nn.softmax` for `softmax`"),
    ("# a function\ndef @f() { 1 }", "1:1", "write `//`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "edit"), PSEUDO)
def test_the_syntax_of_documentation_is_answered_with_the_edit(text: str, place: str, edit: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        relay.parse(text)
    errors = caught.value.diagnostics or (caught.value,)
    assert len(errors) == 1 and f"from_string:{place}" in str(errors[0]) and edit in str(errors[0]), caught.value


# calls as TVM 0.6 to 0.9 print them, and as they are written now; %x: Tensor[(1, 8, 16, 16), float32]
OLDER = [
    ("strided_slice(%x, begin=[0, 0], end=[1, 2], strides=[1, 1])",
     "strided_slice(%x, begin=[0, 0], end=[1, 2], strides=[1, 1], axes=None)"),
    ("strided_slice(%x, begin=[0], end=[1])", "strided_slice(%x, begin=[0], end=[1], strides=None, axes=None)"),
    ("nn.pad(%x, pad_value=2f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])",
     "nn.pad(%x, 2f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"),
    ("on_device(%x, device_type=1, is_fixed=True)", "on_device(%x, virtual_device=1, constrain_result=True)"),
    ("device_copy(%x, src_dev_type=1, dst_dev_type=2)",
     "device_copy(%x, src_virtual_device=1, dst_virtual_device=2)"),
    ("reshape(%x, newshape=[1, -1], reverse=False)", "reshape(%x, newshape=[1, -1])"),
    ("contrib.adaptive_avg_pool2d(%x, output_size=[1, 1])", "nn.adaptive_avg_pool2d(%x, output_size=[1, 1])"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), OLDER)
def test_attributes_of_older_releases(old: str, new: str) -> None:
    mods = [relay.parse(f"fn (%x: Tensor[(1, 8, 16, 16), float32]) {{ {call} }}") for call in (old, new)]
    relay.assert_structural_equal(*mods)


def test_an_attribute_that_would_change_the_meaning_is_not_dropped() -> None:
    with pytest.raises(DiagnosticError, match="no attribute `reverse`"):
        relay.parse("fn (%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[3, -1], reverse=True) }")
