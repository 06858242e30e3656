"""Peano numbers: helpers for the data type `nat` of the standard library file `nat.rly`."""

from __future__ import annotations

from typing import Protocol

from relaylab.analysis import infer_module
from relaylab.interp import ConstructorValue
from relaylab.ir import Expr, IRModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayValueError


class HasModule(Protocol):
    """What is taken from a `Prelude`."""

    mod: IRModule


def get_type(prelude: HasModule, name: str) -> tuple:
    """The named data type of the prelude's module and its constructors."""
    return prelude.mod.get_type(name)


def count(prelude: HasModule, n: ConstructorValue) -> int:
    """The Python number that a value of type `nat` stands for."""
    _, z, s = prelude.mod.get_type("nat")
    total = 0
    while _name(n) == s.name_hint:
        n = n.fields[0]
        total += 1
    if _name(n) != z.name_hint:
        raise RelayValueError(f"{_name(n)} is not a constructor of nat", code="zoo.nat")
    return total


def _name(value: ConstructorValue) -> str:
    return value.constructor.name_hint if value.constructor else "a value without a constructor"


def _nat(prelude: HasModule, n: int) -> tuple:
    """The data type with its constructors, for a number that it has."""
    if n < 0:
        raise RelayValueError(f"{n} is not a natural number", code="zoo.nat")
    return prelude.mod.get_type("nat")


def make_nat_value(prelude: HasModule, n: int) -> ConstructorValue:
    """The value of type `nat` for a Python number."""
    _, z, s = _nat(prelude, n)
    value = ConstructorValue(z.tag, [], z)
    for _ in range(n):
        value = ConstructorValue(s.tag, [value], s)
    return value


def make_nat_expr(prelude: HasModule, n: int) -> Expr:
    """The expression of type `nat` for a Python number."""
    _, z, s = _nat(prelude, n)
    expr = z()
    for _ in range(n):
        expr = s(expr)
    return expr


PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  let %double = fn (%t: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %t + %t };
  @nat_iterate(%double, @nat_add(S(S(Z)), S(Z)))(%x)
}
"""


def get_workload() -> tuple[IRModule, dict[str, NDArray]]:
    """A program over `nat`: doubles a tensor two plus one times. It has no parameters."""
    mod = IRModule()
    mod.import_from_std("prelude.rly")
    mod.import_from_std("nat.rly")
    mod.update(IRModule.from_text(PROGRAM, "nat", mod))
    return infer_module(mod), {}
