"""A program in which data decides sizes as parts between which they are found.

How many elements `argwhere` finds, or where a slice ends that values bound, no shape tells. Each such value becomes a
parameter whose sizes have names, so that what is computed from it is an open program, as if a caller had brought it.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from relaylab.codegen.open.choices import around, dims_said, is_apart, with_choices_apart, with_types_of_arguments
from relaylab.codegen.open.equal import with_equal_sizes
from relaylab.codegen.open.told import shape_told, with_told_sizes
from relaylab.codegen.open.types import PROBES, KnownSizes, dims_of, numbered
from relaylab.codegen.open.values import Followed
from relaylab.interp.sizes import NO_SIZES, with_known_sizes
from relaylab.ir.dims import AnyDim, SizeVar
from relaylab.ir.expr import Call, Constant, Expr, Function, FunctionWithFields, Tuple, TupleGetItem, Var
from relaylab.ir.free import free_vars, sizes_in
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets, op_name
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.ir.visit import children, rewrite, substitute, walk
from relaylab.op.base import Operator
from relaylab.support.errors import RelayError, RelayTypeError
from relaylab.transform import DynamicToStatic, EliminateCommonSubexpr, InferType, SimplifyExpr
from relaylab.transform.normal_forms.first_order import first_order

GRAPH = (Call, Constant, Op, Tuple, TupleGetItem, Var)
MOST_ROUNDS = 16
"""How often what is found may lead to what is found next: types are inferred anew for each."""


@dataclass(eq=False)
class SizeFinding:
    """A call that says sizes, or is a choice or loop: its value is `var`, whose sizes have names; it is made of
    `takes`: the arguments, or (`padded`) tensors that begin with the value, and how many rows of each those are.
    """

    call: Call
    var: Var
    takes: list[Expr] = field(default_factory=list)

    def __post_init__(self) -> None:
        of_operator = isinstance(self.call.op, Op)  # a choice or a loop is a function
        self.room = cast(Operator, facets(self.call)).with_room(self.call.args) if of_operator else None
        if isinstance(self.room, Call):
            self.room = Call(self.room.op, self.room.args, self.room.attrs, span=self.call.span)

    @property
    def padded(self) -> bool:
        """Whether a kernel finds it, as far as there is room for."""
        return self.room is not None

    def asks(self) -> Sequence[Expr]:
        """What is computed for it, of what the call takes."""
        return self.call.args if self.room is None else [self.room]


@dataclass(eq=False)
class Part:
    """An open program: a function whose parameters are values, and the values that it gives, in order."""

    function: Function
    gives: list[Var]


@dataclass(eq=False)
class StagedProgram:
    """A program as steps in order, and its results."""

    params: list[Var]
    steps: list[Part | SizeFinding]
    results: list[Expr]


def data_decides(mod: IRModule) -> bool:
    """Whether there are sizes in a typed program that have no names."""
    return any(_is_unknown(node.inferred) for node in walk((mod["main"],)))


def cut(mod: IRModule) -> StagedProgram:
    """The parts of a typed program and what is found between them.

    Raises RelayTypeError `codegen.open-operator` for sizes that nothing finds once before they are used.
    """
    named, findings = _named(mod)
    return _Cutting(named["main"], findings).made()


# ---- names for what is found


def _named(mod: IRModule) -> tuple[IRModule, list[SizeFinding]]:
    """The program with a parameter for each value that says sizes; what those are computed from are further results."""
    mod = InferType()(first_order(_told(_simpler(_with_named_inputs(with_choices_apart(mod))))))
    mod = with_equal_sizes(_with_results(mod, [mod["main"].body], mod["main"].params))
    findings: list[SizeFinding] = []
    for _ in range(MOST_ROUNDS):
        body = mod["main"].body
        calls = _next_found(body)
        names = [f"found_{len(findings) + k}" for k in range(len(calls))]
        if not calls:
            break
        followed = Followed(walk((body,), around))
        new = [SizeFinding(c, Var(name, _found_type(c, name, followed))) for c, name in zip(calls, names)]
        fields = [*children(body), *[a for f in new for a in f.asks()]]
        renewed = rewrite(Tuple(fields), lambda now, _: now, memo={f.call: f.var for f in new})
        findings += new
        mod = with_equal_sizes(
            _told(_simpler(_with_results(mod, children(renewed), [*mod["main"].params, *[f.var for f in new]])))
        )
    for node in walk((mod["main"].body,), around):
        what = op_name(node) or type(node).__name__
        if _is_unknown(node.inferred):
            raise RelayTypeError(f"`{what}` gives the unknown shape {node.inferred}", code="codegen.open-operator")
        if not isinstance(node, GRAPH) or (isinstance(node, Call) and not isinstance(node.op, Op)):
            raise RelayTypeError(f"a program with `{what}` is no graph", code="codegen.open-operator")
    _connect(mod["main"], findings)
    return mod, findings


def _simpler(mod: IRModule) -> IRModule:
    """The program in which what says a size is computed once, at every level of optimization: it is found once then."""
    for simpler in (DynamicToStatic(), InferType(), SimplifyExpr(), EliminateCommonSubexpr(), InferType()):
        mod = simpler(mod)
    return mod


def _next_found(body: Expr) -> list[Call]:
    """The calls that find something, but those that sizes which are found next may tell."""
    calls: list[Call] = []
    behind: set[Expr] = set()
    """What is computed of something that has sizes without names."""
    for node in walk((body,), around):
        if _finds(node):
            calls.append(cast(Call, node))
        if _is_unknown(node.inferred) or not behind.isdisjoint(around(node)):
            behind.add(node)
    return [c for c in calls if behind.isdisjoint(c.args)] or calls


def _told(mod: IRModule) -> IRModule:
    """The program with known sizes wherever those that have names decide them, within choices and loops too."""
    return with_told_sizes(mod, with_types_of_arguments)


def _found_type(found: Call, name: str, followed: Followed) -> Type:
    """The type of what is found: sizes have names where nothing else tells them."""
    told, t = shape_told(found, followed), found.checked_type
    if told is not None and isinstance(t, TensorType):
        t = TensorType([d if type(n) is AnyDim else n for d, n in zip(t.shape, told)], t.dtype)
    return _with_names(t, name)


def _with_named_inputs(mod: IRModule) -> IRModule:
    """The program with a name of its own for each unknown size of its inputs."""
    main = mod["main"]
    if not any(_is_unknown(p.checked_type) for p in main.params):
        return mod
    params = [Var(p.name_hint, _with_names(p.checked_type, p.name_hint)) for p in main.params]
    body = substitute(main.body, dict(zip(main.params, params)))
    named = FunctionWithFields(main, params=params, body=body, ret_type=None)
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): named}))


def _with_results(mod: IRModule, results: Iterable[Expr], params: Sequence[Var]) -> IRModule:
    main = FunctionWithFields(mod["main"], params=list(params), body=Tuple([*results]), ret_type=None)
    return InferType()(mod.with_functions({**mod.functions, mod.get_global_var("main"): main}))


def _connect(main: Function, findings: Sequence[SizeFinding]) -> None:
    """Say for each value that is found from what it is computed, and which parameter it is now."""
    params, fields = iter(main.params[len(main.params) - len(findings) :]), iter(children(main.body)[1:])
    for finding in findings:
        finding.var = next(params)
        finding.takes = [next(fields) for _ in finding.asks()]


def _finds(node: Expr) -> bool:
    """Whether a call of an operator has sizes that no sizes of its arguments tell, only their values; or it is a choice
    or loop of which all arguments have sizes.
    """
    if isinstance(node, Call) and is_apart(node):
        return not any(_is_unknown(a.checked_type) for a in node.args)
    if not isinstance(node, Call) or not _is_unknown(node.checked_type) or not isinstance(node.op, Op):
        return False
    types = [a.checked_type for a in node.args]
    if any(map(_is_unknown, types)) or node.op.definition.stateful:
        return False
    record = cast(Operator, facets(node))
    return with_known_sizes(record, NO_SIZES) is record and any(_unknown_for(record, types, n) for n in PROBES)


def _unknown_for(record: Operator, types: Sequence[Type], number: int) -> bool:
    """Whether an operator's sizes are unknown though all of its arguments' are this number."""
    known = dict.fromkeys(sizes_in([d for t in types for d in dims_of(t)]), number)
    try:
        return _is_unknown(record.relation(KnownSizes(), *[numbered(t, known) for t in types]))
    except RelayError:
        return False


def _is_unknown(t: Type | None) -> bool:
    return any(type(d) is AnyDim for d in dims_of(t))


def _with_names(t: Type, name: str) -> Type:
    """A type with a size called so for each that has no name."""
    if isinstance(t, TupleType):
        return TupleType([_with_names(f, name) for f in t.fields])
    if not isinstance(t, TensorType):
        return t
    return TensorType([SizeVar(name) if type(d) is AnyDim else d for d in t.shape], t.dtype)


# ---- which part computes what


class _Cutting:
    """What is computed behind which findings, and where it is needed first."""

    def __init__(self, main: Function, findings: Sequence[SizeFinding]):
        self.findings: Mapping[Expr, SizeFinding] = {f.var: f for f in findings}
        self.params = main.params[: len(main.params) - len(findings)]
        self.origin = {d: p for p in reversed(main.params) for d in dims_of(p.checked_type)}
        """Where each size is told."""
        self.sized: dict[Expr, list[Var]] = {}
        for finding in findings:
            if is_apart(finding.call):  # a function of its own has to be told the sizes of what it takes
                finding.takes += self.witnesses(finding.takes, finding.takes)
        self.result = children(main.body)[0]
        order = [*walk((self.result,), self.below)]
        self.found = [self.findings[n] for n in order if n in self.findings]
        self.level: dict[Expr, int] = {}
        for node in order:
            behind = max((self.level[c] for c in self.below(node)), default=0)
            self.level[node] = behind + (node in self.findings)
        self.stage = self.needed(order)
        self.values: dict[Expr, Var] = {}
        """The variables of values that a part hands on."""
        self.given: dict[int, dict[Expr, Var]] = {}

    def below(self, node: Expr) -> Sequence[Expr]:
        """What is computed before a node."""
        found = self.findings.get(node)
        if found is not None:
            return found.takes
        if not isinstance(node, Call):
            return children(node)
        if node not in self.sized:
            self.sized[node] = self.says_sizes(node)
        return [*node.args, *self.sized[node]]

    def says_sizes(self, node: Call) -> list[Var]:
        """What is found of which a call, its attributes too, knows the size alone."""
        told = sizes_in([d for a in node.args for d in dims_of(a.checked_type)])
        sizes = [size for size in sizes_in([*dims_of(node.checked_type), *dims_said(node)]) if size not in told]
        return [self.origin[size] for size in sizes if self.origin.get(size) in self.findings]

    def needed(self, order: Sequence[Expr]) -> dict[Expr, int]:
        """The part that computes each node: the first that needs it. Fields of a tuple are taken where it is made."""
        stage = {self.result: self.level[self.result]}
        fields: dict[Expr, list[Expr]] = {}
        for node in reversed(order):
            until = self.level[node] - 1 if node in self.findings else stage[node]
            for c in self.below(node):
                stage[c] = min(stage.get(c, until), until)
                if isinstance(node, TupleGetItem):
                    fields.setdefault(c, []).append(node)
            stage |= dict.fromkeys(fields.get(node, ()), stage[node])
        return stage

    def made(self) -> StagedProgram:
        """The steps: each part, and what is found from what it gives."""
        results = [self.value(leaf) for leaf in leaves_of(self.result)]
        found: dict[int, list[SizeFinding]] = {}
        for finding in self.found:
            finding.takes = [self.handed(a) for a in finding.takes]
            found.setdefault(self.level[finding.var] - 1, []).append(finding)
        parts = {s: self.part(s) for s in range(self.level[self.result], -1, -1)}
        steps: list[Part | SizeFinding] = []
        for s in sorted(parts):
            part = parts[s]
            steps += [*([] if part is None else [part]), *found.get(s, ())]
        return StagedProgram(list(self.params), steps, results)

    def handed(self, node: Expr) -> Expr:
        """An argument made of values."""
        memo: dict[Expr, Expr] = {leaf: self.value(leaf) for leaf in leaves_of(node)}
        return rewrite(node, lambda new, _: new, memo=memo)

    def value(self, node: Expr) -> Expr:
        """What stands for a node outside of the part that computes it."""
        if isinstance(node, (Var, Constant)):
            return node
        if node not in self.values:
            var = self.values[node] = Var(f"value_{len(self.values)}", node.checked_type)
            self.given.setdefault(self.stage[node], {})[node] = var
        return self.values[node]

    def part(self, stage: int) -> Part | None:
        """The part of a stage, once all later ones have said what they take; None if it has nothing to give."""
        given = self.given.get(stage)
        if not given:
            return None
        memo: dict[Expr, Expr] = {}
        for root in given:
            for node in self.taken(root, stage):
                memo[node] = self.value(node)
        nodes = [*walk(given, lambda n: () if n in memo else children(n))]
        body = Tuple([rewrite(root, lambda new, _: new, memo=memo) for root in given])  # which fills the memo
        params = free_vars(body)
        nodes += params
        return Part(Function([*params, *self.witnesses(params, nodes)], body), list(given.values()))

    def witnesses(self, params: Sequence[Expr], nodes: Iterable[Expr]) -> list[Var]:
        """Values whose shapes tell the sizes in the types of these nodes that those of the parameters do not tell."""
        told = {d for p in params for d in dims_of(p.checked_type)}
        new: dict[Var, None] = {}
        for size in sizes_in([d for node in nodes for d in (*dims_of(node.inferred), *dims_said(node))]):
            if size in told:
                continue
            if size not in self.origin:
                raise RelayTypeError(f"the size `{size}` does not follow from the inputs", code="codegen.unknown-size")
            new.setdefault(self.origin[size])
            told |= {*dims_of(self.origin[size].checked_type)}
        return [*new]

    def taken(self, root: Expr, stage: int) -> list[Expr]:
        """The nodes below that earlier parts compute."""
        earlier = lambda n: isinstance(n, (Call, TupleGetItem)) and self.stage[n] < stage
        below = lambda n: () if isinstance(n, Var) or earlier(n) else children(n)
        return [n for n in walk((root,), below) if earlier(n)]


def leaves_of(node: Expr) -> Iterator[Expr]:
    """The values that tuples written out in an expression are made of, left to right."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Tuple):
            stack.extend(reversed(top.fields))
        else:
            yield top
