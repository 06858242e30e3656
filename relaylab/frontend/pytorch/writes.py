"""What a program writes into tensors and views of them, as new tensors: `x[1:] = y` is x with a part replaced."""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

from relaylab.frontend.pytorch.table import name_of

Fx = Any
"""A node or an operator of torch.fx: torch need not be installed."""
SCATTERS = {"slice.Tensor": "slice_scatter", "select.int": "select_scatter"}
"""What replaces the part that a view shows."""
SAME_FORM = frozenset(("transpose.int", "t.default"))
"""Views that undo themselves."""
RESHAPED = frozenset(("view.default", "squeeze.dim"))
"""Views whose source is given its shape again, which must be known."""
VIEWS = frozenset((*SCATTERS, *SAME_FORM, *RESHAPED, "unsqueeze.default", "permute.default"))


_SEVERAL = frozenset(("aten::topk", "aten::sort", "aten::max", "aten::min", "aten::native_layer_norm"))
"""Operators of several results, each a tensor of its own."""


class NotByParts(Exception):
    """The program has to be taken apart as a whole: it changes tensors, or has parts that are programs."""


def changes(node: Fx) -> bool:
    """Does a call say that it changes a tensor that it is given? Of others the parts say it: batch norm in training."""
    return is_mutable(node.target)


def is_mutable(target: Fx) -> bool:
    """Does an operator change what it is given?"""
    schema = getattr(target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


class WrittenViews:
    """Tensors that are written into, their views, and which of the new nodes still show an earlier state.

    `is_new` tells whether an operator's result shares no memory with another tensor.
    """

    def __init__(self, torch: ModuleType, graph: Fx, is_new: Callable[[Fx], bool]):
        self.torch, self.graph, self.is_new = torch, graph, is_new
        self._base: dict[Fx, Fx] = {}
        self._state: dict[Fx, int] = {}
        self._shown: dict[Fx, int] = {}

    def base(self, node: Fx) -> Fx:
        """The tensor whose memory a node shows. Raises `NotByParts` where that, or who else shows it, is not known."""
        top = node
        while top not in self._base and _shows(top):
            top = top.args[0]
        top = self._base.get(top, top)
        if top not in self._state:
            if not self._owned(top):
                raise NotByParts
            self._find_views(top)
        return top

    def _owned(self, top: Fx) -> bool:
        """Is a tensor made by the program, and no other name of one: one of several results counts, if named once."""
        if top.op != "call_function" or top.target is not operator.getitem:
            return top.op == "call_function" and self.is_new(top.target)
        schema = getattr(top.args[0].target, "_schema", None)
        names = [n for n in top.args[0].users if n.args[1:] == top.args[1:]]
        return schema is not None and schema.name in _SEVERAL and len(names) == 1

    def _find_views(self, top: Fx) -> None:
        """Note all that show the memory of a tensor; what perhaps shows it must come after the last write."""
        found, open_ = {top}, [top]
        last, unclear = top, []
        while open_:
            node = open_.pop()
            for user in node.users:
                if _shows(user) and user.args[0] is node:
                    if user not in found:
                        found.add(user)
                        open_.append(user)
                        last = max(last, user) if changes(user) else last
                elif user.op != "output" and not changes(user) and not self.is_new(user.target):
                    unclear.append(user)
        if any(user < last for user in unclear):
            raise NotByParts
        self._state[top] = 0
        for node in found:
            self._base[node], self._shown[node] = top, 0

    def put(self, node: Fx, new: Fx, values: dict[Fx, Fx]) -> None:
        """`new` is in the place of what `node` has written into."""
        top = self._base[node]
        place = node.args[0]
        self._state[top] += 1
        self._note(node, new, values)
        while True:
            self._note(place, new, values)
            if place is top:
                return
            if not changes(place):
                new = self._behind(place, new, values, node)
            place = place.args[0]

    def refresh(self, node: Fx, values: dict[Fx, Fx]) -> None:
        """Bring what a node shows to the state of its memory."""
        top = self._base.get(node)
        if top is None or self._shown[node] == self._state[top]:
            return
        stale = []
        while self._shown[node] < self._state[top]:
            stale.append(node)
            node = node.args[0]
        for view in reversed(stale):
            source = view.args[0]
            again = values[source] if changes(view) else self.graph.node_copy(view, lambda n: values[n])
            self._note(view, again, values)

    def _note(self, node: Fx, new: Fx, values: dict[Fx, Fx]) -> None:
        values[node], self._shown[node] = new, self._state[self._base[node]]

    def _behind(self, view: Fx, new: Fx, values: dict[Fx, Fx], node: Fx) -> Fx:
        """What a view is of, with a new part in the place of what the view shows."""
        aten, name, source = self.torch.ops.aten, name_of(view.target), view.args[0]
        given = self.torch.fx.node.map_arg(view.args[1:], values.__getitem__)
        if name in SCATTERS:
            return self.made(getattr(aten, SCATTERS[name]).default, (values[source], new, *given), source, node)
        if name in SAME_FORM:
            return self.made(view.target, (new, *given), source, node)
        if name == "unsqueeze.default":
            return self.made(aten.squeeze.dim, (new, *given), source, node)
        if name in RESHAPED:
            return self.made(aten.view.default, (new, [*source.meta["val"].shape]), source, node)
        order = [d % len(view.args[1]) for d in view.args[1]]
        return self.made(view.target, (new, [order.index(k) for k in range(len(order))]), source, node)

    def made(self, target: Fx, args: tuple[Fx, ...], like: Fx, node: Fx) -> Fx:
        """A new node of the type of `like`, from the line of `node`."""
        new = self.graph.call_function(target, args)
        new.meta = {**node.meta, "val": like.meta["val"]}
        return new


def _shows(node: Fx) -> bool:
    """Does a node show the memory of its first argument, in a way that is known here?"""
    if node.op != "call_function" or not node.args or not hasattr(node.args[0], "users"):
        return False
    if changes(node):
        return not node.kwargs
    name = name_of(node.target)
    shaped = name not in RESHAPED or all(isinstance(n, int) for n in _sizes(node.args[0]))
    return name in VIEWS and not node.kwargs and shaped


def _sizes(node: Fx) -> list[Fx]:
    return [*getattr(node.meta.get("val"), "shape", [None])]
