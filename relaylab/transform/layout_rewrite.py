"""Rewriting a program to other layouts: the machinery of ConvertLayout and AlterOpLayout.

Each value may come in another layout than the program was written in; operators pass new layouts
on as far as their rules allow, and `layout_transform` is put where they must end. Nothing is
transformed twice: the transformed forms of a value are remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from relaylab.ir import Call, Expr, Function, Op, TensorType, Tuple, TupleGetItem, TupleType, children, rebuild, walk
from relaylab.ir.trail import derived, made_from
from relaylab.op.layout import parse_layout
from relaylab.transform.build import call
from relaylab.transform.copying import copied
from relaylab.transform.infer_type import type_of
from relaylab.transform.layout_rules import Pair, Plan, Site, rule_for

Chooser = Callable[[Site], Plan | None]
"""Chooses the layouts of a call by itself; None leaves the call to the rule of its operator."""


class Laid(NamedTuple):
    """A value in a new layout."""

    value: Expr
    pair: Pair


class LayoutRewriter:
    """Rewrites one function; `choose` says where new layouts begin."""

    def __init__(self, func: Function, choose: Chooser):
        self.func, self.choose = func, choose
        self.laid: dict[Expr, Laid | tuple[Laid | None, ...]] = {}
        self.memo: dict[Expr, Expr] = {}
        self.forms: dict[tuple[Expr, Pair], Expr] = {}

    def run(self) -> Function:
        for node in walk((self.func,)):
            with made_from(node):
                self._visit(node)
        return self.memo[self.func]  # type: ignore[return-value]

    def _visit(self, node: Expr) -> None:
        if isinstance(node, TupleGetItem) and isinstance(fields := self.laid.get(node.tuple_value), tuple):
            self._field(node, fields[node.index])
        elif isinstance(node, Tuple) and self._waits(node):
            pass
        elif not (isinstance(node, Call) and isinstance(node.op, Op) and self._planned(node)):
            self.memo[node] = derived(rebuild(node, [self.real(c) for c in children(node)]), node)

    def _waits(self, node: Tuple) -> bool:
        """A tuple of values in new layouts is built when it turns out that it is needed as such."""
        return any(isinstance(self.laid.get(f), Laid) for f in node.fields) and not any(
            isinstance(f, Tuple) for f in node.fields
        )

    def _field(self, node: TupleGetItem, laid: Laid | None) -> None:
        if laid is None:
            self.memo[node] = derived(rebuild(node, (self.memo[node.tuple_value],)), node)
        else:
            self.laid[node] = Laid(derived(rebuild(node, (laid.value,)), node), laid.pair)

    # ---- one call

    def _planned(self, node: Call) -> bool:
        """Rewrite a call in new layouts, if it is to have any."""
        args = [f for a in node.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
        given = tuple(laid.pair if isinstance(laid := self.laid.get(a), Laid) else None for a in args)
        site = Site(node, given, tuple(map(type_of, args)), type_of(node))
        plan = self.choose(site)
        rule = rule_for(node.op)  # type: ignore[arg-type]
        if plan is None and any(given) and rule is not None:
            plan = rule(site)
        if plan is None or not all(self._fits(a, p) for a, p in zip(args, plan.inputs)):
            return False
        self._apply(node, args, plan)
        return True

    def _fits(self, arg: Expr, pair: Pair | None) -> bool:
        """Whether an argument can be brought into a layout."""
        found = type_of(arg)
        if pair is None:
            return True
        old, new = parse_layout(pair[0]), parse_layout(pair[1])
        if not isinstance(found, TensorType) or len(found.shape) > old.ndim:
            return False
        if old.is_plain() and new.is_plain():
            return True
        extents = old.whole(found.shape) if len(found.shape) == old.ndim else {}
        return bool(extents) and all(
            isinstance(d, int) and d % new.factor(letter) == 0 for letter, d in extents.items()
        )

    def _apply(self, node: Call, args: list[Expr], plan: Plan) -> None:
        ready = iter([self.real(a) if p is None else self._form(a, p) for a, p in zip(args, plan.inputs)])
        new_args = [
            rebuild(a, [next(ready) for _ in a.fields]) if isinstance(a, Tuple) else next(ready) for a in node.args
        ]
        same = plan.attrs is node.attrs and all(a is b for a, b in zip(new_args, node.args))
        new = derived(node if same else Call(node.op, new_args, plan.attrs, node.type_args, node.span), node)
        if isinstance(type_of(node), TupleType):
            self.memo[node] = new
            self.laid[node] = tuple(Laid(new, p) if p is not None else None for p in plan.outputs)
        elif plan.outputs[0] is not None and plan.outputs[0][0] != plan.outputs[0][1]:
            self.laid[node] = Laid(new, plan.outputs[0])
        else:
            self.memo[node] = new

    # ---- values in the layout that is asked for

    def _form(self, arg: Expr, pair: Pair) -> Expr:
        """An argument in the new layout of `pair`, from whatever layout it is in."""
        old, want = pair
        laid = self.laid.get(arg)
        same_axes = isinstance(laid, Laid) and laid.pair[0] == old  # else `want` names the axes of the program otherwise
        if same_axes and laid.pair[1] == want:
            return laid.value
        key = (arg, pair)
        if key not in self.forms:
            source, layout = (laid.value, laid.pair[1]) if same_axes else (self.real(arg), old)
            self.forms[key] = copied(_transform(source, type_of(arg), layout, want), arg)
        return self.forms[key]

    def real(self, node: Expr) -> Expr:
        """The value in the layout that the program was written in."""
        if node not in self.memo:
            laid = self.laid.get(node)
            if isinstance(laid, Laid):
                self.memo[node] = copied(_transform(laid.value, type_of(node), laid.pair[1], laid.pair[0]), node)
            else:
                self.memo[node] = derived(rebuild(node, [self.real(c) for c in children(node)]), node)
        return self.memo[node]


def _transform(value: Expr, typ: object, source: str, target: str) -> Expr:
    if source == target:
        return value
    missing = parse_layout(source).ndim - len(typ.shape) if isinstance(typ, TensorType) else 0
    if missing > 0:
        value = call("expand_dims", value, axis=0, num_newaxis=missing)
    return call("layout_transform", value, src_layout=source, dst_layout=target)


def rewrite_layouts(func: Function, choose: Chooser) -> Function:
    """`func` with new layouts where `choose` asks for them, spread as far as the operators' rules allow."""
    return LayoutRewriter(func, choose).run()
