"""The gate of the Python API: wrong arguments of public functions give a RelayError with code, cause and remedy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import relaylab
from relaylab import relay
from relaylab.compat import install_as_tvm, uninstall_tvm
from relaylab.support import checked
from relaylab.support.errors import RelayError, RelayTypeError, shown

X = relay.var("x", shape=(2, 3))
N = relay.var("n")
MOD = relay.IRModule.from_expr(relay.Function([X], relay.nn.relu(X)))


@pytest.fixture(scope="module")
def tvm() -> Any:
    yield install_as_tvm()
    uninstall_tvm()


WRONG: dict[str, Callable[[Any], object]] = {
    "split at an expression": lambda tvm: relay.split(X, N),
    "split of nothing": lambda tvm: relay.split(X, None),
    "split at text": lambda tvm: relay.split(X, "ab"),
    "resize without size": lambda tvm: relay.image.resize1d(X, roi=(0.0, 1.0)),
    "cumprod of arrays": lambda tvm: relay.cumprod(X, exclusive=np.array([1, 2])),
    "collapse to a long number": lambda tvm: relay.collapse_sum_to(X, 10**30),
    "collapse to text": lambda tvm: relay.collapse_sum_to(X, "ab"),
    "collapse to unequal rows": lambda tvm: relay.collapse_sum_to(X, [[1], [1, 2]]),
    "a data type that is none": lambda tvm: relay.const(1, "float31"),
    "a number for a data type": lambda tvm: relay.const(1, 1),
    "a level of text": lambda tvm: tvm.transform.PassContext(opt_level="x"),
    "a configuration of numbers": lambda tvm: tvm.transform.PassContext(config=3),
    "instruments that are none": lambda tvm: tvm.transform.PassContext(instruments=3),
    "a pass for a context": lambda tvm: relay.transform.run_pipeline(MOD, "FuseOps", 3),
    "bytes for text": lambda tvm: tvm.parser.fromtext(b"def"),
    "nothing for text": lambda tvm: tvm.parser.fromtext(None),
    "nothing for an expression's text": lambda tvm: relay.parse_expr(None),
    "a module's text of bytes": lambda tvm: relay.IRModule.from_text(b"def"),
    "a library's name with a zero byte": lambda tvm: tvm.runtime.load_module("a\0b"),
    "an executor's argument of text": lambda tvm: relay.create_executor("vm", mod=MOD).evaluate()("x"),
    "the evaluator's argument of text": lambda tvm: relay.create_executor("debug", mod=MOD).evaluate()("x"),
    "an executor's module of text": lambda tvm: relay.create_executor("graph", mod="x"),
    "what an executor evaluates": lambda tvm: relay.create_executor("vm", mod=MOD).evaluate(3),
    "half a letter as a name": lambda tvm: relay.save_param_dict({"\ud800": np.ones(2)}),
    "a number as a name": lambda tvm: relay.save_param_dict({3: np.ones(2), "3": np.ones(2)}),
    "the variables of nothing": lambda tvm: relay.analysis.bound_vars(None),
    "the variables of text": lambda tvm: relay.analysis.free_vars("x"),
    "a sparse matrix that is none": lambda tvm: relay.nn.sparse_add(X, X),
    "a sparse matrix of two parts": lambda tvm: relay.nn.sparse_dense(X, [X, X]),
    "boxes of no size": lambda tvm: relay.transform.InferType()(
        relay.IRModule.from_expr(relay.vision.multibox_prior(relay.var("d", shape=(1, 3, 4, 4)), sizes=[]))
    ),
    "boxes of no ratio": lambda tvm: relay.transform.InferType()(
        relay.IRModule.from_expr(relay.vision.multibox_prior(relay.var("d", shape=(1, 3, 4, 4)), ratios=[]))
    ),
    "a loop over an expression": lambda tvm: relay.while_loop(cond=X, loop_vars=X, loop_bodies=lambda x: [x]),
    "a loop whose variables are an expression": lambda tvm: relay.while_loop(lambda x: X, X, lambda x: [x]),
    "a seed that is an expression": lambda tvm: relay.random.threefry_key(X),
    "a loop whose body is an expression": lambda tvm: relay.while_loop(lambda x: X, [X], X),
    "functions named by numbers": lambda tvm: relay.IRModule.from_expr(X, functions={3: 1}),
    "a seed of text": lambda tvm: relay.random.threefry_key("float31"),
    "a distribution of a strange type": lambda tvm: relay.random.uniform(relay.random.threefry_key(1), (3,), "float31"),
    "windows of text": lambda tvm: relay.nn.conv2d(X, X, padding="same"),
    "windows of an expression": lambda tvm: relay.nn.max_pool2d(X, pool_size=X),
    "an attribute of many digits": lambda tvm: relay.nn.dense(X, X, units=10**5000),
    "a function attribute of many digits": lambda tvm: relay.Function([X], X, attrs={"a": 10**5000}),
    "attributes that are none": lambda tvm: relay.Function([X], X, attrs=[1]),
    "a span that is none": lambda tvm: relay.Tuple([X], span=3),
    "a field of infinity": lambda tvm: relay.TupleGetItem(X, float("inf")),
    "a kind that is none": lambda tvm: relay.TypeVar("a", 77),
    "an instrument of a final class": lambda tvm: relay.transform.pass_instrument(bool),
    "patterns that are an array": lambda tvm: relay.PatternTuple(np.array([1, 2])),
    "a shape that is none": lambda tvm: relay.TensorType(3),
    "a list that is a number": lambda tvm: relay.Tuple(np.array(3)),
    "an expression that is a base": lambda tvm: relay.transform.InferType()(relay.IRModule.from_expr(relay.Expr())),
    "types within types": lambda tvm: relay.TupleType([3]),
    "an argument too many": lambda tvm: relay.const(1, "int8", 3),
    "an argument too few": lambda tvm: relay.var(),
    "an unknown argument": lambda tvm: relay.var("x", shap=(1,)),
    "an argument twice": lambda tvm: relay.var("x", name_hint="y"),
    "a pattern of text": lambda tvm: relay.dataflow_pattern.wildcard().has_attr("x"),
    "patterns matched with text": lambda tvm: relay.dataflow_pattern.wildcard().match("x"),
    "rewriting without callbacks": lambda tvm: relay.dataflow_pattern.rewrite(3, X),
    "an array's contents": lambda tvm: tvm.nd.array(np.ones(2)).copyfrom(np.array(["a", "b"])),
    "a device of text": lambda tvm: tvm.nd.array([1.0], device="cpu"),
    "an executor by number": lambda tvm: relay.backend.Executor(3),
    "a target of numbers": lambda tvm: tvm.target.Target(3),
    "building text": lambda tvm: relay.build("x"),
    "parameters of a build": lambda tvm: relay.build(MOD, "llvm", params=[1]),
    "an array larger than memory": lambda tvm: relay.create_executor(
        "graph", mod=relay.IRModule.from_expr(relay.ones((2**63 - 1, 0, 7), "float64"))
    ).evaluate()(),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_a_relay_error(tvm: Any, case: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RelayError) as caught:
        WRONG[case](tvm)
    assert caught.value.code and caught.value.message and len(str(caught.value)) < 2000


def test_a_library_is_not_written_under_a_name_with_a_zero_byte(tvm: Any) -> None:
    with pytest.raises(RelayError):
        relay.build(MOD, "llvm").export_library("a\0b")


def test_the_error_says_function_parameter_and_signature() -> None:
    with pytest.raises(RelayTypeError) as caught:
        relay.bind(3, {})
    assert str(caught.value) == (
        "error[call.wrong-kind]: bind: `expr` must be an expression, not 3\n  help: it is called as bind(expr, binds)"
    )


def test_every_gate_can_read_its_annotations(tvm: Any) -> None:
    for module in (relay, relay.analysis, relay.transform, relay.dataflow_pattern, relay.testing, tvm.runtime, tvm.nd):
        for name in dir(module):
            getattr(module, name, None)
    assert len(checked.CHECKED) > 200
    for function in checked.CHECKED:
        assert checked.Gate(function).name


@pytest.mark.parametrize(
    ("hint", "right", "wrong"),
    [
        (int, [1, np.int64(3), 10**30], [True, 1.0, "1", None]),
        (float, [1, 1.5, np.float32(2)], [True, "1", 1j]),
        (bool, [True, 0, np.True_], [2, None, "True"]),
        (str | None, ["", None], [b"", 3]),
        (tuple[int, ...], [(), (1, 2), [1], np.array([1]), range(2)], ["12", (1.5,), 3, np.array(3)]),
        (dict[str, int], [{}, {"a": 1}], [{1: 1}, {"a": "b"}, []]),
        (tuple[str, int], [("a", 1), ["a", 1]], [("a",), (1, "a"), "a1"]),
        (Sequence[str], [[], np.array(["a"]), np.zeros(0, "U1")], [np.zeros((0, 3)), np.array([1])]),
        (Callable[[int], int], [len, int, relay.transform.FoldConstant()], [3, "len", lambda: 1, lambda a, b: a]),
        (Callable[[int, int], int], [max, lambda *args: 1], [relay.transform.FoldConstant(), lambda a: a]),
        (object, [None, 3], []),
        (relay.Expr, [X], [3, relay.Expr]),
    ],
)
def test_what_annotations_take(hint: Any, right: list[object], wrong: list[object]) -> None:
    test, words = checked.meaning(hint)
    assert words and all(map(test, right)) and not any(map(test, wrong))


def test_half_a_letter_has_a_hash() -> None:
    assert relay.structural_hash({"\ud800": 1}) != relay.structural_hash({"\ud801": 1})


def test_values_in_words() -> None:
    assert [shown(v) for v in (3, "a", [1, 2], None, object(), 10**5000, MOD)] == [
        "3", "'a'", "[1, 2]", "None", "an object", "an int of too many digits", "an IRModule"
    ]  # fmt: skip
    assert (
        shown([relay.Expr, MOD, MOD, 3]) == "a list of the class Expr, an IRModule, 3"
        and shown((X,)) == "a tuple of a Var"
    )
    assert len(shown("x" * 500)) < 70 and len(shown([1] * 10**6)) < 70


def test_of_a_list_the_error_says_what_is_wrong_in_it() -> None:
    with pytest.raises(
        RelayTypeError, match="a list of Passes or None, not a list of an InferType, the class FoldConst"
    ):
        relay.transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant])
    with pytest.raises(RelayTypeError, match="expected an expression, not an int"):
        relay.concatenate([X, 3], 0)


def test_the_gate_does_not_change_what_functions_are() -> None:
    import inspect

    assert relay.var.__doc__ == relaylab.ir.var.__doc__ and relay.var.__module__ == "relaylab.ir.leaves"
    assert inspect.signature(relay.var) == inspect.signature(relaylab.ir.var)
    assert relay.transform.gradient is relay.transform.gradient
    assert random.Random(0) and relay.expr.const is relay.const


def test_a_refused_call_is_told_once():
    """Python told it twice, with "During handling of the above exception, another exception occurred"."""
    with pytest.raises(RelayError) as error:
        relay.var("x", shape=(2, 3), typo=1)
    assert error.value.__context__ is None
