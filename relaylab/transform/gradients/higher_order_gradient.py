"""Reverse mode for any program: branches, recursion, closures, cells, data (Pearlmutter and Siskind, 2008).

Every tensor goes with a cell that its gradient is added up in. An operator also puts a function before the one in the
cell `bp`: it reads the gradient of its result, adds to those of its arguments, and calls the function that was there.
Running what `bp` holds at the end goes back through everything that was computed. Built on A-normal form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

from relaylab import ir
from relaylab.ir.adt import map_pattern, pattern_vars
from relaylab.ir.base import set_type
from relaylab.ir.free import bound_by
from relaylab.ir.types import renew_type, type_leaves
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.conversions import Conversions, declared_to_hold
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.gradients.rules import gradient_rule
from relaylab.transform.normal_forms.blocks import name_values
from relaylab.transform.normal_forms.eta_expand import with_lambdas

Bindings: TypeAlias = "list[tuple[ir.Var, ir.Expr]]"
BACK = ir.RefType(ir.FuncType((), ir.TupleType()))
"""The type of the cell with the function that goes back."""


def dual_type(t: ir.Type) -> ir.Type:
    """The type with a cell for the gradient beside every tensor."""
    return renew_type(t, lambda p: ir.TupleType((p, ir.RefType(p))) if isinstance(p, ir.TensorType) else None)


def _refused(what: str, help: str) -> RelayValueError:
    return RelayValueError(f"the gradient of {what} is not defined", code="gradient.not-defined", help=help)


class _Converter:
    """Converts one function. A tensor variable keeps its name; `cells` has the cell of its gradient, `duals` what other
    variables are called with cells for their tensors.
    """

    def __init__(self, func: ir.Function, known: Conversions, bp: ir.Var):
        self.globals, self.bp = known, bp
        self.func = typed(name_values(with_lambdas(func, known.mod)), known.mod)
        if (held := declared_to_hold(self.func, ir.TensorType)) is not None:
            raise _refused(f"{held.name_hint}, which is declared to hold tensors,", "give its type a parameter")
        self.cells: dict[ir.Expr, ir.Var] = {}
        self.duals: dict[ir.Expr, ir.Var] = {}
        self.constants: dict[ir.Expr, ir.Constant] = {}
        self.built: dict[ir.Expr, ir.Expr] = {}
        for node in ir.walk((self.func,)):
            for var in bound_by(node):
                self._declare(var)
            if isinstance(node, ir.Let) and isinstance(node.value, ir.Constant):
                self.constants[node.var] = node.value
        for body in reversed(self._blocks()):
            lets, tail = ir.let_chain(body)
            made = self.dual(tail)
            for let in reversed(lets):
                made = _bound(self._let(let.var, let.value), made)
            self.built[body] = made

    def _declare(self, var: ir.Var) -> None:
        t = type_of(var)
        if isinstance(t, ir.TensorType):
            self.cells[var] = ir.Var(f"{var.name_hint}_grad", ir.RefType(t))
        elif t is not None:
            self.duals[var] = ir.Var(var.name_hint, dual_type(t))

    def _blocks(self) -> list[ir.Expr]:
        """The bodies, branches and clauses, each after the one that it stands in."""
        found = [self.func.body]
        for body in found:
            for let in ir.let_chain(body)[0]:
                match let.value:
                    case ir.If(_, yes, no):
                        found += [yes, no]
                    case ir.Match(_, clauses):
                        found += [c.rhs for c in clauses]
                    case ir.Function(_, inner):
                        found.append(inner)
                    case _:
                        pass
        return found

    # ---- values

    def dual(self, atom: ir.Expr) -> ir.Expr:
        """What stands for an atom where its tensors take their cells along."""
        if atom in self.cells:
            return ir.Tuple((atom, self.cells[atom]))
        return self.duals.get(atom, atom)

    def _received(self, var: ir.Var, value: ir.Expr) -> Bindings:
        """A variable for a value that comes with cells."""
        if var not in self.cells:
            return [(self.duals.get(var, var), value)]
        pair = ir.Var(f"{var.name_hint}_pair", dual_type(cast(ir.Type, type_of(var))))
        return [(pair, value), *self._parts(var, pair)]

    def _parts(self, var: ir.Var, pair: ir.Expr) -> Bindings:
        return [(var, ir.TupleGetItem(pair, 0)), (self.cells[var], ir.TupleGetItem(pair, 1))]

    def _let(self, var: ir.Var, value: ir.Expr) -> Bindings:
        match value:
            case ir.Constant():
                return [(var, value), (self.cells[var], _cell(var))]
            case ir.Call(op=ir.Op()):
                return self._operator(var, value)
            case ir.Call():
                return self._received(var, self._call(value))
            case ir.Function():
                return [(self.duals[var], self._function(value))]
            case ir.If():
                branches = self.built[value.true_branch], self.built[value.false_branch]
                return self._received(var, ir.If(value.cond, *branches))
            case ir.Match():
                return self._received(var, ir.Match(self.dual(value.data), self._clauses(value), value.complete))
            case ir.Tuple(fields):
                return self._received(var, ir.Tuple(map(self.dual, fields)))
            case ir.TupleGetItem(of, index):
                return self._received(var, ir.TupleGetItem(self.dual(of), index))
            case ir.RefCreate(content):
                return self._received(var, ir.RefCreate(self.dual(content)))
            case ir.RefRead(ref):
                return self._received(var, ir.RefRead(self.dual(ref)))
            case ir.RefWrite(ref, content):
                return self._received(var, ir.RefWrite(self.dual(ref), self.dual(content)))
            case _:
                return self._received(var, self.dual(value))

    def _call(self, node: ir.Call) -> ir.Expr:
        types, args = [dual_type(t) for t in node.type_args or ()], [self.dual(a) for a in node.args]
        if isinstance(node.op, ir.GlobalVar):
            return ir.Call(self.globals.name(node.op), (self.bp, *args), None, types)
        return ir.Call(self.dual(node.op), args, node.attrs, types if isinstance(node.op, ir.Constructor) else None)

    def _function(self, func: ir.Function) -> ir.Function:
        if func.is_primitive or func.attr("Compiler"):
            raise _refused("a kernel", "take it before FuseOps")
        params, body = self._parameters(func.params, self.built[func.body])
        ret = None if func.ret_type is None else dual_type(func.ret_type)
        return ir.Function(params, body, ret, func.type_params, func.attrs)

    def function(self) -> ir.Function:
        """The function with cells beside the tensors of its parameters and its result."""
        return self._function(self.func)

    def _parameters(self, old: Iterable[ir.Var], body: ir.Expr) -> tuple[list[ir.Var], ir.Expr]:
        params: list[ir.Var] = []
        for var in old:
            t = type_of(var)
            pair = ir.Var(var.name_hint, dual_type(t)) if isinstance(t, ir.TensorType) else self.duals.get(var, var)
            params.append(pair)
            body = _bound(self._parts(var, pair), body) if var in self.cells else body
        return params, body

    def _clauses(self, node: ir.Match) -> list[ir.Clause]:
        made: list[ir.Clause] = []
        for clause in node.clauses:
            old = pattern_vars(clause.lhs)
            new, body = self._parameters(old, self.built[clause.rhs])
            known = dict(zip(old, new))
            made.append(ir.Clause(map_pattern(clause.lhs, lambda v, known=known: known[v]), body))
        return made

    # ---- operators

    def _operator(self, var: ir.Var, value: ir.Call) -> Bindings:
        """The call, a cell for its result, and a step back."""
        t = type_of(value)
        node = ir.rebuild(value, (value.op, *(self.constants.get(a, a) for a in value.args)))
        assert isinstance(node, ir.Call)
        set_type(node, t)
        raw = {a: _raw(self.duals[a], type_of(a)) for a in node.args if a in self.duals}
        plain = ir.Call(node.op, [raw.get(a, a) for a in node.args], node.attrs, node.type_args, span=value.span)
        if isinstance(t, ir.TensorType):
            out, made = var, [(var, plain), (self.cells[var], _cell(var))]
            grad: object = ir.RefRead(self.cells[var])
        else:
            out = ir.Var(f"{var.name_hint}_raw", t)
            made = [(out, plain), (self.duals[var], _with_cells(out, t))]
            grad = _gradients(self.duals[var], t)
        if not any(
            isinstance(p, ir.TensorType) and p.dtype.startswith(("float", "bfloat"))
            for p in type_leaves(cast(ir.Type, t))
        ):
            return made
        back, last = ir.Var("back", BACK.value), ir.Var("_", ir.TupleType())
        memo: dict[ir.Expr, ir.Expr] = {**raw, node: out}
        steps: Bindings = []
        for arg, g in zip(node.args, gradient_rule(node)(node, node, grad), strict=True):
            cell = self.cells.get(arg, self.duals.get(arg))
            if cell is not None:
                steps += _added(cell, type_of(arg), g, memo)
        step = ir.Function((), _bound(steps, ir.Call(back, ())), ir.TupleType())
        return [*made, (back, ir.RefRead(self.bp)), (last, ir.RefWrite(self.bp, step))]


def _bound(bindings: Bindings, body: ir.Expr) -> ir.Expr:
    for var, value in reversed(bindings):
        body = ir.Let(var, value, body)
    return body


def _cell(value: ir.Expr) -> ir.Expr:
    return ir.RefCreate(call("zeros_like", value))


def _raw(dual: ir.Expr, t: ir.Type | None) -> ir.Expr:
    """A value without its cells."""
    match t:
        case ir.TensorType():
            return ir.TupleGetItem(dual, 0)
        case ir.TupleType():
            return ir.Tuple([_raw(ir.TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)])
        case _:
            return dual


def _with_cells(value: ir.Expr, t: ir.Type | None) -> ir.Expr:
    """A value with a new cell for each tensor."""
    match t:
        case ir.TensorType():
            return ir.Tuple((value, _cell(value)))
        case ir.TupleType():
            return ir.Tuple([_with_cells(ir.TupleGetItem(value, i), f) for i, f in enumerate(t.fields)])
        case _:
            raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")


def _gradients(dual: ir.Expr, t: ir.Type | None) -> object:
    """What the cells hold; of a tuple a list."""
    if isinstance(t, ir.TupleType):
        return [_gradients(ir.TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)]
    return ir.RefRead(ir.TupleGetItem(dual, 1))


def _added(dual: ir.Expr, t: ir.Type | None, grad: object, memo: dict[ir.Expr, ir.Expr]) -> Bindings:
    """A gradient added to what a cell holds (`dual` is the cell of a tensor, or the tuple with its cells)."""
    if grad is None:
        return []
    if isinstance(t, ir.TupleType):
        fields = cast("list[object]", grad.fields if isinstance(grad, ir.Tuple) else grad)
        cells = [ir.TupleGetItem(dual, i) for i in range(len(t.fields))]
        parts = [c if isinstance(f, ir.TupleType) else ir.TupleGetItem(c, 1) for c, f in zip(cells, t.fields)]
        return [b for c, f, g in zip(parts, t.fields, fields) for b in _added(c, f, g, memo)]
    value = ir.rewrite(cast(ir.Expr, grad), lambda new, old: new, memo=dict(memo))
    return [(ir.Var("_", ir.TupleType()), ir.RefWrite(dual, call("add", ir.RefRead(dual), value)))]


def higher_order_gradient(func: ir.Function, mod: ir.IRModule | None = None) -> ir.Function:
    """The function of `func`'s result and a tuple of the gradients of its parameters, which are tensors or tuples.

    Converted functions of `mod` that it calls are put into `mod` under their names with `_grad`. Raises
    `RelayValueError` for operators whose gradient is not known, `RelayTypeError` for parameters and results that are no
    tensors.
    """
    known, bp = Conversions(ir.IRModule() if mod is None else mod, "grad"), ir.Var("bp", BACK)
    if func.type_params:
        raise _refused("a function with type parameters", "give it types")
    converter = _Converter(func, known, bp)
    start: Bindings = [(bp, ir.RefCreate(ir.Function((), ir.Tuple(()), ir.TupleType())))]
    params = [ir.Var(p.name_hint, type_of(p), span=p.span) for p in converter.func.params]
    given = [ir.Var(f"{p.name_hint}_pair", dual_type(cast(ir.Type, type_of(p)))) for p in params]
    start += [(pair, _with_cells(p, type_of(p))) for pair, p in zip(given, params)]
    t = type_of(converter.func.body)
    out = ir.Var("out", dual_type(cast(ir.Type, t)))
    start.append((out, ir.Call(converter.function(), given)))
    back = ir.Var("back", BACK.value)
    ones = _gradients_of_result(out, t)
    start += [*ones, (back, ir.RefRead(bp)), (ir.Var("_", ir.TupleType()), ir.Call(back, ()))]
    grads = [_read(pair, type_of(p)) for pair, p in zip(given, params)]
    known.finish(lambda callee: _with_cell(callee, known))
    return ir.Function(params, _bound(start, ir.Tuple((_raw(out, t), ir.Tuple(grads)))), None, (), func.attrs)


def _with_cell(func: ir.Function, known: Conversions) -> ir.Function:
    """A converted function of the module: its first parameter is the cell `bp`."""
    bp = ir.Var("bp", BACK)
    made = _Converter(func, known, bp).function()
    return ir.FunctionWithFields(made, params=(bp, *made.params))


def _gradients_of_result(out: ir.Expr, t: ir.Type | None) -> Bindings:
    """Ones are added to the cells of the result."""
    if isinstance(t, ir.TupleType):
        return [b for i, f in enumerate(t.fields) for b in _gradients_of_result(ir.TupleGetItem(out, i), f)]
    if not isinstance(t, ir.TensorType):
        raise RelayTypeError(f"a gradient needs tensors, not {t}", code="gradient.not-a-tensor")
    return _added(ir.TupleGetItem(out, 1), t, call("ones_like", ir.TupleGetItem(out, 0)), {})


def _read(dual: ir.Expr, t: ir.Type | None) -> ir.Expr:
    if isinstance(t, ir.TupleType):
        return ir.Tuple([_read(ir.TupleGetItem(dual, i), f) for i, f in enumerate(t.fields)])
    return ir.RefRead(ir.TupleGetItem(dual, 1))
