"""A program's graph of operators that have a converter: what has none is taken apart by torch, one operator at a time.

torch's own `run_decompositions` traces the whole program again, which takes far longer than all the rest of an import.
"""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from relaylab.frontend.pytorch.table import TABLE, name_of
from relaylab.frontend.pytorch.writes import NotByParts, WrittenViews, changes, is_mutable

Fx = Any
"""A node, a module or an operator of torch.fx, or what it is given: torch need not be installed."""

_NO_GRAD, _AUTOCAST = "wrap_with_set_grad_enabled", "wrap_with_autocast"
_SAME = frozenset(("detach_.default", "lift_fresh_copy.default", "lift_fresh.default"))
_TRACED = frozenset(("val", "tensor_meta"))
_NEW = frozenset(
    "adaptive_avg_pool2d batch_norm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"  # noqa: SIM905
    " group_norm instance_norm layer_norm linear log_softmax matmul max_pool1d max_pool2d max_pool3d pad rms_norm"
    " softmax upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d"
    " upsample_nearest3d upsample_trilinear3d".split()
)
"""Composed operators whose result is a tensor of its own; others may give their argument, and do not say so."""
_KEEPING = frozenset("copy fill index_add index_copy index_fill index_put masked_fill masked_scatter scatter".split())  # noqa: SIM905
"""Operators whose result has the data type of their first argument, whatever the others have."""
_WHOLE = frozenset(
    "arange.default arange.start detach.default log_softmax.int new_ones.default new_zeros.default ones.default"  # noqa: SIM905
    " ones_like.default softmax.int split.Tensor squeeze.default squeeze.dim stack.default sum.default"
    " sym_is_contiguous.default sym_size.int sym_stride.int t.default transpose.int unbind.int zeros.default"
    " zeros_like.default".split()
)
"""Operators that are the same as their parts: tracing them takes time and tells nothing."""


def needed(graph: Fx) -> list[Any]:
    """The nodes that say what a graph gives, changes or is given: checks that torch wrote into it compute nothing."""
    kept: set[Any] = set()
    for node in reversed(graph.nodes):
        runs = changes(node) or _takes_graphs(node.target)
        if runs or node in kept or node.op in ("output", "placeholder"):
            kept.update((node, *node.all_input_nodes))
    return [n for n in graph.nodes if n in kept]


class Expansion:
    """Builds the graph; `held` are the constants that it names. `known` says which operators stay as they are."""

    def __init__(self, torch: ModuleType, known: Callable[[str], bool], table: Callable[[], Mapping[Any, Any]]):
        self.torch, self.known, self.table = torch, known, table
        self.graph: Any = torch.fx.Graph()
        self.held: dict[str, Any] = {}
        self._traced: dict[object, Any] = {}
        self._writes = WrittenViews(torch, self.graph, _is_new)

    def copy(self, module: Fx, values: dict[Any, Any], origin: Fx = None) -> Fx:
        """Copy the nodes of a module's graph behind those that are there; what it gives. `origin` is what it is of."""
        for node in needed(module.graph):
            for given in node.all_input_nodes if origin is None else ():
                self._writes.refresh(given, values)
            if node.op == "output":
                return self.torch.fx.node.map_arg(node.args[0], values.__getitem__)
            if node not in values:
                values[node] = self._node(module, node, values, origin)
        raise NotByParts

    def _node(self, module: Fx, node: Fx, values: dict[Any, Any], origin: Fx) -> Fx:
        if node.op == "get_attr":
            held = attribute(module, node.target)
            if hasattr(held, "graph"):
                return held
            new = self.graph.get_attr(f"held{len(self.held)}")
            self.held[new.target] = held
            new.meta = {**node.meta}
            return new
        if node.op == "call_function":
            if getattr(node.target, "__name__", "") in (_NO_GRAD, _AUTOCAST):
                return self._part(node, values)
            if node.target is operator.getitem and isinstance(whole := values[node.args[0]], (list, tuple)):
                return whole[node.args[1]]
            if origin is None and changes(node) and name_of(node.target) not in _SAME:
                return self._purely(node, values)
            if origin is None and not self._stays(node.target):
                return self._expanded(node, values)
        new = self.graph.node_copy(node, lambda n: values[n])
        if origin is not None:
            new.meta = {k: v for k, v in origin.meta.items() if k not in _TRACED} | {
                k: v for k, v in node.meta.items() if k in _TRACED
            }
        return new

    def _stays(self, target: object) -> bool:
        """What torch takes apart is taken apart, as its parts are exact to the corners, but for a few."""
        name = name_of(target)
        if _takes_graphs(target):
            return False  # what is in its graphs is taken apart by torch
        return self.known(name) or (name in TABLE and (name in _WHOLE or target not in self.table()))

    def _purely(self, node: Fx, values: dict[Any, Any]) -> Fx:
        """`relu_` as `relu`, and what it has written into as a tensor that has the result in that place."""
        aten, changed = self.torch.ops.aten, node.args[0]
        word, _, overload = name_of(node.target).partition(".")
        word = word.removesuffix("_")
        pure = getattr(getattr(aten, word, None), overload, None)
        kinds = {a.meta["val"].dtype for a in node.args if hasattr(a, "meta") and hasattr(a.meta["val"], "dtype")}
        if pure is None or node.kwargs or not (len(kinds) == 1 or word in _KEEPING):
            raise NotByParts
        self._writes.base(node)
        if self._stays(pure):
            new = self._writes.made(pure, self.torch.fx.node.map_arg(node.args, values.__getitem__), changed, node)
        else:
            new = self._expanded(node, values, pure)
        self._writes.put(node, new, values)
        return new

    def _part(self, node: Fx, values: dict[Any, Any]) -> Fx:
        """What stands under `torch.no_grad`, or where nothing is cast: nodes as the others."""
        given = node.args
        if node.target.__name__ == _AUTOCAST:
            if given[2]:
                raise NotByParts
            given = given[3:]
        part = values[given[1]]
        inputs = [n for n in part.graph.nodes if n.op == "placeholder"]
        args = self.torch.fx.node.map_arg(given[2:], values.__getitem__)
        return self.copy(part, dict(zip(inputs, args)))

    def _expanded(self, node: Fx, values: dict[Any, Any], pure: Fx = None) -> Fx:
        """The parts of an operator without converter (`pure`: that writes into nothing); equal ones are traced once."""
        target = pure or node.target
        name = name_of(target)
        if name in _SAME:
            return values[node.args[0]]
        from torch._ops import OpOverload
        from torch.utils._pytree import tree_flatten

        if not isinstance(target, OpOverload) or is_mutable(target):
            raise NotByParts
        flat, spec = tree_flatten((node.args, node.kwargs))
        key = (target, str(spec), *map(_key, flat), _alike(flat))
        if key not in self._traced:
            self._traced[key] = self._trace(node, target, flat, spec)
        traced = self._traced[key]
        if traced is None:
            new = self.graph.node_copy(node, lambda n: values[n])
            new.target = target
            return new
        inputs = [n for n in traced.graph.nodes if n.op == "placeholder"]
        args = [values[n] for n in flat if hasattr(n, "meta")]
        return self.copy(traced, dict(zip(inputs, args)), node)

    def _trace(self, node: Fx, target: Fx, flat: list[Any], spec: Fx) -> Fx:
        """The graph of an operator's parts; None if torch leaves it whole."""
        from torch._dispatch.python import enable_python_dispatcher
        from torch._guards import detect_fake_mode
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils._pytree import tree_unflatten

        where = [k for k, v in enumerate(flat) if hasattr(v, "meta")]
        given = [flat[k].meta["val"] for k in where]
        mode = detect_fake_mode((given, node.meta["val"]))
        tensors = {id(v): flat[k] for k, v in zip(where, given) if hasattr(v, "shape")}
        shared = any(tensors.get(id(v), flat[k]) is not flat[k] for k, v in zip(where, given))
        if mode is None or shared or any(isinstance(v, (list, tuple)) for v in given):
            raise NotByParts

        def run(*tensors: Fx) -> Fx:
            full = list(flat)
            for k, v in zip(where, tensors):
                full[k] = v
            args, more = tree_unflatten(full, spec)
            return target(*args, **more)

        traced_by = lambda fn: make_fx(
            self.torch.func.functionalize(fn, remove="mutations_and_views"), decomposition_table=self.table()
        )(*given)
        sizes = getattr(mode.shape_env, "replacements", {})
        before = len(sizes)
        with mode, enable_python_dispatcher(), self.torch.no_grad():
            try:
                traced = traced_by(run)
                if any(changes(n) for n in needed(traced.graph) if n.op == "call_function"):
                    traced = traced_by(traced)  # what the parts themselves are made of writes
            except Exception as error:  # torch raises what its parts raise
                raise NotByParts from error
        if len(sizes) > before:  # an open size was taken for a number
            raise NotByParts
        calls = [n for n in needed(traced.graph) if n.op == "call_function"]
        if [n.target for n in calls] == [target]:  # without converter it is named with all such, sooner than by torch
            return None
        strange = [n for n in calls if not (self.known(w := name_of(n.target)) or w in TABLE)]
        if strange or any(changes(n) for n in calls):  # a machine's own kernels too, which torch takes without grad
            raise NotByParts
        return traced


def _takes_graphs(target: Fx) -> bool:
    from torch._ops import HigherOrderOperator

    return isinstance(target, HigherOrderOperator)


def _is_new(target: Fx) -> bool:
    """Does an operator give a tensor that shares no memory with another?"""
    schema = getattr(target, "_schema", None)
    if schema is None or any(r.alias_info is not None for r in schema.returns) or len(schema.returns) != 1:
        return False
    return schema.name.removeprefix("aten::") in _NEW or not target.has_kernel_for_dispatch_key(_composed())


def _composed() -> Fx:
    from torch._C import DispatchKey

    return DispatchKey.CompositeImplicitAutograd


def attribute(module: Fx, path: str) -> Fx:
    """What a module has under a path of names."""
    for word in path.split("."):
        module = getattr(module, word)
    return module


def _alike(values: Sequence[object]) -> tuple[int, ...]:
    """Which arguments are the same: a trace of an operator that is given one twice reads it in one place."""
    first: dict[object, int] = {}
    return tuple(first.setdefault(v, k) for k, v in enumerate(values) if hasattr(v, "meta"))


def _key(value: Fx) -> object:
    """What two arguments have in common if the same comes of them."""
    if not hasattr(value, "meta"):
        return type(value), str(value)
    meta = value.meta["val"]
    if not hasattr(meta, "shape"):
        return type(meta), str(meta)
    layout = (tuple(map(str, part)) for part in (meta.shape, meta.stride()))
    return meta.requires_grad, str(meta.dtype), *layout, str(meta.storage_offset())
