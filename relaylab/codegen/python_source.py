"""Relay programs as Python programs: `to_python` gives the syntax tree, `run_as_python` the result of running it.

The program is brought into A-normal form first, so each value is one assignment and each branch one block:

    v0 = relay_op("add", x, relay_const([1.0], "float32"))
    return v0
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from relaylab import ir
from relaylab.interp.machine import arrays_of
from relaylab.interp.values import ConstructorValue, RefValue, map_value, rebuilt, to_value
from relaylab.ir.free import global_vars
from relaylab.op.rounding import evaluated
from relaylab.runtime.container import tuple_object
from relaylab.runtime.ndarray import array
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayValueError, kind_of
from relaylab.support.order import post_order
from relaylab.transform import ToANormalForm
from relaylab.transform.engine.infer_type import InferType

OUTPUT = "relay_output"
PythonValue = Any
"""An array, a tuple, a constructed value, a cell or a function."""
SMALL = 16
"""Constants of at most so many elements are written out; others stand in the table `relay_constants`."""
DEEPEST = 80
"""How many levels branches and functions may nest: Python's own compiler takes about a hundred."""


@checked
class PythonConverter:
    """Converts expressions over a module: `convert(expr)` gives the syntax tree; `constants` has the large ones."""

    def __init__(self, mod: ir.IRModule | None = None, target: object = "llvm"):
        self.mod = mod if mod is not None else ir.IRModule()
        self.constants: list[np.ndarray] = []
        self.attributes: list[Any] = []
        self.names: dict[object, str] = {}
        self.used: set[str] = set()

    def convert(self, prog: ir.Expr) -> ast.Module:
        """The module that assigns the value of `prog` to `relay_output`; `RelayValueError` for free variables
        and nests too deep for Python.
        """
        loose = ir.free_vars(prog)
        if loose:
            raise RelayValueError(
                f"%{loose[0].name_hint} has no value",
                code="python.free-variable",
                help="bind it, or make it a parameter",
            )
        mod = self.mod.shallow_copy()
        name = ir.GlobalVar("program")
        is_function = isinstance(prog, ir.Function)
        mod[name] = prog if is_function else ir.Function([], prog)
        mod = ToANormalForm()(InferType()(mod))
        main = mod.get_global_var(name.name_hint)
        needed = post_order((main,), lambda gv: [mod.get_global_var(g.name_hint) for g in global_vars(mod[gv])])
        functions = [self.function(self.name(gv), mod[gv], 0) for gv in needed]
        value = _name(self.name(main))
        result = _assign(OUTPUT, value if is_function else ast.Call(value, [], []))
        return ast.fix_missing_locations(ast.Module([*functions, result], []))

    # ---- names

    def name(self, node: ir.Var | ir.GlobalVar) -> str:
        """The Python name of a variable, the same each time."""
        if node not in self.names:
            stem = re.sub(r"\W", "_", node.name_hint) or "v"
            stem = f"v_{stem}" if stem[0].isdigit() or keyword.iskeyword(stem) or stem.startswith("relay_") else stem
            name, count = stem, 0
            while name in self.used:
                count += 1
                name = f"{stem}_{count}"
            self.used.add(name)
            self.names[node] = name
        return self.names[node]

    def fresh(self) -> str:
        """A new name."""
        return self.name(ir.Var("v"))

    # ---- statements

    def function(self, name: str, func: ir.Function, depth: int) -> ast.FunctionDef:
        """A function of that name."""
        params = [ast.arg(self.name(p)) for p in func.params]
        body = self.block(func.body, ast.Return, depth + 1)
        return cast(ast.FunctionDef, ast.FunctionDef(name, ast.arguments([], params, None, [], [], None, []), body, []))

    def block(self, expr: ir.Expr, end: Callable[[ast.expr], ast.stmt], depth: int) -> list[ast.stmt]:
        """The statements of a chain of lets; `end` makes the last one of its value."""
        if depth > DEEPEST:
            raise RelayValueError(
                f"branches nest more than {DEEPEST} levels deep", code="python.too-deep", help="use an executor"
            )
        out: list[ast.stmt] = []
        while isinstance(expr, ir.Let):
            name = self.name(expr.var)
            if isinstance(expr.value, ir.Function):
                out.append(self.function(name, expr.value, depth))
            else:
                out += self.bound(expr.value, lambda value, name=name: _assign(name, value), depth)
            expr = expr.body
        return out + self.bound(expr, end, depth)

    def bound(self, expr: ir.Expr, end: Callable[[ast.expr], ast.stmt], depth: int) -> list[ast.stmt]:
        """The statements of one value."""
        match expr:
            case ir.If():
                test = ast.Call(_name("bool"), [self.value(expr.cond)], [])
                branches = (self.block(b, end, depth + 1) for b in (expr.true_branch, expr.false_branch))
                return [ast.If(test, *branches)]
            case ir.Match():
                return self.matched(expr, end, depth)
            case ir.Function():
                name = self.fresh()
                return [self.function(name, expr, depth), end(_name(name))]
            case ir.Let():
                return self.block(expr, end, depth + 1)
            case _:
                return [end(self.value(expr))]

    def matched(self, node: ir.Match, end: Callable[[ast.expr], ast.stmt], depth: int) -> list[ast.stmt]:
        """Clauses as a chain of conditions."""
        data = self.fresh()
        message = ast.Constant("no clause matches")
        last: list[ast.stmt] = [ast.Raise(ast.Call(_name("relay_error"), [message], []))]
        for clause in reversed(node.clauses):
            tests: list[ast.expr] = []
            binds: list[ast.stmt] = []
            self.pattern(clause.lhs, _name(data), tests, binds)
            body = [*binds, *self.block(clause.rhs, end, depth + 1)]
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            last = [ast.If(test, body, last)] if tests else body
        return [_assign(data, self.value(node.data)), *last]

    def pattern(self, p: ir.Pattern, at: ast.expr, tests: list[ast.expr], binds: list[ast.stmt]) -> None:
        """What must hold for a value `at` to match, and what it then binds."""
        stack = [(p, at)]
        while stack:
            pattern, value = stack.pop()
            if isinstance(pattern, ir.PatternVar):
                binds.append(_assign(self.name(pattern.var), value))
            elif isinstance(pattern, ir.PatternTuple):
                stack.extend((q, _item(value, k)) for k, q in enumerate(pattern.patterns))
            elif isinstance(pattern, ir.PatternConstructor):
                tag = ast.Constant(pattern.constructor.tag)
                tests.append(ast.Compare(ast.Attribute(value, "tag", ast.Load()), [ast.Eq()], [tag]))
                fields = ast.Attribute(value, "fields", ast.Load())
                stack.extend((q, _item(fields, k)) for k, q in enumerate(pattern.patterns))

    # ---- values

    def value(self, node: ir.Expr) -> ast.expr:
        """A value without branches in it, as an expression of Python."""
        match node:
            case ir.Var() | ir.GlobalVar():
                return _name(self.name(node))
            case ir.Constant():
                return self.constant(node.data.numpy())
            case ir.Tuple():
                return ast.Tuple([self.value(f) for f in node.fields], ast.Load())
            case ir.TupleGetItem():
                return _item(self.value(node.tuple_value), node.index)
            case ir.RefCreate():
                return _call("relay_ref", self.value(node.value))
            case ir.RefRead():
                return ast.Attribute(self.value(node.ref), "value", ast.Load())
            case ir.RefWrite():
                return _call("relay_write", self.value(node.ref), self.value(node.value))
            case ir.Op():
                return _call("relay_operator", ast.Constant(node.name))
            case ir.Constructor():
                return _call("relay_constructor", ast.Constant(node.tag), ast.Constant(node.name_hint))
            case ir.Call():
                return self.call(node)
            case _:
                raise RelayError(f"{kind_of(node)} has no form in Python", code="python.node")

    def call(self, node: ir.Call) -> ast.expr:
        """A call of an operator, a constructor or a function."""
        args = [self.value(a) for a in node.args]
        if isinstance(node.op, ir.Op):
            return ast.Call(_name("relay_op"), [ast.Constant(node.op.name), *args], self.keywords(node))
        return ast.Call(self.value(node.op), args, [])

    def keywords(self, node: ir.Call) -> list[ast.keyword]:
        """The attributes of a call that are not the defaults; those that Python cannot write stand in a table."""
        defaults = cast(ir.Op, node.op).definition.fields
        out: list[ast.keyword] = []
        for name, value in node.attrs.items() if node.attrs is not None else ():
            if name in defaults and defaults[name].default == value:
                continue
            if _is_literal(value):
                out.append(ast.keyword(name, _literal(value)))
            else:
                self.attributes.append(value)
                out.append(ast.keyword(name, _item(_name("relay_attributes"), len(self.attributes) - 1)))
        return out

    def constant(self, data: np.ndarray) -> ast.expr:
        """A constant: its numbers, or its place in the table."""
        if data.size <= SMALL and data.dtype.kind in "biuf" and bool(np.all(np.isfinite(data))):
            return _call("relay_const", _literal(data.tolist()), ast.Constant(data.dtype.name))
        self.constants.append(data)
        return _item(_name("relay_constants"), len(self.constants) - 1)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(name), list(args), [])


def _item(value: ast.expr, index: int) -> ast.Subscript:
    return ast.Subscript(value, ast.Constant(index), ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _is_literal(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_literal, value))
    return value is None or isinstance(value, (bool, str)) or (isinstance(value, (int, float)) and np.isfinite(value))


def _literal(value: PythonValue) -> ast.expr:
    """A number, a text or a list of them as Python writes it."""
    if isinstance(value, (tuple, list)):
        return (ast.List if isinstance(value, list) else ast.Tuple)([*map(_literal, value)], ast.Load())
    return ast.Constant(int(value) if isinstance(value, int) and not isinstance(value, bool) else value)


# ---- what the Python program calls


def relay_op(name: str, *args: PythonValue, **attrs: PythonValue) -> PythonValue:
    """The value of an operator on values, by its reference semantics."""
    with np.errstate(all="ignore"):
        found = ir.OPERATORS.lookup(name).definition(**attrs)
        return arrays_of(evaluated(cast(Any, found), args))


def _write(ref: RefValue, value: PythonValue) -> tuple[()]:
    ref.value = value
    return ()


RUNTIME: Mapping[str, Any] = {
    "relay_op": relay_op,
    "relay_const": np.array,
    "relay_ref": RefValue,
    "relay_write": _write,
    "relay_operator": lambda name: lambda *args: relay_op(name, *args),
    "relay_constructor": lambda tag, name: lambda *fields: ConstructorValue(tag, fields),
    "relay_error": lambda text: RelayValueError(text, code="python.no-clause"),
}


def to_python(expr: ir.Expr, mod: ir.IRModule | None = None, target: object = "llvm") -> ast.Module:
    """The syntax tree of the Python program that computes an expression; `ast.unparse` gives its text."""
    return PythonConverter(mod, target).convert(expr)


def run_as_python(expr: ir.Expr, mod: ir.IRModule | None = None, target: object = "llvm") -> PythonValue:
    """The value of an expression, computed as Python: arrays as NDArrays, tuples as ADTs, functions as functions."""
    converter = PythonConverter(mod, target)
    code = compile(converter.convert(expr), "<relay>", "exec")
    scope = {**RUNTIME, "relay_constants": converter.constants, "relay_attributes": converter.attributes}
    exec(code, scope)
    return _result(scope[OUTPUT])


def _result(value: PythonValue) -> PythonValue:
    """A value as programs get it; data types of any depth."""

    def leaf(item: PythonValue) -> PythonValue:
        if isinstance(item, np.ndarray):
            return array(item)
        if isinstance(item, RefValue):
            return RefValue(_result(item.value))
        if callable(item):
            return lambda *args: _result(item(*(to_value(a, None, "an argument") for a in args)))
        return item

    def packed(item: PythonValue, fields: tuple[PythonValue, ...]) -> PythonValue:
        return rebuilt(item, fields) if isinstance(item, ConstructorValue) else tuple_object(fields)

    return map_value(value, leaf, packed)
