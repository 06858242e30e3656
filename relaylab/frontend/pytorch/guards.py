"""What a program of torch.export asks of its open sizes: sizes that can be only what they were are numbers."""

# pyright: reportMissingImports=false

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.export import ExportedProgram

Holds = Callable[[int], object]
"""Whether an equation holds for a size."""
FARTHER = 64
"""How many larger sizes are tried: what is asked of remainders holds for one of them."""
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def inputs_of(program: ExportedProgram) -> dict[str, Any]:
    """What torch knows of the inputs of a program, weights among them, by name."""
    return {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}


def environment(program: ExportedProgram) -> object:
    """Where torch keeps what it knows of open sizes; None for a program without inputs."""
    return next((v.fake_mode.shape_env for v in inputs_of(program).values() if hasattr(v, "fake_mode")), None)


def fixed_sizes(program: ExportedProgram) -> dict[str, int]:
    """Open sizes that can be only what they were, by torch's symbols: a number that the program computed of one, as by
    `math.sqrt`, is a constant now, and torch refuses others when it runs it.
    """
    found: dict[str, int] = {}
    for symbol, own, holds in (*_kept(program), *_written(program)):
        try:
            if holds(own) and not any(map(holds, (own * 12, *range(own + 1, own + 1 + FARTHER)))):
                found[symbol] = own
        except (TypeError, ArithmeticError):  # a comparison that stays one
            continue
    return found


def _kept(program: ExportedProgram) -> Iterator[tuple[str, int, Holds]]:
    """The equations of one size that torch made while it exported the program, with the size."""
    env = environment(program)
    values = getattr(env, "backed_var_to_val" if hasattr(env, "backed_var_to_val") else "var_to_val", {})
    for guard in getattr(env, "guards", ()):
        symbols = getattr(guard.expr, "free_symbols", ())
        if type(guard.expr).__name__ == "Equality" and len(symbols) == 1 and (symbol := next(iter(symbols))) in values:
            yield str(symbol), int(values[symbol]), lambda v, e=guard.expr, s=symbol: e.subs(s, v)


def _written(program: ExportedProgram) -> Iterator[tuple[str, int, Holds]]:
    """The same of a program from a file, where they are lines of Python: `2 / L['x'].size()[1] == 0.5`."""
    inputs = inputs_of(program)
    for line in getattr(program, "_guards_code", None) or ():
        try:
            tree = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):  # no line of Python that anybody writes
            continue
        nodes = [*ast.walk(tree)]
        sizes = {place for n in nodes if (place := _place(n)) is not None}
        if (
            not isinstance(tree, ast.Compare)
            or len(tree.ops) != 1
            or type(tree.ops[0]) is not ast.Eq
            or len(sizes) != 1
        ):
            continue
        name, axis = next(iter(sizes))
        shape = getattr(inputs.get(name), "shape", ())
        hint = getattr(getattr(shape[axis], "node", None), "hint", None) if axis < len(shape) else None
        if isinstance(hint, int):
            yield str(shape[axis]), hint, lambda v, t=tree: _value(t, v)


def _place(node: ast.AST) -> tuple[str, int] | None:
    """The placeholder and the axis of `L['x'][0].size()[1]`."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Call):
        return None
    of, axis, parts = node.value.func, getattr(node.slice, "value", None), list[str]()
    if not isinstance(of, ast.Attribute) or of.attr != "size" or not isinstance(axis, int):
        return None
    source: ast.AST = of.value
    while isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Constant):
        parts.insert(0, str(source.slice.value))
        source = source.value
    return ("_".join(parts), axis) if isinstance(source, ast.Name) and source.id == "L" else None


def _value(tree: ast.Compare, size: int) -> bool:
    """Whether an equation of numbers and one size holds; TypeError for anything else in it."""
    found: dict[ast.AST, Any] = {}
    order, todo = list[ast.AST](), list[ast.AST]([tree])
    while todo:  # parents before what they are made of
        order.append(node := todo.pop())
        if _place(node) is None:
            todo += [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
    for node in reversed(order):
        if _place(node) is not None:
            found[node] = size
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            found[node] = node.value
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            found[node] = -found[node.operand]
        elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            found[node] = _OPERATORS[type(node.op)](found[node.left], found[node.right])
        elif node is not tree:
            raise TypeError(ast.unparse(node))
    return bool(found[tree.left] == found[tree.comparators[0]])
