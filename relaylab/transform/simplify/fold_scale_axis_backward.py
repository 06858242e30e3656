"""BackwardFoldScaleAxis: a scale after a convolution or a dense layer moves back into its weights."""

from __future__ import annotations

from typing import NamedTuple, cast

from relaylab.ir import Call, Expr, Function, IRModule, children, facets, is_call_to, post_order, rebuild
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import shape_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import rewrite_function
from relaylab.transform.simplify.scale_axis import (
    ACTIVATIONS,
    ADDITIONS,
    Message,
    fits,
    heavy_axes,
    is_light,
    is_nonnegative,
    scaled_weight,
    spread,
    squeezed,
)


class _Pending(NamedTuple):
    """A scale on its way back: along which axes."""

    axes: tuple[int, ...]
    scale: Expr


class _Folder:
    """Finds which values can take a scale, then carries the scales back to the weights."""

    def __init__(self, func: Function):
        self.func = func
        self.order = post_order(func)
        self.uses: dict[Expr, int] = {}
        for node in self.order:
            for part in children(node):
                self.uses[part] = self.uses.get(part, 0) + 1
        self.offers = self._offers()
        self.pending: dict[Expr, _Pending] = {}
        self.dropped: dict[Expr, Expr] = {}

    def run(self) -> Function:
        for node in reversed(self.order):
            if isinstance(node, Call):
                self._carry(node)
        return rewrite_function(self.func, self._at) if self.pending else self.func

    # ---- which values can take a scale

    def _offers(self) -> dict[Expr, Message]:
        out: dict[Expr, Message] = {}
        for node in self.order:
            if isinstance(node, Call) and self.uses.get(node, 0) == 1:
                message = self._offer(node, out)
                if message is not None:
                    out[node] = message
        return out

    def _offer(self, node: Call, known: dict[Expr, Message]) -> Message | None:
        if (axes := heavy_axes(node, result=True)) is not None:
            return Message(axes)
        offers = [known.get(a) for a in node.args]
        if is_call_to(node, *ACTIVATIONS) and offers[0] is not None:
            return Message(offers[0].axes, True)
        if is_call_to(node, "nn.bias_add") and offers[0] is not None:
            return offers[0] if offers[0].axes == (self._bias_axis(node),) else None
        return self._sum_offer(node, offers) if is_call_to(node, *ADDITIONS) else None

    def _bias_axis(self, node: Call) -> int:
        rank = len(shape_of(node.args[0]))
        return facets(node).axis % rank

    def _sum_offer(self, node: Call, offers: list[Message | None]) -> Message | None:
        (a, b), (left, right) = node.args, offers
        if left is not None and fits(a, b, left.axes):
            axes = left.axes
        elif right is not None and fits(b, a, right.axes):
            axes = right.axes
        elif left is not None and right is not None and left.axes == right.axes and shape_of(a) == shape_of(b):
            axes = left.axes
        else:
            return None
        # the scale goes on through all that offer to take it
        return Message(axes, any(o is not None and o.axes == axes and o.positive for o in offers))

    # ---- carrying scales back, from the users down

    def _carry(self, node: Call) -> None:
        pending = self.pending.get(node)
        if is_call_to(node, "multiply"):
            self._start(node)
        elif pending is None:
            return
        elif is_call_to(node, *ADDITIONS):
            for arg in node.args:
                if (offer := self.offers.get(arg)) is not None and offer.axes == pending.axes:
                    self.pending[arg] = pending
        elif is_call_to(node, *ACTIVATIONS, "nn.bias_add"):
            self.pending[node.args[0]] = pending

    def _start(self, node: Call) -> None:
        """A multiplication whose argument can take the scale is left out."""
        i = 0 if node.args[0] in self.offers else 1
        offer = self.offers.get(node.args[i])
        if offer is None or not fits(node.args[i], node.args[1 - i], offer.axes) or not is_light(node.args[1 - i]):
            return
        scale = squeezed(node.args[1 - i], node.args[i], offer.axes)
        if not offer.positive or is_nonnegative(scale):
            self.pending[node.args[i]] = _Pending(offer.axes, scale)
            self.dropped[node] = node.args[i]

    # ---- the new program

    def _at(self, new: Expr, old: Expr) -> Expr:
        if old in self.dropped:
            first, second = cast(Call, new).args
            return first if self.dropped[old] is cast(Call, old).args[0] else second
        pending = self.pending.get(old)
        if pending is None or not isinstance(new, Call) or not isinstance(old, Call):
            return new
        if heavy_axes(old, result=True) is not None:
            return rebuild(new, (new.op, new.args[0], scaled_weight(old, new.args[1], pending.scale, "O")))
        if is_call_to(old, *ADDITIONS, "nn.bias_add"):
            return rebuild(new, (new.op, *(self._scaled(i, new, old, pending) for i in range(2))))
        return new

    def _scaled(self, i: int, new: Call, old: Call, pending: _Pending) -> Expr:
        """An argument of an addition: scaled already if the scale went on through it, else scaled here."""
        if self.pending.get(old.args[i]) is pending:
            return new.args[i]
        bias = is_call_to(old, "nn.bias_add")
        return call(
            "multiply", new.args[i], pending.scale if bias else spread(pending.scale, old.args[1 - i], pending.axes)
        )


@pass_(level=3, requires=("InferType",))
class BackwardFoldScaleAxis(FunctionPass):
    """Moves multiplications of channels by a vector into the weights of the convolution or dense layer before them."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return _Folder(func).run()
