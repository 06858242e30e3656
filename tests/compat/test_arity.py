"""A wrong number of arguments, or a name that is none, is a RelayTypeError: nodes, types, modules, executors."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.compat.values import FloatImm
from relaylab.ir.node import Node
from relaylab.runtime.benchmark import BenchmarkResult
from relaylab.runtime.container import ADT
from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

MANY = range(9)


def kinds() -> list[type]:
    found = [getattr(room, n) for room in (relay.expr, relay.ty, relay.adt) for n in dir(room)]
    return sorted({k for k in found if isinstance(k, type) and issubclass(k, Node)}, key=lambda k: k.__name__)


@pytest.mark.parametrize("kind", kinds(), ids=lambda k: k.__name__)
def test_constructors_say_what_they_take(kind: type) -> None:
    with pytest.raises(RelayTypeError, match="too many positional arguments"):
        kind(*MANY)
    with pytest.raises(RelayTypeError, match="missing a required|unexpected keyword argument 'zz'"):
        kind(zz=1)


def test_a_value_given_twice_is_refused() -> None:
    with pytest.raises(RelayTypeError, match="multiple values for argument 'args'"):
        relay.Call(relay.op.get("tanh"), [], args=[])


def test_an_error_from_within_stays_what_it_is() -> None:
    with pytest.raises(RelayTypeError, match="what a Call calls must be an Expr"):
        relay.Call(1, [])


def things() -> dict[str, object]:
    x = relay.var("x", shape=(2,))
    mod = relay.IRModule.from_expr(relay.tanh(x))
    lib = relay.build(mod, target="llvm")
    graph = GraphModule(lib["default"](cpu(0)))
    executors = {kind: relay.create_executor(kind, mod=mod) for kind in ("debug", "graph", "vm")}
    return {"mod": mod, "lib": lib, "module": graph, **executors}


THINGS = things()


def methods() -> list[tuple[str, Callable[..., object]]]:
    out: list[tuple[str, Callable[..., object]]] = []
    for name, thing in THINGS.items():
        for method in (m for m in dir(type(thing)) if m[0] != "_"):
            if inspect.isfunction(inspect.getattr_static(type(thing), method)):
                out.append((f"{name}.{method}", getattr(thing, method)))
    return out


@pytest.mark.parametrize(("name", "method"), methods(), ids=lambda v: v if isinstance(v, str) else "")
def test_methods_say_what_they_take(name: str, method: Callable[..., object]) -> None:
    for args, kwargs in ((MANY, {}), ((), {"zz": 1})):
        try:
            method(*args, **kwargs)
        except RelayError:
            pass


@pytest.mark.parametrize(
    "call",
    [
        lambda: relay.GlobalVarSupply(np.zeros((0, 3))),
        lambda: relay.transform.Sequential(np.zeros((0, 3))),
        lambda: relay.transform.apply_rules(relay.var("x"), iter([1, 2])),
        lambda: relay.fold(relay.var("x", shape=()), relay.transform.FoldConstant()),
        lambda: ADT(1, np.array(1j)),
        lambda: relay.analysis.post_dominates({}, relay.var("x"), relay.var("y")),
        lambda: BenchmarkResult([]),
    ],
)
def test_lists_and_functions_of_something_else(call: Callable[[], object]) -> None:
    """Found by the search: an empty array is no list of modules, an iterator of numbers no rules, a pass no fold."""
    with pytest.raises((RelayTypeError, RelayValueError)):
        call()


def test_a_pass_of_what_has_no_name_is_called_by_its_kind() -> None:
    assert relay.transform.function_pass(relay.TypeVar("t"), opt_level=0).info.name == "TypeVar"


def test_a_result_may_be_an_array() -> None:
    assert BenchmarkResult(np.array([1, 2])).mean == 1.5


@pytest.mark.parametrize("name", ["\ud800", "a\0b", 3])
def test_names_that_no_file_can_have(name: object) -> None:
    library = relay.build(relay.IRModule.from_expr(relay.Function([], relay.const(1.0))), "llvm")
    with pytest.raises(RelayTypeError, match="file"):
        library.export_library(name)


def test_a_constant_that_is_no_float() -> None:
    with pytest.raises(RelayValueError, match="float64"):
        FloatImm("float32", 10**400)
