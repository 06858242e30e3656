"""Modules, names, types and nodes: what the language's users rely on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import relaylab.op  # noqa: F401
from relaylab import relay
from relaylab.ir import (
    AnyDim,
    Call,
    Constant,
    Constructor,
    Function,
    FunctionWithFields,
    GlobalTypeVar,
    GlobalVar,
    GlobalVarSupply,
    IncompleteType,
    IntImm,
    IRModule,
    NameSupply,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TupleWrapper,
    TypeCall,
    TypeData,
    TypeVar,
    Var,
    const,
    free_type_vars,
    is_dynamic,
    scalar_type,
    structural_equal,
    var,
)
from relaylab.support.errors import (
    DiagnosticError,
    RelayAttributeError,
    RelayIndexError,
    RelayTypeError,
    RelayValueError,
)

X = var("x", shape=(2,))


def identity(name="x"):
    x = var(name, shape=(2,))
    return Function([x], x)


def box(name="Box"):
    header, a = GlobalTypeVar(name), TypeVar("A")
    return TypeData(header, [a], [Constructor("Full", [a], header), Constructor("None", [], header)])


def test_lookup_by_name_and_by_variable() -> None:
    f = GlobalVar("f")
    mod = IRModule({f: identity(), "g": identity()})
    assert mod["f"] is mod[f] is mod[GlobalVar("f")]
    assert [gv.name_hint for gv in mod.get_global_vars()] == ["f", "g"]
    assert mod.get_global_var("f") is f and f in mod and "g" in mod and "h" not in mod


def test_missing_names_offer_others() -> None:
    with pytest.raises(RelayValueError, match="Cannot find global var") as caught:
        IRModule({"main": identity()})["mian"]
    assert "main" in caught.value.help
    with pytest.raises(RelayValueError):
        IRModule().get_global_type_var("List")


def test_duplicate_names_are_refused() -> None:
    with pytest.raises(RelayValueError, match="two functions"):
        IRModule({GlobalVar("f"): identity(), GlobalVar("f"): identity()})


def test_setting_by_name_keeps_the_variable() -> None:
    mod = IRModule({"f": identity()})
    f, new = mod.get_global_var("f"), identity()
    mod["f"] = new
    assert mod.get_global_var("f") is f and mod[f] is new


def test_setting_an_expression_or_a_variable() -> None:
    mod = IRModule({"f": identity()})
    mod["g"] = const(1)
    assert mod["g"].params == () and isinstance(mod["g"].body, Constant)
    mod["h"] = mod.get_global_var("f")
    assert isinstance(mod["h"].body, Call) and mod["h"].body.op is mod.get_global_var("f")


def test_free_variables_are_refused() -> None:
    with pytest.raises(RelayValueError, match="%x") as caught:
        IRModule({"main": Function([], X)})
    assert caught.value.code == "module.free-variable"
    with pytest.raises(RelayValueError, match="type variables"):
        IRModule({"main": Function([Var("x", TypeVar("A"))], const(1))})


def test_update_keeps_the_variables_of_the_left() -> None:
    left, right = IRModule({"f": identity()}), IRModule()
    right["f"] = identity("other")
    right["g"] = Function([X], Call(right.get_global_var("f"), [X]))
    f = left.get_global_var("f")
    left.update(right)
    assert left.get_global_var("f") is f and left["f"] is right["f"]
    assert left["g"].body.op is f
    left.update({"h": identity()})
    assert "h" in left


def test_from_expr() -> None:
    mod = IRModule.from_expr(Tuple([X, X]))
    assert mod["main"].params == (X,)
    named = IRModule.from_expr(identity().with_attr("global_symbol", "entry"), {"main": identity()})
    assert [gv.name_hint for gv in named.functions] == ["main", "entry"]
    assert [gv.name_hint for gv in IRModule.from_expr(X, {"main": identity()}).functions] == ["main", "main_1"]


def test_copies_are_apart() -> None:
    mod = IRModule({"f": identity()})
    other = mod.shallow_copy()
    other["g"] = identity()
    assert "g" not in mod
    assert mod.with_functions(dict(mod.functions)) is mod
    assert mod.with_attr("k", 1).get_attr("k") == 1 and mod.get_attr("k") is None


def test_data_types_get_tags_once() -> None:
    data = box()
    mod = IRModule({}, {data.header: data})
    tags = [c.tag for c in data.constructors]
    assert len(set(tags)) == 2 and -1 not in tags
    assert [c.tag for c in box().constructors] == [-1, -1]
    assert mod.get_constructor(tags[1]) is data.constructors[1]
    assert mod.get_type("Box") == (data.header, *data.constructors)
    IRModule({}, {"Box": data})
    assert [c.tag for c in data.constructors] == tags
    with pytest.raises(RelayValueError):
        mod.get_constructor(12345)


def test_data_types_have_tags_of_their_own() -> None:
    mod = relay.IRModule()
    relay.prelude.Prelude(mod)
    mod.import_from_std("nat.rly")
    ctors = [c for data in mod.type_definitions.values() for c in data.constructors]
    assert len({c.tag for c in ctors}) == len(ctors) > 6
    for ctor in ctors:
        assert mod.get_constructor(ctor.tag) is ctor
        assert mod.get_constructor(ctor.tag, ctor.belong_to) is ctor
        assert mod.get_constructor(ctor.tag, of=ctor.belong_to.name_hint) is ctor
    with pytest.raises(RelayValueError):
        mod.get_constructor(mod.get_type("Tree")[1].tag, of="List")


@pytest.mark.parametrize("name", ["a b", "let", "True", "", "1x", "a.b", "Größe", "infi\n"])
def test_data_types_have_names_that_text_can_say(name: str) -> None:
    header = GlobalTypeVar("T")
    with pytest.raises(RelayValueError, match="a constructor cannot be named"):
        IRModule({}, {header: TypeData(header, [], [Constructor(name, [], header)])})
    odd = GlobalTypeVar(name)
    with pytest.raises(RelayValueError, match="a data type cannot be named"):
        IRModule({}, {odd: TypeData(odd, [], [])})


def test_data_types_do_not_hide_what_names_mean_already() -> None:
    for text, column in (("type float32 { A }", 6), ("type T { tanh(float32) }", 6), ("type T { inff }", 6)):
        with pytest.raises(DiagnosticError, match="cannot be named") as caught:
            relay.parse(f'#[version = "0.0.5"]\n{text}')
        assert f":2:{column}" in str(caught.value)


def test_fresh_names() -> None:
    supply = NameSupply()
    assert [supply.fresh_name("x") for _ in range(3)] == ["x", "x_1", "x_2"]
    supply.reserve_name("y_1")
    assert [supply.fresh_name(n) for n in ("y", "y", "nn.relu")] == ["y", "y_2", "nn_relu"]
    assert NameSupply("p").fresh_name("x") == "p_x" and supply.contains_name("x_1")
    assert len({supply.fresh_name("x") for _ in range(100)}) == 100


def test_fresh_globals() -> None:
    mod = IRModule({"f": identity()})
    assert GlobalVarSupply((mod, mod)).name_supply.contains_name("f")  # a tuple as well as a list
    supply = GlobalVarSupply(mod)
    assert supply.unique_global_for("f") is mod.get_global_var("f")
    assert supply.fresh_global("f").name_hint == "f_1"
    assert supply.unique_global_for("g") is supply.unique_global_for("g")
    with pytest.raises(RelayValueError):
        supply.reserve_global(GlobalVar("f"))


def test_types_are_values() -> None:
    assert TensorType((1, AnyDim()), "float32") == TensorType([1, AnyDim()], np.float32)
    assert hash(TensorType((1, 2))) == hash(TensorType((1, 2))) and TensorType((1, 2)) != TensorType((2, 1))
    assert {TupleType([scalar_type("int8")]): 1}[TupleType([scalar_type("int8")])] == 1
    assert TypeVar("A") != TypeVar("A") and IncompleteType() != IncompleteType()
    assert GlobalTypeVar("L") == GlobalTypeVar("L") and TypeCall(GlobalTypeVar("L"), []) == GlobalTypeVar("L")()
    assert isinstance(TensorType((3,)).shape[0], IntImm) and TensorType((3,)).shape[0].value == 3
    assert is_dynamic(TupleType([TensorType((AnyDim(),))])) and not is_dynamic(TensorType((3,)))


@pytest.mark.parametrize("shape", [(-1,), (1.5,), ("n",), (True,)])
def test_bad_dimensions(shape) -> None:
    with pytest.raises((RelayTypeError, RelayValueError)):
        TensorType(shape)


def test_bad_data_types() -> None:
    for dtype in ("floaty", "complex64", object):
        with pytest.raises(RelayTypeError):
            TensorType((), dtype)


def test_nodes_are_frozen() -> None:
    with pytest.raises(RelayTypeError):
        X.name_hint = "y"
    with pytest.raises(RelayTypeError):
        del X.name_hint
    with pytest.raises(RelayTypeError):
        pickle.dumps(X)
    assert copy.deepcopy(X) is X and copy.copy(X) is X


def test_annotated_variables_and_constants_have_their_type() -> None:
    assert X.checked_type == TensorType((2,)) and const(1).checked_type == scalar_type("int32")
    for untyped in (Var("x"), Var("x", IncompleteType()), Var("x", GlobalTypeVar("L")), Tuple([X])):
        with pytest.raises(RelayValueError, match="no type yet"):
            _ = untyped.checked_type


def test_constants_are_read_only_copies() -> None:
    array = np.ones(3, "float32")
    c = const(array)
    array[0] = 7
    assert c.data.numpy()[0] == 1
    with pytest.raises(ValueError):
        c.data[0] = 2


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (1.0, "float32"),
        (True, "bool"),
        (np.float64(2), "float32"),
        (np.zeros(2, "int64"), "int32"),
        (np.int8(1), "int8"),
    ],
)
def test_const_narrows(value, dtype) -> None:
    assert const(value).type.dtype == dtype
    assert const(value, "float64").type.dtype == "float64"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2**40, None), (300, "int8"), (-1, "uint8"), (np.array([0, 2**31]), None), ([[1], [2, 3]], None)],
)
def test_const_refuses_what_does_not_fit(value, dtype) -> None:
    with pytest.raises(RelayValueError) as caught:
        const(value, dtype)
    assert caught.value.code == "ir.bad-constant"
    assert const(2**40, "int64").data == 2**40 and const(300.0, "float16").data == 300


def test_python_operators() -> None:
    y = var("y", shape=(2,))
    names = [e.op.name for e in (X + y, X - y, X * y, X / y, -X, X < y, X > y, X <= y, X >= y, X.astype("int8"))]
    assert names == [
        "add",
        "subtract",
        "multiply",
        "divide",
        "negative",
        "less",
        "greater",
        "less_equal",
        "greater_equal",
        "cast",
    ]
    for bad in (
        lambda: X + 1,
        lambda: 1 + X,
        lambda: 1.0 - X,
        lambda: 1 / X,
        lambda: X + "a",
        lambda: Tuple([X]).astype("int8"),
    ):
        with pytest.raises(RelayTypeError):
            bad()
    assert (X == y) is False and X(y).op is X


def test_wrong_parts_are_refused() -> None:
    for bad in (
        lambda: Call(X, [1]),
        lambda: Tuple(X),
        lambda: Tuple("ab"),
        lambda: Function([const(1)], X),
        lambda: Var(1),
        lambda: TensorType(3),
        lambda: Op("nn.mine"),
    ):
        with pytest.raises((RelayTypeError, TypeError, RuntimeError)):
            bad()
    with pytest.raises(RelayIndexError):
        TupleGetItem(X, -1)
    with pytest.raises(RelayIndexError):
        Tuple([X])[1]
    with pytest.raises(RelayAttributeError, match="nn.conv2d"):
        Op.get("nn.conv2dd")


def test_tuple_wrapper() -> None:
    t = TupleWrapper(X, 2)
    a, b = t
    assert (a.index, b.index, t[-1].index, len(t)) == (0, 1, 1, 2) and t.astuple() is X
    with pytest.raises(RelayIndexError):
        t[2]


def test_function_with_fields() -> None:
    f = identity()
    assert FunctionWithFields(f) is f and FunctionWithFields(f, params=f.params, body=f.body) is f
    assert f.with_attr("Primitive", 1).is_primitive and not f.is_primitive
    assert f.with_attr({"a": 1, "b": 2}).without_attr("a").attrs == {"b": 2}
    assert structural_equal(FunctionWithFields(f, attrs={}), f)


def test_free_type_variables() -> None:
    a = TypeVar("A")
    x = Var("x", a)
    assert free_type_vars(x) == [a] and free_type_vars(Function([x], x, a, [a])) == []


def test_functions_that_were_changed_from_outside_are_found() -> None:
    one, two = (Function([], relay.const(float(k))) for k in (1, 2))
    mod = IRModule({"f": one, "g": two})
    swapped = GlobalVar("h")
    del mod.functions[mod.get_global_var("f")]
    mod.functions[swapped] = one
    assert mod.get_global_var("h") is swapped and "f" not in mod and mod["g"] is two
    mod.functions = {GlobalVar("g"): one, swapped: two}
    assert mod["g"] is one and mod["h"] is two


def test_a_function_that_is_refused_leaves_the_one_it_was_to_replace() -> None:
    mod = IRModule({"f": Function([], relay.const(1.0))})
    with pytest.raises(RelayValueError):
        mod.update_func(GlobalVar("f"), Function([], relay.var("x")))
    assert "f" in mod
