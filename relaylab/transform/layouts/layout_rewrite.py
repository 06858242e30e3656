"""Rewriting a program to other layouts: the machinery of ConvertLayout and AlterOpLayout.

Each value may come in another layout than the program was written in; operators pass new layouts
on as far as their rules allow, and `layout_transform` is put where they must end. Nothing is
transformed twice: the transformed forms of a value are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from relaylab.ir import (
    Call,
    Expr,
    Function,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    children,
    facets,
    is_call_to,
    rebuild,
    walk,
)
from relaylab.ir.trail import derived, made_from
from relaylab.op.layout import parse_layout
from relaylab.transform.engine.build import call
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.renewal import as_function, copied
from relaylab.transform.layouts.layout_rules import LayoutPlan, Pair, Site, rule_for
from relaylab.transform.layouts.registered import Asked, Layouts, flat, named_layouts, regrouped

Chooser = Callable[[Site], LayoutPlan | None]
"""Chooses the layouts of a call by itself; None leaves the call to the rule of its operator."""


class Laid(NamedTuple):
    """A value in a new layout."""

    value: Expr
    pair: Pair


class LayoutRewriter:
    """Rewrites one function; `choose` says where new layouts begin, unless a function is registered (`asked`)."""

    def __init__(self, func: Function, choose: Chooser, asked: Callable[[Call], Asked | None]):
        self.func, self.choose, self.asked = func, choose, asked
        self.laid: dict[Expr, Laid | tuple[Laid | None, ...]] = {}
        self.memo: dict[Expr, Expr] = {}
        self.forms: dict[tuple[Expr, Pair], Expr] = {}

    def run(self) -> Function:
        for node in walk((self.func,)):
            with made_from(node):
                self._visit(node)
        return as_function(self.memo[self.func])

    def _visit(self, node: Expr) -> None:
        if isinstance(node, TupleGetItem) and isinstance(fields := self.laid.get(node.tuple_value), tuple):
            self._field(node, cast("tuple[Laid | None, ...]", fields)[node.index])
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
        args = flat(node.args)
        given = tuple(laid.pair if isinstance(laid := self.laid.get(a), Laid) else None for a in args)
        site = Site(node, given, tuple(map(type_of, args)), type_of(node))
        ask, names = self.asked(node), named_layouts(node)
        if ask is not None and names is not None:
            return self._chosen(site, args, ask, names)
        plan = (self.choose(site) if ask is None else None) or _ruled(site)
        if plan is not None and not all(self._fits(a, p) for a, p in zip(args, plan.inputs)):
            plan = None
        if ask is not None:
            return self._exchanged(site, args, ask, plan)
        if plan is not None:
            self._apply(node, args, plan)
        return plan is not None

    # ---- one call for which a function is registered

    def _chosen(self, site: Site, args: list[Expr], ask: Asked, names: Layouts) -> bool:
        """A call whose attributes say its layouts: those of the call that the function returns are brought about."""
        old, out = names
        lies = [pair[1] if pair is not None and pair[0] == name else name for pair, name in zip(site.given, old)]
        inputs = [
            cast(Laid, self.laid[a]).value if lie != name else self.real(a) for a, lie, name in zip(args, lies, old)
        ]
        after = ask(inputs)
        if after is None:
            return False
        wanted, result = named_layouts(after) or names
        made: list[Expr] = []
        for k, arg in enumerate(after.args):
            want = wanted[k] if k < len(wanted) else None
            if k >= len(inputs) or want is None or lies[k] is None:
                made.append(arg)
            elif arg is inputs[k]:
                made.append(self._form(args[k], (cast(str, old[k]), want)))
            else:
                made.append(_transform(arg, None, cast(str, lies[k]), want))
        self._settle(site.call, rebuild(after, (after.op, *made)), ((out, result),))
        return True

    def _exchanged(self, site: Site, args: list[Expr], ask: Asked, plan: LayoutPlan | None) -> bool:
        """A call that works in any layout, if `plan` says so: so must the call that the function returns."""
        pairs = plan.inputs if plan is not None else (None,) * len(args)
        after = ask([self.real(a) if p is None else self._form(a, p) for a, p in zip(args, pairs)])
        if after is None:
            if plan is not None:
                self._apply(site.call, args, plan)
            return plan is not None
        ruled = _ruled(replace(site, call=after, given=pairs)) if len(flat(after.args)) == len(args) else None
        if ruled is not None and ruled.inputs == pairs:
            new = Call(after.op, after.args, ruled.attrs, after.type_args, span=after.span)
            self._settle(site.call, new, ruled.outputs)
        else:
            back = [a if p is None else _transform(a, None, p[1], p[0]) for a, p in zip(flat(after.args), pairs)]
            self._settle(site.call, rebuild(after, (after.op, *regrouped(after, back))), (None,))
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
        shape = (1,) * (old.ndim - len(found.shape)) + tuple(found.shape)
        return all(isinstance(d, int) and d % new.factor(x) == 0 for x, d in old.whole(shape).items())

    def _apply(self, node: Call, args: list[Expr], plan: LayoutPlan) -> None:
        ready = iter([self.real(a) if p is None else self._form(a, p) for a, p in zip(args, plan.inputs)])
        new_args = [
            rebuild(a, [next(ready) for _ in a.fields]) if isinstance(a, Tuple) else next(ready) for a in node.args
        ]
        same = plan.attrs is node.attrs and all(a is b for a, b in zip(new_args, node.args))
        new = node if same else Call(node.op, new_args, plan.attrs, node.type_args, span=node.span)
        self._settle(node, _needed(new) if new is not node else new, plan.outputs)

    def _settle(self, node: Call, new: Expr, outputs: tuple[Pair | None, ...]) -> None:
        """`new` stands for `node`, its results in these layouts."""
        new = derived(new, node)
        if isinstance(type_of(node), TupleType):
            self.memo[node] = new
            self.laid[node] = tuple(Laid(new, p) if p is not None else None for p in outputs)
        # a result in the layout of the program needs no way back
        elif outputs[0] is not None and outputs[0][0] != outputs[0][1]:
            self.laid[node] = Laid(new, outputs[0])
        else:
            self.memo[node] = new

    # ---- values in the layout that is asked for

    def _form(self, arg: Expr, pair: Pair) -> Expr:
        """An argument in the new layout of `pair`, from whatever layout it is in."""
        old, want = pair
        found = self.laid.get(arg)
        # in another layout of the same axes; else `want` names the axes of the program otherwise
        laid = found if isinstance(found, Laid) and found.pair[0] == old else None
        if laid is not None and laid.pair[1] == want:
            return laid.value
        key = (arg, pair)
        if key not in self.forms:
            source, layout = (laid.value, laid.pair[1]) if laid is not None else (self.real(arg), old)
            self.forms[key] = copied(_transform(source, type_of(arg) if laid is None else None, layout, want), arg)
        return self.forms[key]

    def real(self, node: Expr) -> Expr:
        """The value in the layout that the program was written in."""
        if node not in self.memo:
            laid = self.laid.get(node)
            if isinstance(laid, Laid):
                self.memo[node] = copied(_transform(laid.value, None, laid.pair[1], laid.pair[0]), node)
            else:
                self.memo[node] = derived(rebuild(node, [self.real(c) for c in children(node)]), node)
        return self.memo[node]


def _order(transpose: Call) -> list[int]:
    """For each axis of the result of a transpose the axis that it comes from; none where all are reversed."""
    axes = facets(transpose).axes or ()
    return [a % len(axes) for a in axes]


def _needed(new: Call) -> Expr:
    """A call; the argument of a transpose that leaves every axis where the new layout has it."""
    order = _order(new) if is_call_to(new, "transpose") else []
    return new.args[0] if order and order == sorted(order) else new


def _undone(order: Sequence[int], source: str, target: str) -> bool:
    """Does a change of layout bring every axis back to where it was before a transpose?"""
    before, after = parse_layout(target).axes, parse_layout(source).axes
    return len(order) == len(before) == len(after) and [before[a] for a in order] == list(after)


def _transform(value: Expr, typ: object, source: str, target: str) -> Expr:
    """`value` from one layout into another; its type tells which axes it lacks (None: it has all)."""
    if source == target:
        return value
    if is_call_to(value, "transpose") and _undone(_order(value), source, target):
        return value.args[0]
    missing = parse_layout(source).ndim - len(typ.shape) if isinstance(typ, TensorType) else 0
    if missing > 0:
        # broadcasting aligns the last axes: those that are missing are the first
        value = call("expand_dims", value, axis=0, num_newaxis=missing)
    return call("layout_transform", value, src_layout=source, dst_layout=target)


def _ruled(site: Site) -> LayoutPlan | None:
    """What the rule of the operator says, when arguments come in new layouts."""
    op = site.call.op
    rule = rule_for(op) if any(site.given) and isinstance(op, Op) else None
    return rule(site) if rule is not None else None


def rewrite_layouts(func: Function, choose: Chooser, asked: Callable[[Call], Asked | None]) -> Function:
    """`func` with new layouts where `choose` asks for them, spread as far as the operators' rules allow.

    `asked` gives the function that a program registered for a call, which decides then.
    """
    return LayoutRewriter(func, choose, asked).run()
