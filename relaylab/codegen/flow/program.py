"""A program with `if` and loops as structured items: blocks (graphs), choices, repetitions, moves between tensors.

A loop is a function that calls itself as the last thing it does: its parameters are the state. A parameter that each
turn hands on is no state, and one to which each turn only joins rows is a collector: rows are written behind or before
the others. What does not depend on the state is computed once, before the loop.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from relaylab.codegen.flow.items import (
    DEEPEST,
    Append,
    FlowBlock,
    FlowChoice,
    FlowProgram,
    Item,
    Leave,
    Move,
    Pin,
    Repeat,
    leaf_types,
    refused,
)
from relaylab.codegen.network.network import is_plain
from relaylab.ir.dims import AnyDim, SymbolicDim
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var, set_type
from relaylab.ir.free import free_vars
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import children, rewrite, walk
from relaylab.transform import InferType
from relaylab.transform.engine.renewal import as_function
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

MOST_PARTS = 256
"""How many blocks, choices and loops a program may have: each is compiled, that of a function wherever it is called."""
MOST_STATIC_PARTS = 64
"""How many if all shapes are known: the kernels of its functions are compiled already (`functions.py`)."""

Known: TypeAlias = Mapping[Expr, Expr]


def flow_program(mod: IRModule) -> FlowProgram:
    """The items of a typed module's `main`. RelayTypeError `codegen.no-flow` for more than graphs, `if` and loops."""
    functions = {g: as_function(to_gnf(f)) for g, f in mod.functions.items() if isinstance(f, Function)}
    return _FlowReader(InferType()(mod.with_functions({**mod.functions, **functions}))).read()


def _nest(t: Type | None, leaves: Iterator[Var]) -> Expr:
    return Tuple([_nest(f, leaves) for f in t.fields]) if isinstance(t, TupleType) else next(leaves)


class _FlowReader:
    """Reads the expressions of one module, outermost first."""

    def __init__(self, mod: IRModule):
        self.mod, self.main = mod, mod["main"]
        self.program = FlowProgram()
        self.count = self.depth = self.parts = 0
        is_open = any(is_dynamic(p.checked_type) for p in self.main.params)
        self.most = MOST_PARTS if is_open else MOST_STATIC_PARTS
        self.fields: dict[tuple[Expr, int], Expr] = {}
        self.entered: list[Expr] = []

    def read(self) -> FlowProgram:
        """All of `main`."""
        fresh = [(p, [self.fresh(t) for t in leaf_types(p.checked_type)]) for p in self.main.params]
        self.program.params = [v for _, leaves in fresh for v in leaves]
        known: dict[Expr, Expr] = {p: _nest(p.checked_type, iter(leaves)) for p, leaves in fresh}
        entry, body = self.mod.get_global_var("main"), self.main.body
        if any(n is entry for n in walk((body,))):  # its first turn is one of the loop, which knows nothing of another
            params = [Var(p.name_hint, p.checked_type) for p in self.main.params]
            known = dict(zip(params, known.values()))
            body = Call(entry, params)
            set_type(body, self.main.body.checked_type)
        self.program.items, self.program.results = _FlowScope(self, body, known).read()
        return self.program

    def fresh(self, t: TensorType) -> Var:
        """A variable for a tensor."""
        self.count += 1
        return Var(f"v{self.count}", TensorType(t.shape, t.dtype))

    def count_part(self) -> None:
        """RelayTypeError for more parts than are worth compiling."""
        self.parts += 1
        if self.parts > self.most:
            raise refused(f"a program of more than {self.most} blocks, choices and loops")

    def leaves(self, expr: Expr) -> list[Expr]:
        """The tensors that an expression is made of."""
        if isinstance(expr, Tuple):
            return [leaf for f in expr.fields for leaf in self.leaves(f)]
        t = expr.type_annotation if isinstance(expr, Var) and expr.inferred is None else expr.inferred
        if not isinstance(t, TupleType):
            return [expr]
        parts: list[Expr] = []
        for k, f in enumerate(t.fields):
            part = self.fields.setdefault((expr, k), TupleGetItem(expr, k))
            set_type(part, f)
            parts += self.leaves(part)
        return parts

    def callee(self, call: Expr) -> tuple[Expr, Function] | None:
        """By what name a function that is no kernel is called, and the function; None for other expressions."""
        if not isinstance(call, Call) or isinstance(call.op, Op):
            return None
        if isinstance(call.op, Function):
            return None if call.op.is_primitive else (call.op, call.op)
        if isinstance(call.op, Let) and call.op.var is call.op.body and isinstance(call.op.value, Function):
            return call.op.var, call.op.value
        if isinstance(call.op, GlobalVar) and isinstance(self.mod.functions.get(call.op), Function):
            return call.op, self.mod[call.op]
        raise refused("a call of a value")


class _FlowScope:
    """What is computed for certain where an expression is: blocks, and between them choices and loops.

    Everything has a stage: what a block computes that is only of earlier stages; a choice or loop begins the next.
    """

    def __init__(self, reader: _FlowReader, body: Expr, known: Known, also: Sequence[Expr] = ()):
        self.reader, self.body, self.known = reader, body, dict(known)
        self.roots = [*reader.leaves(body), *also]
        self.inner: dict[Expr, list[Expr]] = {}
        self.stage: dict[Expr, int] = {}

    def read(self) -> tuple[list[Item], list[Var]]:
        """The items, and where the tensors of the expression are then."""
        items = self.items()
        return items, [self.place(x) for x in self.reader.leaves(self.body)]

    def place(self, leaf: Expr) -> Var:
        """The variable that holds a tensor which was computed."""
        found = self.known.get(leaf, leaf)
        if isinstance(found, TupleGetItem):
            holder = self.known.get(found.tuple_value, found.tuple_value)
            if isinstance(holder, Tuple):
                return self.place(holder.fields[found.index])
        if isinstance(found, Constant):
            var = self.reader.fresh(TensorType(found.data.shape, found.data.dtype.name))
            self.reader.program.constants[var] = found.data.numpy()
            self.known[leaf] = found = var
        if not isinstance(found, Var):
            raise refused("a value of its own kind")
        return found

    def below(self, node: Expr) -> tuple[Expr, ...]:
        """What has to be computed before a node is, for certain."""
        if node in self.known:
            return ()
        if isinstance(node, If):
            return (node.cond, *self.both(node))
        called = self.reader.callee(node)
        if called is None:
            if not is_plain(node):
                raise refused(f"a {type(node).__name__}")
            return node.args if isinstance(node, Call) else children(node)
        if node not in self.inner:
            self.inner[node] = _invariant(called[1])
        return (*getattr(node, "args", ()), *self.inner[node])

    def both(self, node: If) -> list[Expr]:
        """The largest values that both branches of an `if` compute for certain."""
        if node not in self.inner:
            true, false = ({*walk((b,), self.below)} for b in (node.true_branch, node.false_branch))
            same = {n for n in true & false if isinstance(n, (Call, If, TupleGetItem)) and n not in self.known}
            reached = walk((node.true_branch, node.false_branch), lambda n: () if n in same else children(n))
            self.inner[node] = [n for n in reached if n in same]
        return self.inner[node]

    def items(self) -> list[Item]:
        """All that is needed, in order; afterwards `known` says where it is."""
        outside: Callable[[Expr], tuple[Expr, ...]] = lambda n: (
            () if n in self.known or isinstance(n, Function) else children(n)
        )
        for n in walk(self.roots, outside):  # those first that others are computed from
            if isinstance(n, If) and n not in self.known:
                self.both(n)
        nodes = [n for n in walk(self.roots, self.below) if n not in self.known]
        inside = set(nodes)
        controls = [n for n in nodes if self.is_control(n)]
        for n in controls:
            parts = self.parts(n)
            reached = walk(parts, lambda x: () if x in inside or x in self.known else children(x))
            self.inner[n] = [x for x in reached if x in inside and not isinstance(x, (Constant, Function, Op))]
        stage = self.stage
        for n in walk(nodes, lambda n: [x for x in self.below(n) if x in inside]):
            stage[n] = max((stage.get(x, 0) for x in self.below(n)), default=0) + self.is_control(n)
        cuts = self.cuts(nodes)
        items: list[Item] = []
        for k in range(1 + max(stage.values(), default=0)):
            items += [i for n in controls if stage[n] == k for i in self.control(n)]
            items += self.block([x for x in cuts if self.at(x) == k])
        return items

    def is_control(self, node: Expr) -> bool:
        """Whether a node is no part of a graph."""
        return isinstance(node, If) or self.reader.callee(node) is not None or self.pinned(node) is not None

    def pinned(self, node: Expr) -> Expr | None:
        """The rows of a loop to which a reshape gives a number that is known."""
        if op_name(node) != "reshape" or not isinstance(node, Call):
            return None
        before, after = node.args[0].inferred, node.inferred
        if not isinstance(before, TensorType) or not isinstance(after, TensorType) or not before.shape:
            return None
        known = all(isinstance(d, (int, SymbolicDim)) for d in after.shape)
        same = tuple(before.shape[1:]) == tuple(after.shape[1:])
        return node.args[0] if known and same and type(before.shape[0]) is AnyDim else None

    def parts(self, node: Expr) -> tuple[Expr, ...]:
        """Where else a choice or loop looks for what was computed."""
        if isinstance(node, If):
            return (node.true_branch, node.false_branch)
        called = self.reader.callee(node)
        return () if called is None else (called[1].body,)

    def cuts(self, nodes: Sequence[Expr]) -> list[Expr]:
        """The tensors that blocks hand on."""
        users = [n for n in nodes if not isinstance(n, (Tuple, TupleGetItem))]
        read = [(x, n) for n in users for u in self.below(n) for x in self.leaves_of(u)]
        given = [x for r in self.roots for x in self.leaves_of(r)]
        found = dict.fromkeys([*(x for x, n in read if self.at(x) < self.stage[n]), *given])
        return [x for x in found if isinstance(x.inferred, TensorType)]

    def at(self, leaf: Expr) -> int:
        """The stage of a tensor."""
        if leaf not in self.stage and isinstance(leaf, TupleGetItem):
            self.stage[leaf] = self.at(leaf.tuple_value)
        return self.stage.get(leaf, 0)

    def leaves_of(self, expr: Expr) -> list[Expr]:
        """Tensors that are computed here: constants stay where they are used."""
        if isinstance(expr, (Op, Function)):
            return []
        leaves = self.reader.leaves(expr)
        return [x for x in leaves if not isinstance(x, (Constant, Var)) and not self.is_elsewhere(x)]

    def is_elsewhere(self, leaf: Expr) -> bool:
        """Whether a tensor is known, or comes from a choice or loop."""
        while isinstance(leaf, TupleGetItem) and leaf not in self.known:
            leaf = leaf.tuple_value
        return leaf in self.known or self.is_control(leaf)

    def block(self, outputs: list[Expr]) -> list[Item]:
        """The graph that computes tensors of one stage."""
        if not outputs:
            return []
        post: Callable[[Expr, Expr], Expr] = lambda new, old: (
            new.tuple_value.fields[new.index]
            if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple)
            else new
        )
        body = rewrite(Tuple(outputs), post, memo=dict(self.known))
        self.reader.count_part()
        made = [self.reader.fresh(leaf_types(x.checked_type)[0]) for x in outputs]
        self.known |= dict(zip(outputs, made))
        return [FlowBlock(Function(list(free_vars(body)), body), made)]

    # ---- choices and loops

    def control(self, node: Expr) -> list[Item]:
        """The items of a choice or loop; its result is known then."""
        source = self.pinned(node)
        if source is not None:
            target = self.reader.fresh(leaf_types(node.checked_type)[0])
            self.known[node] = target
            return [Pin(target, self.place(source))]
        self.reader.count_part()
        self.reader.depth += 1
        if self.reader.depth > DEEPEST:
            raise refused(f"control flow more than {DEEPEST} deep")
        items = self.choice(node) if isinstance(node, If) else _Loop(self, node).read()
        self.reader.depth -= 1
        return items

    def choice(self, node: If) -> list[Item]:
        """An `if` whose value is used."""
        targets = [self.reader.fresh(t) for t in leaf_types(node.checked_type)]
        branches: list[list[Item]] = []
        for branch in (node.true_branch, node.false_branch):
            items, found = _FlowScope(self.reader, branch, self.known).read()
            branches.append([*items, *map(Move, targets, found)])
        self.known[node] = _nest(node.checked_type, iter(targets))
        return [FlowChoice(self.condition(node.cond), *branches)]

    def condition(self, cond: Expr) -> Var:
        """Where a truth value is."""
        t = leaf_types(cond.checked_type)[0]
        if t.dtype != "bool" or t.shape:
            raise refused(f"a condition of type {t}")
        return self.place(cond)


class _Loop:
    """A call of a function that calls itself last, or not at all."""

    def __init__(self, region: _FlowScope, call: Expr):
        self.region, self.reader, self.call = region, region.reader, call
        found = self.reader.callee(call)
        if found is None or not isinstance(call, Call):
            raise refused("a call")
        self.name, self.func = found
        if self.name in self.reader.entered:
            raise refused("recursion that is no loop")
        self.args = call.args
        tails = _tails(self.func.body)
        self.turns = [n for n in tails if isinstance(n, Call) and n.op is self.name]
        self.exits = [n for n in tails if n not in self.turns]
        self.results = [self.reader.fresh(t) for t in leaf_types(call.checked_type)]
        self.state: list[tuple[int, list[Var]]] = []
        self.collected: dict[int, tuple[Var, bool]] = {}

    def read(self) -> list[Item]:
        """Emptied collectors, the first state, and what is repeated."""
        known, items = dict(self.region.known), []
        for k, (p, arg) in enumerate(zip(self.func.params, self.args)):
            given = [self.region.place(x) for x in self.reader.leaves(arg)]
            before = self.collector(k, p)
            if all(t.args[k] is p for t in self.turns):
                known[p] = _nest(arg.checked_type, iter(given))
            elif before is not None:
                var = self.reader.fresh(leaf_types(p.checked_type)[0])
                self.collected[k] = var, before
                self.reader.program.collectors[var] = before
                known[p] = var
                items += [Append(var), Append(var, given[0], before)]
            else:
                own = [self.reader.fresh(t) for t in leaf_types(p.checked_type)]
                self.state.append((k, own))
                known[p] = _nest(p.checked_type, iter(own))
                items += map(Move, own, given)
        self.reader.entered.append(self.name)
        body = self.tail(self.func.body, known)
        self.reader.entered.pop()
        self.region.known[self.call] = _nest(self.call.checked_type, iter(self.results))
        return [*items, Repeat(body)]

    def collector(self, k: int, p: Var) -> bool | None:
        """Whether rows are put before the others of a parameter that is nothing but collected; None if it is not."""
        if not isinstance(p.checked_type, TensorType) or not p.checked_type.shape or not self.turns:
            return None
        if type(p.checked_type.shape[0]) is not AnyDim:
            return None
        new = [t.args[k] for t in self.turns if t.args[k] is not p]
        found = {None if pair is None else pair[0] for pair in (_joined(x, p) for x in new)}
        joins = {x.args[0] for x in new if isinstance(x, Call)}
        ends = {x for n in self.exits for x in walk((n,), _tuples)}
        users = [n for n in walk((self.func.body,)) if p in children(n) and n not in self.turns]
        return (
            found.pop()
            if len(found) == 1 and all(u in joins or u in ends or isinstance(u, If) for u in users)
            else None
        )

    def tail(self, expr: Expr, known: Known) -> list[Item]:
        """The items of what comes last in the function."""
        if isinstance(expr, If):
            also = self.shared(expr, known)
            region = _FlowScope(self.reader, expr.cond, known, also)
            items = region.items()
            self.reader.depth += 1
            if self.reader.depth > DEEPEST:
                raise refused(f"control flow more than {DEEPEST} deep")
            branches = [self.tail(b, region.known) for b in (expr.true_branch, expr.false_branch)]
            self.reader.depth -= 1
            return [*items, FlowChoice(region.condition(expr.cond), *branches)]
        if expr in self.turns and isinstance(expr, Call):
            return self.turn(expr, known)
        items, found = _FlowScope(self.reader, expr, known).read()
        if len(self.exits) == 1:  # what the last turn left stays where it is
            self.results = found
        return [*items, *(Move(t, s) for t, s in zip(self.results, found) if t is not s), Leave()]

    def shared(self, node: If, known: Known) -> list[Expr]:
        """What the condition of a choice is computed from and its branches use too."""
        region = _FlowScope(self.reader, node.cond, known)
        before = {n for n in walk((node.cond,), region.below) if n not in known and isinstance(n, Call)}
        used = walk((node.true_branch, node.false_branch), lambda n: () if n in before or n in known else children(n))
        return [n for n in used if n in before]

    def turn(self, call: Call, known: Known) -> list[Item]:
        """The next state: tensors of this turn are moved when all of them are known."""
        pairs = {k: _joined(call.args[k], self.func.params[k]) for k in self.collected}
        pieces = {k: pair[1] for k, pair in pairs.items() if pair is not None}
        new = [x for k, _ in self.state for x in self.reader.leaves(call.args[k])]
        region = _FlowScope(self.reader, Tuple([*new, *pieces.values()]), known)
        items, found = region.read()
        own = [v for _, state in self.state for v in state]
        moves = [(t, s) for t, s in zip(own, found) if t is not s]
        saved = {s: self.reader.fresh(leaf_types(s.type_annotation)[0]) for _, s in moves if s in own}
        items += [Move(copy, s) for s, copy in saved.items()]
        items += [Append(self.collected[k][0], s, self.collected[k][1]) for k, s in zip(pieces, found[len(own) :])]
        return [*items, *(Move(t, saved.get(s, s)) for t, s in moves)]


def _tuples(node: Expr) -> tuple[Expr, ...]:
    return node.fields if isinstance(node, Tuple) else ()


def _tails(body: Expr) -> list[Expr]:
    """What a function may give: what stands last in the branches of its last `if`s."""
    branches = lambda n: (n.true_branch, n.false_branch) if isinstance(n, If) else ()
    return [n for n in walk((body,), branches) if not isinstance(n, If)]


def _joined(arg: Expr, p: Var) -> tuple[bool, Expr] | None:
    """Whether `arg` is rows before those of `p`, or behind them, and these rows; None if it is anything else."""
    if op_name(arg) != "concatenate" or not isinstance(arg, Call) or facets(arg).axis != 0:
        return None
    fields = arg.args[0].fields if isinstance(arg.args[0], Tuple) else ()
    if len(fields) != 2 or (fields[0] is p) == (fields[1] is p):
        return None
    return fields[1] is p, fields[0] if fields[1] is p else fields[1]


def _invariant(func: Function) -> list[Expr]:
    """The largest tensors of a function's body that come from outside of it."""
    own: set[Expr] = {v for n in walk((func,)) if isinstance(n, Function) for v in n.params}
    own |= {n.var for n in walk((func,)) if isinstance(n, Let)}
    outside: dict[Expr, bool] = {}
    for n in walk((func.body,)):
        plain = is_plain(n) and n not in own and not isinstance(n, Op)
        parts = [c for c in children(n) if not isinstance(c, (Op, Constant))]
        outside[n] = plain and (isinstance(n, Var) or bool(parts)) and all(outside[c] for c in parts)
    inner = {c for n in outside if outside[n] for c in children(n)}
    return [n for n in outside if outside[n] and n not in inner and isinstance(n.inferred, TensorType)]
