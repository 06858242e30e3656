"""What convolutions and pooling share: kernel, strides, dilations and padding of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.ir import Expr

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
AUTO = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True, slots=True)
class Windows:
    """Per spatial axis: extent of the kernel, step, dilation, zeros before and after."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def padding(self) -> tuple[int, ...]:
        """Relay's order: all befores, then all afters."""
        return (*self.before, *self.after)

    def reach(self, k: int) -> int:
        """How far the kernel reaches along axis `k`."""
        return (self.kernel[k] - 1) * self.dilations[k] + 1


def read(g: Graph, node: OnnxNode, data: Expr, kernel: Sequence[int] | None = None) -> Windows:
    """The windows of a node over `data` (N, C, spatial ...)."""
    spatial = g.rank(data) - 2
    if spatial not in LAYOUTS:
        raise node.error(f"{spatial} spatial axes; 1 to 3 are imported", code="import.rank")
    given = node.ints("kernel_shape")
    kernel = of_length(node, "kernel_shape", given or list(kernel or ()), spatial, 1)
    strides = of_length(node, "strides", node.ints("strides") or [1] * spatial, spatial, 1)
    dilations = of_length(node, "dilations", node.ints("dilations") or [1] * spatial, spatial, 1)
    auto, pads = node.choice("auto_pad", "NOTSET", AUTO), node.ints("pads")
    if auto in ("NOTSET", "VALID"):
        pads = [0] * (2 * spatial) if auto == "VALID" or pads is None else pads
        pads = list(of_length(node, "pads", pads, 2 * spatial, 0))
        return Windows(kernel, strides, dilations, tuple(pads[:spatial]), tuple(pads[spatial:]))
    sizes = g.extents(data, 2)
    total = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in zip(sizes, kernel, strides, dilations)
    ]
    less, more = tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return Windows(kernel, strides, dilations, *((less, more) if auto == "SAME_UPPER" else (more, less)))


def of_length(node: OnnxNode, name: str, values: Sequence[int], length: int, least: int) -> tuple[int, ...]:
    if len(values) != length or any(v < least for v in values):
        raise node.error(
            f"{name}={list(values)} does not fit {length} numbers of at least {least}", code="import.attribute"
        )
    return tuple(values)
