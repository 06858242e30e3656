"""ForwardFoldScaleAxis: a scale before a convolution or a dense layer moves into its weights."""

from __future__ import annotations

from typing import NamedTuple

from relaylab.ir import Call, Expr, Function, IRModule, children, is_call_to, post_order, rebuild
from relaylab.ir.trail import derived
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import rewrite_function
from relaylab.transform.simplify.scale_axis import (
    ACTIVATIONS,
    ADDITIONS,
    Message,
    fits,
    heavy_axes,
    is_light,
    scaled_weight,
    spread,
    squeezed,
)


def _requests(func: Function) -> dict[Expr, Message]:
    """For every value, along which axes all its users can take a scale over; found from the users down."""
    asked: dict[Expr, Message | None] = {}
    for node in reversed(post_order(func)):
        own = asked.get(node)
        for part, message in zip(children(node), _passed_on(node, own)):
            known = asked.get(part)
            asked[part] = message if part not in asked else known.meet(message) if known is not None else None
    return {node: m for node, m in asked.items() if m is not None}


def _passed_on(node: Expr, own: Message | None) -> list[Message | None]:
    """What a node asks of each of its children."""
    nothing: list[Message | None] = [None] * len(children(node))
    if (axes := heavy_axes(node, result=False)) is not None:
        return [None, Message(axes), None]
    if own is None or not isinstance(node, Call):
        return nothing
    if is_call_to(node, *ACTIVATIONS):
        return [None, Message(own.axes, True, own.divisor)]
    if is_call_to(node, *ADDITIONS):
        (a, b), asked = node.args, Message(own.axes, own.positive, True)
        return [None, asked, None] if fits(a, b, own.axes) else [None, None, asked] if fits(b, a, own.axes) else nothing
    return nothing


class _Scaled(NamedTuple):
    """A value without its scale: the true value is `value` times `scale` along `axes`."""

    value: Expr
    scale: Expr
    axes: tuple[int, ...]


class _Folder:
    """Carries scales forward, from the multiplications to the weights."""

    def __init__(self, func: Function):
        self.func = func
        self.requests = _requests(func)
        self.scaled: dict[Expr, _Scaled] = {}

    def run(self) -> Function:
        starts = any(is_call_to(node, "multiply") for node in self.requests)
        return rewrite_function(self.func, self._at) if starts else self.func

    def _at(self, new: Expr, old: Expr) -> Expr:
        if not isinstance(old, Call) or not isinstance(new, Call):
            return new
        if is_call_to(old, "multiply"):
            return self._take(new, old)
        if is_call_to(old, *ACTIVATIONS):
            return self._through(new, old)
        if is_call_to(old, *ADDITIONS):
            return self._add(new, old)
        found = self.scaled.get(old.args[0]) if heavy_axes(old, result=False) is not None else None
        if found is None or old.args[1] in self.scaled:
            return new
        return rebuild(new, (new.op, found.value, scaled_weight(old, new.args[1], found.scale, "I")))

    def _take(self, new: Call, old: Call) -> Expr:
        """A multiplication whose users all can take its scale over is left out."""
        asked = self.requests.get(old)
        if asked is None:
            return new
        for i, j in ((0, 1), (1, 0)):
            if fits(old.args[i], old.args[j], asked.axes) and is_light(old.args[j]):
                scale = squeezed(new.args[j], old.args[i], asked.axes, old.args[j])
                if asked.allows(scale):
                    return self._note(old, _Scaled(new.args[i], scale, asked.axes))
        return new

    def _note(self, old: Expr, scaled: _Scaled) -> Expr:
        self.scaled[old] = scaled
        return derived(scaled.value, old)

    def _through(self, new: Call, old: Call) -> Expr:
        found = self.scaled.get(old.args[0])
        return new if found is None else self._note(old, found._replace(value=rebuild(new, (new.op, found.value))))

    def _add(self, new: Call, old: Call) -> Expr:
        """What is added to an unscaled value is divided by the scale."""
        for i, j in ((0, 1), (1, 0)):
            found = self.scaled.get(old.args[i])
            if found is not None and fits(old.args[i], old.args[j], found.axes):
                other = call("divide", new.args[j], spread(found.scale, old.args[i], found.axes))
                args = (found.value, other) if i == 0 else (other, found.value)
                return self._note(old, found._replace(value=rebuild(new, (new.op, *args))))
        return new


@pass_(level=3, requires=("InferType",))
class ForwardFoldScaleAxis(FunctionPass):
    """Moves multiplications of channels by a vector into the weights of the convolution or dense layer after them."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return _Folder(func).run()
