"""Kernels of the virtual machine put together: what can be computed at one point of a program is one network.

The passes leave a chain of lets with a kernel in each, its weights handed to it. As one network, with the weights in
it, they are compiled as `relay.build` compiles a graph: weights packed, layouts chosen, memory planned, one call.

What no network can hold (control flow, closures, shapes that depend on data) stays where it is and in its order.
Kernels have no effects, so each belongs to the network behind the last such thing that it needs. Programs that say
themselves where their tensors lie are left as they are.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from relaylab.codegen.native_function import with_native_code
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, Let, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.types import TupleType
from relaylab.ir.visit import children, rewrite, walk
from relaylab.transform import DeadCodeElimination, InferType

NETWORK = "Network"
"""The attribute of a function that is one network: kernels, each bound by a let, and its results."""


def is_network(func: Function) -> bool:
    """Whether a function is a network that `with_networks` made."""
    return bool(func.attr(NETWORK, 0))


def with_networks(mod: IRModule) -> IRModule:
    """A module after the passes of the virtual machine with its kernels put together, typed."""
    if any(isinstance(n, Op) and n.definition.stateful for n in walk(mod.functions.values())):
        return mod  # memory that is written to: what a kernel reads depends on when it runs
    facts = _Facts(mod)
    if any(isinstance(n, Let) and count > 1 for n, count in facts.uses.items()):
        return mod  # no A-normal form (level 0): what two expressions share would be bound in both
    new = {gv: facts.function(func) for gv, func in mod.functions.items()}
    if all(new[gv] is func for gv, func in mod.functions.items()):
        return mod
    return InferType()(DeadCodeElimination()(InferType()(mod.with_functions(new))))


@dataclass
class _Place:
    """A point of a chain of lets: what is bound there first, and the kernels that can run then."""

    bound: list[tuple[Var, Expr]] = field(default_factory=list)
    members: dict[Var, Expr] = field(default_factory=dict)


class _Facts:
    """What the variables of a module stand for, and how often each is used."""

    def __init__(self, mod: IRModule):
        self.uses: Counter[Expr] = Counter()
        self.constants: dict[Expr, Constant] = {}
        self.kernels: dict[Expr, Function] = {}
        lets: list[Let] = []
        for node in walk(mod.functions.values(), _outside_kernels):
            if not isinstance(node, Let):
                self.uses.update(children(node))
                continue
            lets.append(node)
            self.uses.update((node.value, node.body))
            if isinstance(node.value, Constant):
                self.constants[node.var] = node.value
            elif isinstance(node.value, Function) and with_native_code(node.value):
                self.kernels[node.var] = node.value
        self.heads = {*lets} - {let.body for let in lets}
        """The lets with which chains begin."""

    def function(self, func: Function) -> Function:
        """A function of the module, rewritten."""
        if not isinstance(func, Function) or func.is_primitive:
            return func
        keep = lambda n: isinstance(n, Function) and not _outside_kernels(n)
        new = rewrite(func, lambda new, old: self.chain(new) if old in self.heads else new, keep=keep)
        return new if isinstance(new, Function) else func

    def chain(self, body: Expr) -> Expr:
        """A chain of lets with its kernels put together."""
        chain = _Chain(self)
        while isinstance(body, Let):
            chain.add(body.var, body.value)
            body = body.body
        return chain.written(body)

    def kernel(self, call: Expr) -> Function | None:
        """The kernel that an expression calls with variables and constants, if it does that."""
        if not isinstance(call, Call) or not all(isinstance(a, (Var, Constant)) for a in call.args):
            return None
        op = call.op
        return op if isinstance(op, Function) and with_native_code(op) else self.kernels.get(op)


def _outside_kernels(node: Expr) -> tuple[Expr, ...]:
    return () if isinstance(node, Function) and (node.is_primitive or is_network(node)) else children(node)


class _Chain:
    """One chain of lets, taken apart by when each can be computed."""

    def __init__(self, facts: _Facts):
        self.facts = facts
        self.places: list[_Place] = [_Place()]
        self.level: dict[Expr, int] = {}

    def add(self, var: Var, value: Expr) -> None:
        """The next let."""
        needed = [a for a in _parts(value) if isinstance(a, Var)]
        at = max((self.level.get(a, 0) for a in needed), default=0)
        here = self.places[at].members
        field_of = isinstance(value, TupleGetItem) and value.tuple_value in here
        if self.facts.kernel(value) is not None or field_of:
            here[var] = value
        elif _is_plain(value) and not any(a in here for a in needed):
            self.places[at].bound.append((var, value))
        else:
            at = len(self.places)
            self.places.append(_Place([(var, value)]))
        self.level[var] = at

    def written(self, result: Expr) -> Expr:
        """The chain as lets again."""
        bound = [pair for place in self.places for pair in (*place.bound, *self.network(place.members))]
        for var, value in reversed(bound):
            result = Let(var, value, result)
        return result

    def network(self, members: dict[Var, Expr]) -> list[tuple[Var, Expr]]:
        """The lets that call a network; of a kernel alone, without weights, its own."""
        facts = self.facts
        used = [a for v in members.values() for a in children(v)]
        constants = {a: c for a in used if isinstance(c := facts.constants.get(a, a), Constant)}
        if not constants and sum(isinstance(v, Call) for v in members.values()) < 2:
            return list(members.items())
        inner: dict[Expr, Var] = {var: Var(var.name_hint, var.checked_type) for var in members}
        params: dict[Expr, Var] = {}
        body: list[tuple[Var, Expr]] = []
        for var, value in members.items():
            if isinstance(value, TupleGetItem):
                body.append((inner[var], TupleGetItem(inner[value.tuple_value], value.index)))
            elif isinstance(value, Call) and (kernel := facts.kernel(value)) is not None:
                for a in value.args:
                    if a not in inner and a not in constants and a not in params:
                        params[a] = Var(f"p{len(params)}", a.checked_type)
                args = [next(known[a] for known in (inner, constants, params) if a in known) for a in value.args]
                body.append((inner[var], Call(kernel, args, span=value.span)))
        within = Counter(used)
        return _called([v for v in members if facts.uses[v] > within[v]], inner, params, body)


def _parts(value: Expr) -> tuple[Expr, ...]:
    return (value,) if isinstance(value, Var) else children(value)


def _is_plain(value: Expr) -> bool:
    """What may be computed earlier than it is written: it looks at nothing but its parts, which are variables."""
    if isinstance(value, (Var, Tuple, TupleGetItem)):
        return all(isinstance(p, Var) for p in _parts(value))
    return isinstance(value, Constant) or (isinstance(value, Function) and not _outside_kernels(value))


def _called(
    cuts: list[Var], inner: dict[Expr, Var], params: dict[Expr, Var], body: list[tuple[Var, Expr]]
) -> list[tuple[Var, Expr]]:
    """The lets that give `cuts` their values: the call of a network of the lets `body`, and its results."""
    parts: dict[Var, list[Expr]] = {}
    for var in cuts:
        t, own = var.checked_type, inner[var]
        parts[var] = [TupleGetItem(own, k) for k in range(len(t.fields))] if isinstance(t, TupleType) else [own]
    outputs = [part for var in cuts for part in parts[var]]
    result = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    for var, value in reversed(body):
        result = Let(var, value, result)
    call = Call(Function(list(params.values()), result, attrs={NETWORK: 1}), list(params))
    if len(outputs) == 1 and not isinstance(cuts[0].checked_type, TupleType):
        return [(cuts[0], call)]
    whole = Var("network")
    lets: list[tuple[Var, Expr]] = [(whole, call)]
    given = iter([TupleGetItem(whole, k) for k in range(len(outputs))] if len(outputs) > 1 else [whole])
    for var in cuts:
        found = [next(given) for _ in parts[var]]
        lets.append((var, Tuple(found) if isinstance(var.checked_type, TupleType) else found[0]))
    return lets
