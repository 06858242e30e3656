"""One function drawn as parts: nodes, edges and groups whose ids are still keys into the program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from relaylab.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.adt import pattern_vars
from relaylab.ir.visit import children
from relaylab.viz.graph import facts
from relaylab.viz.graph.boxes import ATOMS, BoxPlan, Key
from relaylab.viz.graph.view import Edge, Group, Node, Operand

Inputs = Iterable[tuple[Expr, str, str]]  # operand, its name, the kind of the edge that brings it
MOST_FIELDS = 3  # of tuples within tuples that a title says


@dataclass(slots=True)
class GraphParts:
    """The parts of a view to be; `stems` are the beginnings of their ids, `names` the let variables bound to them."""

    nodes: list[tuple[Hashable, Hashable, Node]] = field(default_factory=list)
    edges: list[tuple[Hashable, Hashable, Edge]] = field(default_factory=list)
    groups: list[tuple[Hashable, Hashable, Group]] = field(default_factory=list)
    stems: dict[Hashable, str] = field(default_factory=dict)
    names: dict[Hashable, list[str]] = field(default_factory=dict)
    functions: dict[tuple[str, str], Hashable] = field(default_factory=dict)
    """Of each global function, the keys of its node (`node`, name) and of its box (`box`, name)."""


class GraphBuilder:
    """Draws what a `Plan` says, one method a node kind."""

    def __init__(
        self,
        plan: BoxPlan,
        parts: GraphParts,
        functions: Mapping[str, Expr],
        texts: Mapping[Expr, str],
        costs: Callable[[Expr], Mapping[str, float]],
    ):
        self.plan, self.parts, self.functions, self.texts, self.costs = plan, parts, functions, texts, costs
        self.types: dict[Expr, str] = {}
        self.foreign = {k for k in parts.stems if isinstance(k, Expr)}
        self.grouped: set[Key] = set()
        self.patterns: dict[Var, tuple[Match, int]] = {}
        for match in (e for e in plan.order if isinstance(e, Match)):
            for slot, clause in enumerate(match.clauses):
                self.patterns |= dict.fromkeys(pattern_vars(clause.lhs), (match, slot))

    def run(self) -> None:
        """Draw everything, operands first."""
        for expr in self.plan.order:
            if isinstance(expr, Let):
                self._bind(expr)
            if self.plan.is_box(expr) and expr not in self.patterns:
                self._node(expr)
            elif isinstance(expr, Call) and expr in self.plan.inlined:
                self.open((expr.op, 0))
        if isinstance(self.plan.root, Function) and self.plan.name:
            self.parts.functions["node", self.plan.name] = self._key(self.plan.root)
            self.parts.functions["box", self.plan.name] = self._group_key((self.plan.root, 0))

    # -- keys and stems --------------------------------------------------------------------------

    def _key(self, expr: Expr) -> Hashable:
        """The key of a node: itself, or with the function's name where another function has drawn it too."""
        return (self.plan.name, expr) if expr in self.foreign else expr

    def _part(self, expr: Expr, part: str) -> Hashable:
        return (self._key(expr), part)

    def _group_key(self, key: Key | None) -> Hashable:
        return None if key is None else self._part(key[0], f"box{key[1]}")

    def _stem(self, text: str) -> str:
        return f"{self.plan.name}/{text}" if self.plan.name else text

    # -- groups ----------------------------------------------------------------------------------

    def open(self, key: Key | None) -> Hashable:
        """The key of a group that is certainly there, with all the groups around it."""
        at = key
        while at is not None and at not in self.grouped:
            self.grouped.add(at)
            around = self.plan.outside(at)
            made = self._group_key(at)
            self.parts.groups.append((made, self._group_key(around), self._group(at)))
            self.parts.stems[made] = self._stem(self._group_stem(at))
            at = around
        return self._group_key(key)

    def _group_stem(self, key: Key) -> str:
        owner, slot = key
        if isinstance(owner, Function) and owner is self.plan.root and self.plan.name:
            return "@box"
        return f"{facts.kind_family(owner)[0]}-box{slot or ''}"

    def _group(self, key: Key) -> Group:
        owner, slot = key
        if isinstance(owner, Function):
            return self._function_group(owner)
        if isinstance(owner, If):
            return Group("", "branch", ("then", "else")[slot])
        if isinstance(owner, Match):
            return Group("", "clause", f"{facts.pattern_text(owner.clauses[slot].lhs)} =>")
        return Group("", "let", f"let %{owner.var.name_hint}" if isinstance(owner, Let) else "")

    def _function_group(self, func: Function) -> Group:
        call = self.plan.kernels.get(func)
        named = f"@{self.plan.name}" if func is self.plan.root and self.plan.name else ""
        kind = "primitive" if func.is_primitive else "function"
        title = named or (facts.kernel_title(func) if func.is_primitive else facts.function_title(func))
        shown = func if call is None else call
        return Group(
            "",
            kind,
            title,
            detail="" if call is None else "a call of this function",
            type=self._type(shown),
            attrs=facts.attrs_of(func),
            span=facts.place_of(shown),
            text=self.texts.get(shown, ""),
            cost=tuple(self.costs(shown).items()),
        )

    # -- lets ------------------------------------------------------------------------------------

    def _bind(self, let: Let) -> None:
        """Note the variable's name on the value's box, and keep effects in order."""
        if self.plan.is_plain_let(let):
            return
        value = self._value(let.value)
        if value is None:
            return
        call = let.value
        badge = self._group_key((call.op, 0)) if isinstance(call, Call) and call in self.plan.inlined else value
        name = self.texts.get(let.var) or f"%{let.var.name_hint}"  # two variables of one name have two in the text
        self.parts.names.setdefault(badge, []).append(name)
        after = self._value(let.body.value if isinstance(let.body, Let) else let.body)
        if len(self.plan.uses[let.var]) == 1 and after not in (None, value):
            self.parts.edges.append((value, after, Edge("", "", -2, "order")))

    # -- values ----------------------------------------------------------------------------------

    def _type(self, expr: Expr) -> str:
        """The type of a node as text: asked where it is made and wherever it is used."""
        if (known := self.types.get(expr)) is None:
            known = self.types[expr] = facts.type_of(expr)
        return known

    def _value(self, expr: Expr) -> Hashable:
        """The key of the box that an operand comes from; None for what is a row."""
        return self._box(self.plan.resolve(expr))

    def _box(self, source: Expr) -> Hashable:
        """The key of the box in which a value is made."""
        if isinstance(source, Var) and source in self.patterns:
            match, slot = self.patterns[source]
            return self._part(match, f"case{slot}")
        if isinstance(source, Var) and source in self.plan.bound:
            return self._key(self.plan.bound[source])
        return self._key(source) if self.plan.is_box(source) else None

    def _connect(self, expr: Expr, inputs: Inputs, key: Hashable, ordered: bool) -> tuple[Operand, ...]:
        """Edges for the operands that are boxes, rows for the others."""
        rows, brought = [], []
        for position, (operand, name, kind) in enumerate(inputs):
            value = self._box(source := self.plan.resolve(operand))
            if value is not None:
                rows.append(Operand(position, name, type=self._type(operand)))
                brought.append((value, source, position, name, kind, rows[-1].type))
            elif self.plan.params != "hide" or not isinstance(source, ATOMS[:2]):
                rows.append(facts.operand_row(position, name, source, self._title(source)))
        named = ordered and len(brought) > 1
        for value, *edge in brought:
            self.parts.edges.append((value, key, self._edge(expr, named, *edge)))
        return tuple(rows)

    def _edge(self, expr: Expr, named: bool, source: Expr, position: int, name: str, kind: str, type_: str) -> Edge:
        if isinstance(source, Function) and self._inside(expr, source):
            return Edge("", "", position, "recursion", "recursion", type_)
        label = ""
        if kind != "body" and (named or kind != "data"):
            label = name or str(position)
            if isinstance(source, Var) and source in self.patterns:
                label = f"%{source.name_hint}"
        return Edge("", "", position, kind, label, type_)

    def _inside(self, expr: Expr, func: Function) -> bool:
        """Whether a node is in the body of a function."""
        return self.plan.homes[expr].ancestor_at(self.plan.homes[func].depth + 1).owner is func and expr is not func

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, expr: Expr) -> None:
        key = self._key(expr)
        if isinstance(expr, Match):
            self._cases(expr)
        operands = self._connect(expr, self._inputs(expr), key, self._ordered(expr))
        kind, family = facts.kind_family(expr)
        title = self._title(expr)
        node = Node(
            "",
            kind,
            title,
            expr.op.name if isinstance(expr, Call) and isinstance(expr.op, Op) else "",
            family,
            rows=self._rows(expr),
            operands=operands,
            type=self._type(expr),
            attrs=facts.attrs_of(expr),
            span=facts.place_of(expr),
            text=self.texts.get(expr, ""),
            cost=tuple(self.costs(expr).items()),
        )
        self.parts.nodes.append((key, self.open(self.plan.group(expr)), node))
        self.parts.stems[key] = self._stem(title if isinstance(expr, (Call, Var)) or title.startswith("@") else kind)
        if isinstance(expr, Call) and isinstance(expr.op, GlobalVar) and expr.op.name_hint in self.functions:
            self._link(expr.op.name_hint, key)

    def _title(self, expr: Expr) -> str:
        """What a node is called: fields of tuples after what makes the tuple, constants as their text names them."""
        if expr is self.plan.root and self.plan.name:
            return f"@{self.plan.name}"
        if isinstance(expr, TupleGetItem):
            return self._field(expr)
        known = self.texts.get(expr, "") if isinstance(expr, Constant) and expr.data.ndim else ""
        return facts.title(expr) if not known or known.startswith("meta[") else known

    def _field(self, expr: TupleGetItem) -> str:
        """The field of a tuple after what makes it, also where that is a field itself, of few tuples within tuples."""
        made, path = self.plan.resolve(expr.tuple_value), [expr.index]
        while isinstance(made, TupleGetItem) and len(path) < MOST_FIELDS:
            path.append(made.index)
            made = self.plan.resolve(made.tuple_value)
        return f"{facts.title(made)}.{'.'.join(map(str, reversed(path)))}"

    def _link(self, name: str, key: Hashable) -> None:
        """The edge from a global function's box to a call of it."""
        again = name == self.plan.name
        edge = Edge("", "", -1, "recursion", "recursion") if again else Edge("", "", -1, "callee")
        self.parts.edges.append((("node" if again else "box", name), key, edge))

    @staticmethod
    def _ordered(expr: Expr) -> bool:
        """Whether it matters which operand is which."""
        return not (isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in facts.COMMUTATIVE)

    def _inputs(self, expr: Expr) -> Inputs:
        if isinstance(expr, Call):
            named = zip(expr.args, facts.operand_names(expr, self._callee(expr.op)))
            callee = [] if isinstance(expr.op, (Op, GlobalVar, Constructor)) else [(expr.op, "fn", "callee")]
            return [*[(a, n, "data") for a, n in named], *callee]
        match expr:
            case Function():
                return [(expr.body, "body", "body")]
            case Let():
                return [(expr.value, "value", "data")]
            case If():
                return [(e, n, "data") for e, n in zip(children(expr), ("cond", "then", "else"))]
            case Match():
                return [(c.rhs, f"case {i}", "data") for i, c in enumerate(expr.clauses)]
            case Tuple():
                return [(e, str(i), "data") for i, e in enumerate(expr.fields)]
        return [(e, n, "data") for e, n in zip(children(expr), ("ref" if isinstance(expr, RefWrite) else "", "value"))]

    def _callee(self, op: Expr) -> Expr:
        """What a call calls, looked up through lets and global names."""
        return self.functions.get(op.name_hint, op) if isinstance(op, GlobalVar) else self.plan.resolve(op)

    def _rows(self, expr: Expr) -> tuple[str, ...]:
        if isinstance(expr, Function) and expr is self.plan.root:
            return (facts.signature(expr),) if expr.params else ()
        return ()

    def _cases(self, match: Match) -> None:
        """A box for the pattern of every clause, fed by the matched value."""
        for slot, clause in enumerate(match.clauses):
            key = self._part(match, f"case{slot}")
            operands = self._connect(match, [(match.data, "value", "data")], key, False)
            node = Node("", "pattern", facts.pattern_text(clause.lhs), family="control", operands=operands)
            self.parts.nodes.append((key, self.open((match, slot)), node))
            self.parts.stems[key] = self._stem("case")
            if self._value(clause.rhs) is None:
                self.parts.edges.append((key, self._key(match), Edge("", "", slot, "order")))
