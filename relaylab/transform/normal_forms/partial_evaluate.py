"""PartialEvaluate: what can be run before the program runs is run: calls, matches and branches on what is known, cells.

An online partial evaluator (Jones, Gomard and Sestoft, "Partial Evaluation and Automatic Program Generation", 1993)
of A-normal form, where effects have an order: every cell that is made and every write is done as often and in the same
order as before; only reads of what is known go. What nobody uses afterwards is for DeadCodeElimination.

It always ends. A function that calls itself is unrolled if something is known (a constructor with its fields, a small
number) of an argument that its branches depend on, and within its own unrolling only if the known part of some argument
is smaller than in every one around it; a function that does not may be entered again within itself by the functions
that it is given, `DEPTH` times. No function of the module gets more than `FUEL` bodies in all, and all of
them together no more for calls with arguments of which nothing is known, `main` first: each function of a row with all
that it calls would be as much as the square of the row.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import math

from relaylab import ir
from relaylab.analysis.components import strong_components
from relaylab.ir.adt import pattern_vars
from relaylab.ir.free import global_vars
from relaylab.ir.trail import derived, made_from
from relaylab.support.trampoline import Task, run
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass, create, is_optimizable
from relaylab.transform.engine.renewal import as_function, copied, inlined
from relaylab.transform.normal_forms.blocks import ATOMS, name_values
from relaylab.transform.normal_forms.partial_values import Cells, KnownValues, Written, deciding
from relaylab.transform.simplify.fold_constant import ConstantFolder

DEPTH = 64
"""How often a function is entered within itself by functions that it is given."""
FUEL = 5000
"""How many calls of one function are replaced by bodies at most, and how many of a module that tell nothing."""

Bindings = list[tuple[ir.Var, ir.Expr, ir.Let]]
"""The variables of one scope with their values, in the order of evaluation, and the lets that they come from."""


class _Functions:
    """The functions of a module that calls may be replaced by, in A-normal form."""

    def __init__(self, mod: ir.IRModule):
        calls = {gv: [c for c in global_vars(f) if c in mod.functions] for gv, f in mod.functions.items()}
        groups = strong_components(calls)
        self.mod = mod
        self.recursive: set[ir.Expr] = {gv for group in groups for gv in group if len(group) > 1 or gv in calls[gv]}
        self.normal: dict[ir.GlobalVar, ir.Function] = {}
        self.asked: dict[ir.Function, frozenset[int]] = {}
        self.fuel = FUEL

    def get(self, gv: ir.GlobalVar) -> ir.Function | None:
        """The function of a name; None if the module does not have it."""
        if gv not in self.normal and gv in self.mod.functions:
            self.normal[gv] = name_values(self.mod.functions[gv])
        return self.normal.get(gv)

    def deciding(self, func: ir.Function) -> frozenset[int]:
        """The parameters on which the branches of a function depend."""
        if func not in self.asked:
            self.asked[func] = deciding(func)
        return self.asked[func]


class _Evaluator:
    """Evaluates one function of a module."""

    def __init__(self, functions: _Functions):
        self.functions = functions
        self.fold = ConstantFolder()
        self.fuel = FUEL
        self.known, self.cells = KnownValues(), Cells()
        self.made: set[ir.Expr] = set()
        self.instead: dict[ir.Expr, ir.Expr] = {}
        self.met: set[ir.Expr] = set()
        self.recursive = set(functions.recursive)
        self.open: dict[ir.Function, list[tuple[list[float], list[ir.Expr]]]] = {}

    def function(self, func: ir.Function) -> Task[ir.Function]:
        """A function for calls that are not known: when it runs, the cells that it can see may hold anything."""
        outside, self.cells = self.cells, Cells()
        body: ir.Expr = yield self._scope(func.body)
        self.cells = outside
        with made_from(func):
            return as_function(derived(ir.rebuild(func, (*func.params, body)), func))

    def _scope(self, code: ir.Expr) -> Task[ir.Expr]:
        """Code evaluated into a scope of its own."""
        made: Bindings = []
        body: ir.Expr = yield self._block(code, made)
        for var, value, let in reversed(made):
            with made_from(let):
                same = let.var is var and let.value is value and let.body is body
                body = let if same else derived(ir.Let(var, value, body), let)
        return body

    def _block(self, code: ir.Expr, made: Bindings) -> Task[ir.Expr]:
        """Code evaluated into a scope: its bindings go to `made`; the result is the atom that stands for its value."""
        while isinstance(code, ir.Let):
            atom: ir.Expr = yield self._value(code, made)
            if atom is not code.var:
                self.instead[code.var] = derived(atom, code.var, code.value)
            code = code.body
        return self._atom(code)

    def _atom(self, expr: ir.Expr) -> ir.Expr:
        self.met.add(expr)
        return self.instead.get(expr, expr)

    def _value(self, let: ir.Let, made: Bindings) -> Task[ir.Expr]:
        """The atom that stands for what a `let` binds: its variable, unless the value is known to have another."""
        node = let.value
        match node:
            case ir.Function():
                new: ir.Expr = node if node.is_primitive else (yield self.function(node))
            case ir.If() | ir.Match():
                code = self._branch(node) if isinstance(node, ir.If) else self._clause(node)
                if code is not None:
                    return (yield self._block(code, made))
                new = yield self._branches(node)
            case _:
                with made_from(node):
                    new = derived(ir.rebuild(node, [self._atom(c) for c in ir.children(node)]), node)
                if isinstance(new, ir.Call) and (func := self._entered(new)) is not None:
                    atom = yield self._block(inlined(func, new), made)
                    self.open[func].pop()
                    return atom
                new = derived(self._simple(new), node)
        return new if isinstance(new, ATOMS) else self._bound(let, new, made)

    def _simple(self, node: ir.Expr) -> ir.Expr:
        """A node whose parts are atoms, or what is known of its value."""
        match node:
            case ir.Call(op=ir.Op()):
                return self._operator(node)
            case ir.TupleGetItem():
                value = self.known.value(node.tuple_value)
                return value.fields[node.index] if isinstance(value, ir.Tuple) else node
            case ir.RefRead():
                return self.cells.held.get(node.ref, node)
            case _:
                return self._atom(node)

    def _operator(self, call: ir.Call) -> ir.Expr:
        args = [self.known.value(a) for a in call.args]
        if not args or not all(isinstance(a, ir.Constant) for a in args):
            return call
        known = ir.rebuild(call, (call.op, *args))
        after = self.fold.node(known, call)
        return after if after is not known else call

    def _bound(self, let: ir.Let, value: ir.Expr, made: Bindings) -> ir.Expr:
        """A value that the program computes, bound to the variable of a `let`."""
        var = let.var
        if isinstance(value, ir.Tuple):  # an operator that was run gives constants without names
            value = ir.rebuild(value, [self._named(field, let, made) for field in value.fields])
        made.append((var, value, let))
        match value:
            case ir.Constant() | ir.Tuple() | ir.Call(op=ir.Constructor()):
                self.known.bind(var, value)
            case ir.Function():
                # bodies are copied as they were written: what became of them here was for calls that are not known
                self.known.bind(var, let.value)
                if var in self.met:
                    self.recursive.add(var)
            case ir.RefCreate():
                self.made.add(var)
                self.cells.put(var, value.value)
            case ir.RefWrite() if value.ref in self.made:
                self.cells.put(value.ref, value.value)
            case ir.RefWrite():
                self.cells.forget()
            case ir.Call() if not self._touches_no_cell(value.op):
                self.cells.forget()
            case _:
                pass
        return var

    def _named(self, value: ir.Expr, let: ir.Let, made: Bindings) -> ir.Expr:
        if isinstance(value, ATOMS):
            return value
        return self._bound(ir.Let(copied(ir.Var("x", span=let.span), let.value), value, let.var), value, made)

    def _touches_no_cell(self, callee: ir.Expr) -> bool:
        func = self.known.value(callee)
        return isinstance(func, ir.Op) or (isinstance(func, ir.Function) and func.is_primitive)

    def _entered(self, call: ir.Call) -> ir.Function | None:
        """The function that a call is replaced by, noted as one that is being unrolled."""
        callee = call.op
        func = self.functions.get(callee) if isinstance(callee, ir.GlobalVar) else self.known.value(callee)
        if not isinstance(func, ir.Function) or func.is_primitive or func.attr("Composite") or not is_optimizable(func):
            return None
        sizes, around = [self.known.size(a) for a in call.args], self.open.setdefault(func, [])
        recursive = callee in self.recursive
        told = any(size < math.inf or isinstance(self._callee(a), ir.Function) for size, a in zip(sizes, call.args))
        if self.fuel <= 0 or (self.functions.fuel <= 0 and not told):
            return None
        if around:
            least, given = around[-1]
            if not any(size < before for size, before in zip(sizes, least)):
                others = any(a is not b and isinstance(self._callee(a), ir.Function) for a, b in zip(call.args, given))
                if recursive or not others or len(around) >= DEPTH:
                    return None
            sizes = list(map(min, sizes, least))
        elif recursive and not any(sizes[k] < math.inf for k in self.functions.deciding(func)):
            return None
        self.fuel -= 1
        self.functions.fuel -= not told
        around.append((sizes, list(call.args)))
        return func

    def _callee(self, atom: ir.Expr) -> ir.Expr | None:
        return self.functions.get(atom) if isinstance(atom, ir.GlobalVar) else self.known.value(atom)

    def _branch(self, node: ir.If) -> ir.Expr | None:
        """The branch that is known to be taken."""
        cond = self.known.value(self._atom(node.cond))
        if not isinstance(cond, ir.Constant):
            return None
        return node.true_branch if bool(cond.data) else node.false_branch

    def _clause(self, node: ir.Match) -> ir.Expr | None:
        """The right side of the clause that is known to fit first, with the variables of its pattern known."""
        data = self._atom(node.data)
        for clause in node.clauses:
            binds: dict[ir.Expr, ir.Expr] = {}
            fits = self.known.fits(clause.lhs, data, binds)
            # it may fit when the program runs: no later clause may be chosen before that
            if fits is None:
                return None
            if fits:
                for var, atom in binds.items():
                    self.instead[var] = derived(atom, var)
                return clause.rhs
        return None

    def _branches(self, node: ir.If | ir.Match) -> Task[ir.Expr]:
        """A branch or a match on what is not known, with each way evaluated."""
        codes = (node.true_branch, node.false_branch) if isinstance(node, ir.If) else [c.rhs for c in node.clauses]
        ways: list[ir.Expr] = []
        ends: list[Written | None] = []
        for code in codes:
            mark = len(self.cells.log)
            ways.append((yield self._scope(code)))
            ends.append(self.cells.back(mark))
        self.cells.join(ends)
        with made_from(node):
            if isinstance(node, ir.If):
                new = ir.rebuild(node, (self._atom(node.cond), *ways))
            else:
                parts = ((*pattern_vars(c.lhs), way) for c, way in zip(node.clauses, ways))
                new = ir.rebuild(node, (self._atom(node.data), *(part for way in parts for part in way)))
            return derived(new, node)


def _evaluated(func: ir.Function, functions: _Functions) -> ir.Function:
    """One function with what is known evaluated, in A-normal form."""
    return run(_Evaluator(functions).function(name_values(func)))


@pass_(level=1, name="PartialEval", requires=("InferType",))
class PartialEvaluate(ModulePass):
    """Runs what is known before the program runs: calls, branches, matches, arithmetic, and reads of cells.

    A recursive function is unrolled as long as known data becomes smaller; on data that is not known it stays a call.
    """

    def run(self, mod: ir.IRModule, ctx: PassContext) -> ir.IRModule:
        # the type arguments of calls say what the type parameters of the bodies that replace them are
        mod = mod if all(f.inferred is not None for f in mod.functions.values()) else create("InferType")(mod)
        functions = _Functions(mod)
        order = sorted(mod.functions, key=lambda gv: gv.name_hint != "main")
        new = {gv: _evaluated(mod.functions[gv], functions) for gv in order}
        return mod.with_functions({gv: new[gv] for gv in mod.functions})
