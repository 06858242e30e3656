"""Reverse mode for any program: branches, recursion, closures, cells, data (Pearlmutter and Siskind, 2008).

Every tensor goes with a cell that its gradient is added up in. An operator also puts a function before the one in the
cell `bp`: it reads the gradient of its result, adds to those of its arguments, and calls the function that was there.
Running what `bp` holds at the end goes back through everything that was computed. Built on A-normal form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

from relaylab.ir.adt import Clause, Constructor, Match, map_pattern, pattern_vars
from relaylab.ir.base import Expr, set_type
from relaylab.ir.expr import (
    Call,
    Constant,
    Function,
    FunctionWithFields,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import FuncType, RefType, TensorType, TupleType, Type, map_type, type_leaves
from relaylab.ir.visit import let_chain, rebuild, rewrite, walk
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.conversions import Conversions
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.gradients.rules import gradient_rule
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.normal_forms.eta_expand import with_lambdas

Bindings: TypeAlias = "list[tuple[Var, Expr]]"
BACK = RefType(FuncType((), TupleType()))
"""The type of the cell with the function that goes back."""


def dual_type(t: Type) -> Type:
    """The type with a cell for the gradient beside every tensor."""
    return TupleType((t, RefType(t))) if isinstance(t, TensorType) else map_type(t, dual_type)


def _refused(what: str, help: str) -> RelayValueError:
    return RelayValueError(f"the gradient of {what} is not defined", code="gradient.not-defined", help=help)


class _Converter:
    """Converts one function. A tensor variable keeps its name; `cells` has the cell of its gradient, `duals` what other
    variables are called with cells for their tensors.
    """

    def __init__(self, func: Function, known: Conversions, bp: Var):
        self.globals, self.bp = known, bp
        self.func = typed(name_values(with_lambdas(func, known.mod)), known.mod)
        self.cells: dict[Expr, Var] = {}
        self.duals: dict[Expr, Var] = {}
        self.constants: dict[Expr, Constant] = {}
        self.built: dict[Expr, Expr] = {}
        for node in walk((self.func,)):
            for var in bound_by(node):
                self._declare(var)
            if isinstance(node, Let) and isinstance(node.value, Constant):
                self.constants[node.var] = node.value
        for body in reversed(self._blocks()):
            lets, tail = let_chain(body)
            made = self.dual(tail)
            for let in reversed(lets):
                made = _bound(self._let(let.var, let.value), made)
            self.built[body] = made

    def _declare(self, var: Var) -> None:
        t = type_of(var)
        if isinstance(t, TensorType):
            self.cells[var] = Var(f"{var.name_hint}_grad", RefType(t))
        elif t is not None:
            self.duals[var] = Var(var.name_hint, dual_type(t))

    def _blocks(self) -> list[Expr]:
        """The bodies, branches and clauses, each after the one that it stands in."""
        found = [self.func.body]
        for body in found:
            for let in let_chain(body)[0]:
                match let.value:
                    case If(_, yes, no):
                        found += [yes, no]
                    case Match(_, clauses):
                        found += [c.rhs for c in clauses]
                    case Function(_, inner):
                        found.append(inner)
                    case _:
                        pass
        return found

    # ---- values

    def dual(self, atom: Expr) -> Expr:
        """What stands for an atom where its tensors take their cells along."""
        if atom in self.cells:
            return Tuple((atom, self.cells[atom]))
        return self.duals.get(atom, atom)

    def _received(self, var: Var, value: Expr) -> Bindings:
        """A variable for a value that comes with cells."""
        if var not in self.cells:
            return [(self.duals.get(var, var), value)]
        pair = Var(f"{var.name_hint}_pair", dual_type(cast(Type, type_of(var))))
        return [(pair, value), *self._parts(var, pair)]

    def _parts(self, var: Var, pair: Expr) -> Bindings:
        return [(var, TupleGetItem(pair, 0)), (self.cells[var], TupleGetItem(pair, 1))]

    def _let(self, var: Var, value: Expr) -> Bindings:
        match value:
            case Constant():
                return [(var, value), (self.cells[var], _cell(var))]
            case Call(op=Op()):
                return self._operator(var, value)
            case Call():
                return self._received(var, self._call(value))
            case Function():
                return [(self.duals[var], self._function(value))]
            case If():
                branches = self.built[value.true_branch], self.built[value.false_branch]
                return self._received(var, If(value.cond, *branches))
            case Match():
                return self._received(var, Match(self.dual(value.data), self._clauses(value), value.complete))
            case Tuple(fields):
                return self._received(var, Tuple(map(self.dual, fields)))
            case TupleGetItem(of, index):
                return self._received(var, TupleGetItem(self.dual(of), index))
            case RefCreate(content):
                return self._received(var, RefCreate(self.dual(content)))
            case RefRead(ref):
                return self._received(var, RefRead(self.dual(ref)))
            case RefWrite(ref, content):
                return self._received(var, RefWrite(self.dual(ref), self.dual(content)))
            case _:
                return self._received(var, self.dual(value))

    def _call(self, node: Call) -> Expr:
        types, args = [dual_type(t) for t in node.type_args or ()], [self.dual(a) for a in node.args]
        if isinstance(node.op, GlobalVar):
            return Call(self.globals.name(node.op), (self.bp, *args), None, types)
        if isinstance(node.op, Constructor) and any(
            isinstance(p, TensorType) for t in node.op.inputs for p in type_leaves(t)
        ):
            raise _refused(f"{node.op.name_hint}, which is declared to hold tensors,", "give its type a parameter")
        return Call(self.dual(node.op), args, node.attrs, types if isinstance(node.op, Constructor) else None)

    def _function(self, func: Function) -> Function:
        if func.is_primitive or func.attr("Compiler"):
            raise _refused("a kernel", "take it before FuseOps")
        params, body = self._parameters(func.params, self.built[func.body])
        ret = None if func.ret_type is None else dual_type(func.ret_type)
        return Function(params, body, ret, func.type_params, func.attrs)

    def function(self) -> Function:
        """The function with cells beside the tensors of its parameters and its result."""
        return self._function(self.func)

    def _parameters(self, old: Iterable[Var], body: Expr) -> tuple[list[Var], Expr]:
        params: list[Var] = []
        for var in old:
            t = type_of(var)
            pair = Var(var.name_hint, dual_type(t)) if isinstance(t, TensorType) else self.duals.get(var, var)
            params.append(pair)
            body = _bound(self._parts(var, pair), body) if var in self.cells else body
        return params, body

    def _clauses(self, node: Match) -> list[Clause]:
        made: list[Clause] = []
        for clause in node.clauses:
            old = pattern_vars(clause.lhs)
            new, body = self._parameters(old, self.built[clause.rhs])
            known = dict(zip(old, new))
            made.append(Clause(map_pattern(clause.lhs, lambda v, known=known: known[v]), body))
        return made

    # ---- operators

    def _operator(self, var: Var, value: Call) -> Bindings:
        """The call, a cell for its result, and a step back."""
        t = type_of(value)
        node = rebuild(value, (value.op, *(self.constants.get(a, a) for a in value.args)))
        assert isinstance(node, Call)
        set_type(node, t)
        raw = {a: _raw(self.duals[a], type_of(a)) for a in node.args if a in self.duals}
        plain = Call(node.op, [raw.get(a, a) for a in node.args], node.attrs, node.type_args, span=value.span)
        if isinstance(t, TensorType):
            out, made = var, [(var, plain), (self.cells[var], _cell(var))]
            grad: object = RefRead(self.cells[var])
        else:
            out = Var(f"{var.name_hint}_raw", t)
            made = [(out, plain), (self.duals[var], _with_cells(out, t))]
            grad = _gradients(self.duals[var], t)
        if not any(
            isinstance(p, TensorType) and p.dtype.startswith(("float", "bfloat")) for p in type_leaves(cast(Type, t))
        ):
            return made
        back, last = Var("back", BACK.value), Var("_", TupleType())
        memo: dict[Expr, Expr] = {**raw, node: out}
        steps: Bindings = []
        for arg, g in zip(node.args, gradient_rule(node)(node, node, grad), strict=True):
            cell = self.cells.get(arg) or self.duals.get(arg)
            if cell is not None:
                steps += _added(cell, type_of(arg), g, memo)
        step = Function((), _bound(steps, Call(back, ())), TupleType())
        return [*made, (back, RefRead(self.bp)), (last, RefWrite(self.bp, step))]


def _bound(bindings: Bindings, body: Expr) -> Expr:
    for var, value in reversed(bindings):
        body = Let(var, value, body)
    return body


def _cell(value: Expr) -> Expr:
    return RefCreate(call("zeros_like", value))


def _raw(dual: Expr, t: Type | None) -> Expr:
    """A value without its cells."""
    match t:
        case TensorType():
            return TupleGetItem(dual, 0)
        case TupleType():
            return Tuple([_raw(TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)])
        case _:
            return dual


def _with_cells(value: Expr, t: Type | None) -> Expr:
    """A value with a new cell for each tensor."""
    match t:
        case TensorType():
            return Tuple((value, _cell(value)))
        case TupleType():
            return Tuple([_with_cells(TupleGetItem(value, i), f) for i, f in enumerate(t.fields)])
        case _:
            raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")


def _gradients(dual: Expr, t: Type | None) -> object:
    """What the cells hold; of a tuple a list."""
    if isinstance(t, TupleType):
        return [_gradients(TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)]
    return RefRead(TupleGetItem(dual, 1))


def _added(dual: Expr, t: Type | None, grad: object, memo: dict[Expr, Expr]) -> Bindings:
    """A gradient added to what a cell holds (`dual` is the cell of a tensor, or the tuple with its cells)."""
    if grad is None:
        return []
    if isinstance(t, TupleType):
        fields = cast("list[object]", grad.fields if isinstance(grad, Tuple) else grad)
        cells = [TupleGetItem(dual, i) for i in range(len(t.fields))]
        parts = [c if isinstance(f, TupleType) else TupleGetItem(c, 1) for c, f in zip(cells, t.fields)]
        return [b for c, f, g in zip(parts, t.fields, fields) for b in _added(c, f, g, memo)]
    value = rewrite(cast(Expr, grad), lambda new, old: new, memo=dict(memo))
    return [(Var("_", TupleType()), RefWrite(dual, call("add", RefRead(dual), value)))]


def higher_order_gradient(func: Function, mod: IRModule | None = None) -> Function:
    """The function of `func`'s result and a tuple of the gradients of its parameters, which are tensors or tuples.

    Converted functions of `mod` that it calls are put into `mod` under their names with `_grad`. Raises
    `RelayValueError` for operators whose gradient is not known, `RelayTypeError` for parameters and results that are no
    tensors.
    """
    known, bp = Conversions(IRModule() if mod is None else mod, "grad"), Var("bp", BACK)
    if func.type_params:
        raise _refused("a function with type parameters", "give it types")
    converter = _Converter(func, known, bp)
    start: Bindings = [(bp, RefCreate(Function((), Tuple(()), TupleType())))]
    params = [Var(p.name_hint, type_of(p), span=p.span) for p in converter.func.params]
    given = [Var(f"{p.name_hint}_pair", dual_type(cast(Type, type_of(p)))) for p in params]
    start += [(pair, _with_cells(p, type_of(p))) for pair, p in zip(given, params)]
    t = type_of(converter.func.body)
    out = Var("out", dual_type(cast(Type, t)))
    start.append((out, Call(converter.function(), given)))
    back = Var("back", BACK.value)
    ones = _gradients_of_result(out, t)
    start += [*ones, (back, RefRead(bp)), (Var("_", TupleType()), Call(back, ()))]
    grads = [_read(pair, type_of(p)) for pair, p in zip(given, params)]
    known.finish(lambda callee: _with_cell(callee, known))
    return Function(params, _bound(start, Tuple((_raw(out, t), Tuple(grads)))), None, (), func.attrs)


def _with_cell(func: Function, known: Conversions) -> Function:
    """A converted function of the module: its first parameter is the cell `bp`."""
    bp = Var("bp", BACK)
    made = _Converter(func, known, bp).function()
    return FunctionWithFields(made, params=(bp, *made.params))


def _gradients_of_result(out: Expr, t: Type | None) -> Bindings:
    """Ones are added to the cells of the result."""
    if isinstance(t, TupleType):
        return [b for i, f in enumerate(t.fields) for b in _gradients_of_result(TupleGetItem(out, i), f)]
    if not isinstance(t, TensorType):
        raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")
    return _added(TupleGetItem(out, 1), t, call("ones_like", TupleGetItem(out, 0)), {})


def _read(dual: Expr, t: Type | None) -> Expr:
    if isinstance(t, TupleType):
        return Tuple([_read(TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)])
    return RefRead(TupleGetItem(dual, 1))
