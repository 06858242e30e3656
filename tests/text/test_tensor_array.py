"""Tensor arrays of the prelude: every function in the interpreter and the virtual machine, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Expr, IRModule
from relaylab.relay.prelude import Prelude, StaticTensorArrayOps, get_tensor_array_shape
from relaylab.support.errors import RelayError

X = np.arange(12, dtype="float32").reshape(4, 3)


def arrays(value: object) -> object:
    """A value of evaluation as arrays and lists of arrays."""
    name = value.constructor.name_hint
    if name in ("Cons", "Nil"):
        out = []
        while value.constructor.name_hint == "Cons":
            out.append(arrays(value.fields[0]))
            value = value.fields[1]
        return out
    return value.fields[0].numpy() if value.fields else None


def run(prelude: Prelude, body: Expr, kind: str = "debug", **inputs: object) -> object:
    mod = IRModule(dict(prelude.mod.functions), dict(prelude.mod.type_definitions))
    mod["main"] = relay.Function(relay.analysis.free_vars(body), body)
    found = relay.create_executor(kind, relay.transform.InferType()(mod)).evaluate()(**inputs)
    return arrays(found) if hasattr(found, "constructor") else found.numpy()


def same(found: object, expected: object) -> None:
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            same(a, b)
    elif expected is None:
        assert found is None
    else:
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


INDICES = relay.const(np.array([2, 0], "int32"))
SIZES = relay.const(np.array([3, 1], "int32"))


def dynamic(p: Prelude, dtype: str) -> dict[str, tuple[Expr, object]]:
    f = lambda name: p.get_global_var(name, dtype)
    t = lambda k: p.get_tensor_ctor(f"tensor{k}", dtype)
    v, x = relay.var("v", shape=X.shape, dtype=dtype), X.astype(dtype)
    rows, two = f("tensor_array_unstack_tensor2")(v), relay.const(2)
    more = f("tensor_array_unstack_tensor2")(relay.const(np.full((2, 3), 7, dtype)))
    pieces = f("tensor_array_split")(f("tensor_array")(two), t(2)(v), SIZES)
    scattered = x.copy()
    scattered[[2, 0]] = 7
    return {
        "create": (f("tensor_array")(two), [None, None]),
        "read": (f("tensor_array_read")(rows, two), x[2]),
        "write": (f("tensor_array_write")(rows, two, t(2)(v)), [x[0], x[1], x, x[3]]),
        "unstack": (rows, list(x)),
        "unstack of rank 1": (f("tensor_array_unstack_tensor1")(relay.take(v, two, axis=0)), list(x[2])),
        "stack": (f("tensor_array_stack")(rows), x),
        "gather": (f("tensor_array_gather")(rows, INDICES), x[[2, 0]]),
        "scatter": (f("tensor_array_scatter")(rows, INDICES, more), list(scattered)),
        "split": (pieces, [x[:3], x[3:]]),
        "concat": (f("tensor_array_concat")(pieces), x),
        "take": (f("tensor_take")(t(2)(v), relay.const(1), relay.const(3)), x[1:3]),
        "expand_dims": (f("tensor_expand_dims")(t(2)(v)), x[None]),
        "concatenate": (f("tensor_concatenate")(t(2)(v), t(2)(v)), np.concatenate([x, x])),
    }


@pytest.mark.parametrize("name", dynamic(Prelude(), "float32"))
def test_elements_of_any_shape(name: str) -> None:
    p = Prelude()
    body, expected = dynamic(p, "float32")[name]
    for kind in ("debug", "vm") if name in ("scatter", "split", "gather") else ("debug",):
        same(run(p, body, kind, **({"v": X} if relay.analysis.free_vars(body) else {})), expected)


@pytest.mark.parametrize("dtype", ["int32", "float16", "uint8"])
def test_other_data_types(dtype: str) -> None:
    p = Prelude()
    body, expected = dynamic(p, dtype)["scatter"]
    same(run(p, body, v=X.astype(dtype)), expected)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (relay.Any(), 3), ()])
def test_elements_of_one_shape(shape: tuple[object, ...]) -> None:
    p = Prelude()
    ops = StaticTensorArrayOps(p, "float32", shape)
    ops.register()
    ops.define_tensor_array_scatter([2], True)
    f = lambda name: p.get_global_var_static(name, "float32", shape)
    of = p.get_tensor_ctor_static("tensor_constructor", "float32", shape)
    sizes = (4, *(2 if isinstance(d, relay.Any) else d for d in shape))
    v = relay.var("v", shape=sizes)
    x = np.arange(np.prod(sizes), dtype="float32").reshape(sizes)
    rows = f("tensor_array_unstack")(v)
    assert get_tensor_array_shape(rows, "float32", p) == tuple(shape)
    scattered = x.copy()
    scattered[[2, 0]] = x[[0, 0]]
    first = f("tensor_array_read")(rows, relay.const(0))
    more = f("tensor_array_write")(f("tensor_array_write")(rows, relay.const(0), first), relay.const(1), first)
    cases = {
        "unstack": (rows, list(x)),
        "stack": (f("tensor_array_stack")(rows), x),
        "gather": (f("tensor_array_gather")(rows, INDICES), x[[2, 0]]),
        "scatter": (f("tensor_array_scatter")(rows, INDICES, more), list(scattered)),
        "get_data": (f("tensor_get_data")(of(relay.take(v, relay.const(1), axis=0))), x[1]),
    }
    if shape:
        cases["concat"] = f("tensor_array_concat")(rows), np.concatenate(list(x))
        cases["take"] = f("tensor_take")(first, relay.const(1), relay.const(2)), x[0][1:2]
        cases["concatenate"] = f("tensor_concatenate")(first, first), np.concatenate([x[0], x[0]])
    for body, expected in cases.values():
        same(run(p, body, v=x), expected)
    same(run(p, cases["gather"][0], "vm", v=x), cases["gather"][1])


def test_split_of_values_of_another_shape() -> None:
    p, shape = Prelude(), (relay.Any(), 3)
    ops = StaticTensorArrayOps(p, "float32", shape)
    ops.define_tensor_array_split((4, 3), [2], True)
    value = p.get_tensor_ctor_static("tensor_constructor", "float32", (4, 3))(relay.var("v", shape=(4, 3)))
    empty = p.get_global_var_static("tensor_array", "float32", shape)(relay.const(2))
    split = p.get_global_var_static("tensor_array_split", "float32", shape)
    same(run(p, split(empty, value, SIZES), v=X), [X[:3], X[3:]])
    with pytest.raises(RelayError, match="no elements of shape"):
        ops.define_tensor_array_split((4, 5))


def test_names_types_and_what_is_refused() -> None:
    p = Prelude()
    assert p.get_name("tensor_t", "int8") == p.get_type("tensor_t", "int8").name_hint == "tensor_int8_t"
    assert p.get_name_static("tensor_t", "int8", (2, relay.Any())) == "static_tensor_int8_2_any_t"
    assert p.get_name_static("tensor_array", "int8", ()) == "tensor_array_int8_scalar"
    count = len(p.mod.functions)
    p.get_global_var("tensor_array_read", "int8")
    assert len(p.mod.functions) == count
    assert get_tensor_array_shape(p.get_global_var("tensor_array", "int8")(relay.const(1)), "int8", p) is None
    with pytest.raises(RelayError, match="no tensor array of int8"):
        get_tensor_array_shape(relay.const(1), "int8", p)
    with pytest.raises(RelayError, match="int99"):
        p.get_global_var("tensor_array", "int99")
    with pytest.raises(RelayError, match="an int or Any"):
        StaticTensorArrayOps(p, "int8", ("n",))
