"""The gradient of conv2d with respect to its weight."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.ir.expr import Expr
from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dtype, Input, Ints, Operator, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.layout import parse_layout, transform
from relaylab.op.nn.conv import Convolution
from relaylab.op.products import dims, elements, exact, stored
from relaylab.op.shapes import extent
from relaylab.op.window import each, pads, reach, spread, spread_padding, window_extent


@op("nn.conv2d_backward_weight", level=2, attrs_key="Conv2D")
class conv2d_backward_weight(Convolution):
    """The gradient of conv2d with respect to its weight (of `kernel_size`), from the gradient of its result and its
    data. `data_layout` and `kernel_layout` are the convolution's; `out_layout` is that of the gradient.
    """

    grad: Input = arg("the gradient of the convolution's result, laid out as `grad_layout`", "(N, O, height, width)")
    data: Input = arg("the convolution's data, laid out as `data_layout`", "(N, C, H, W)", "any but bool")
    kernel_size: Ints | None = attr(None, "the kernel's height and width; None: as large as they can be")
    data_layout: str = "NCHW"
    kernel_layout: str = attr("OIHW", "the axes of the result, O for output and I for input channels")
    out_layout: str = attr("", "the axes of grad; empty: those of data")
    out_dtype: Dtype = attr(None, "the data type of sums and result; None or empty: that of grad")
    extra = {"grad_layout": "the axes of grad"}
    yields = "(O, C / groups, *kernel_size) laid out as `kernel_layout`, of `out_dtype`"
    source = "Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016"

    @property
    def _grad_layout(self) -> str:
        return self.out_layout or self.data_layout

    def _size(self, grad: dict, data: dict) -> list[int]:
        """The extents of the kernel: given, or as large as they can be."""
        if self.kernel_size is not None:
            return list(spread(self.kernel_size, 2))
        parts = zip("HW", spread(self.strides, 2), spread(self.dilation, 2), pads(self.padding, 2))
        return [(int(data[a]) + sum(p) - (int(grad[a]) - 1) * st - 1) // d + 1 for a, st, d, p in parts]

    relation = Operator.relation  # that of a convolution completes the type of its weight

    def result_type(self, s: TypeSolver, grad: TensorType, data: TensorType) -> Type | None:
        each(s, self.strides, 2, "strides"), each(s, self.dilation, 2, "dilation")
        rules.positive(s, self.groups, "groups")
        if self.kernel_size is not None:
            each(s, self.kernel_size, 2, "kernel_size")
        grads = rules.layout(s, self._grad_layout, "NCHW", grad, "grad").whole(grad.shape)
        whole = rules.layout(s, self.data_layout, "NCHW", data).whole(data.shape)
        if self.kernel_size is None and (grad.is_dynamic or data.is_dynamic):
            s.fail("nn.conv2d_backward_weight needs kernel_size when shapes are unknown")
        rules.equal_dims(s, grads["N"], whole["N"], f"the batches of {type_text(grad)} and {type_text(data)}")
        if isinstance(whole["C"], int) and whole["C"] % self.groups:
            s.fail(f"{whole['C']} channels do not split into {self.groups} groups")
        if isinstance(grads["C"], int) and grads["C"] % self.groups:
            s.fail(f"{grads['C']} output channels do not split into {self.groups} groups")
        steps = zip(
            "HW", self._size(grads, whole), spread(self.strides, 2), spread(self.dilation, 2), pads(self.padding, 2)
        )
        for a, k, st, d, pad in steps:
            made = window_extent(s, whole[a], IntImm(k), st, d, pad)
            rules.equal_dims(
                s, grads[a], made, f"a kernel of {k} on {type_text(data)} does not make {type_text(grad)} along {a}"
            )
        ins = IntImm(int(whole["C"]) // self.groups) if isinstance(whole["C"], int) else whole["C"]
        extents = dict(zip("OIHW", (grads["C"], ins, *map(IntImm, self._size(grads, whole)))))
        return TensorType(
            rules.laid_out(s, rules.layout(s, self.kernel_layout, "OIHW", None, "weight"), extents),
            rules.summed(s, self.out_dtype or grad.dtype, grad, data),
        )

    def reference(self, grad: np.ndarray, data: np.ndarray) -> np.ndarray:
        dtype, plain = self.out_dtype or grad.dtype.name, parse_layout("NCHW")
        g, x = exact(dtype, grad, data)
        g = transform(g, parse_layout(self._grad_layout), plain)
        x = transform(x, parse_layout(self.data_layout), plain)
        size = self._size(dict(zip("NCHW", g.shape)), dict(zip("NCHW", x.shape)))
        needed = [
            (n - 1) * st + reach(k, d)
            for n, k, st, d in zip(g.shape[2:], size, spread(self.strides, 2), spread(self.dilation, 2))
        ]
        before = [p[0] for p in pads(self.padding, 2)]
        x = np.pad(x, [(0, 0), (0, 0), *((p, max(m - p - n, 0)) for p, m, n in zip(before, needed, x.shape[2:]))])
        groups = self.groups
        gg, xx = (v.reshape(v.shape[0], groups, v.shape[1] // groups, *v.shape[2:]) for v in (g, x))
        out = np.zeros((groups, gg.shape[2], xx.shape[2], *size), x.dtype)
        for tap in np.ndindex(*size):
            parts = zip(tap, g.shape[2:], spread(self.strides, 2), spread(self.dilation, 2))
            window = [slice(t * d, t * d + max((n - 1) * st + 1, 0), st) for t, n, st, d in parts]
            seen = xx[(slice(None), slice(None), slice(None), *window)]
            out[(slice(None), slice(None), slice(None), *tap)] = np.einsum("ngoyx,ngiyx->goi", gg, seen)
        whole = out.reshape(groups * out.shape[1], *out.shape[2:])
        return stored(transform(whole, parse_layout("OIHW"), parse_layout(self.kernel_layout)), dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, grad: Readable, data: Readable) -> Element:
        grad_layout, layout = parse_layout(self._grad_layout), parse_layout(self.data_layout)
        at = parse_layout(self.kernel_layout).at(i)
        grads, whole = grad_layout.extents(grad.shape), layout.extents(data.shape)
        per_group = grads["C"] // self.groups
        reads = whole["C"] // self.groups
        channel = at["O"] // per_group * reads + at["I"] if self.groups > 1 else at["I"]

        def term(n: Element, *cell: Element) -> Element:
            source, inside = {"N": n, "C": channel}, []
            for a, k, st, d, p in zip(
                "HW", cell, spread(self.strides, 2), spread(self.dilation, 2), pads(self.padding, 2)
            ):
                source[a] = k * st + at[a] * d - p[0]
                inside.append(b.inside(source[a], whole[a]))
            g = grad(*grad_layout.index({"N": n, "C": at["O"], **dict(zip("HW", cell))}))
            x = b.guard(
                b.all_of(*inside), lambda: b.cast(data(*layout.index(source)), out.dtype), b.const(0, out.dtype)
            )
            return b.cast(g, out.dtype) * x

        return b.sum([grads[a] for a in "NHW"], term)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        grad = parse_layout(self._grad_layout).whole(dims(types[0]))
        return elements(out) * math.prod(extent(grad[a]) for a in "NHW")

    @classmethod
    def build(
        cls,
        grad: object,
        data: Expr,
        strides: int | Sequence[int] = (1, 1),
        padding: int | Sequence[int] = (0, 0),
        dilation: int | Sequence[int] = (1, 1),
        groups: int = 1,
        channels: object = None,
        kernel_size: int | Sequence[int] | None = None,
        grad_layout: str = "NCHW",
        data_layout: str = "NCHW",
        kernel_layout: str = "OIHW",
        out_dtype: object = "",
    ) -> Expr:
        return cls.call(
            grad,
            data,
            strides=spread(strides, 2),
            padding=spread_padding(padding, 2),
            dilation=spread(dilation, 2),
            groups=groups,
            channels=channels,
            kernel_size=None if kernel_size is None else spread(kernel_size, 2),
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            out_layout=grad_layout,
            out_dtype=out_dtype,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        nhwc = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        return [
            sample((2, 4, 5, 6), (2, 3, 5, 6), kernel_size=(3, 3), padding=(1, 1)),
            sample((1, 4, 3, 3), (1, 2, 6, 6), kernel_size=(2, 3), strides=(2, 2), padding=(0, 1), groups=2),
            sample((1, 3, 4, 2), (1, 5, 6, 3), kernel_size=(3, 3), **nhwc),
        ]
