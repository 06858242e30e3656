"""The derivatives of neural-network operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylab.ir import Call, Expr, facets
from relaylab.support.errors import RelayValueError
from relaylab.transform.build import call
from relaylab.transform.gradients import div, gradient_of, like, mul, sub
from relaylab.transform.infer_type import rank_of, shape_of


@gradient_of("nn.bias_add")
def _bias_add(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    axis = facets(c).axis % rank_of(c)
    return [g, call("sum", g, axis=[axis], keepdims=False, exclude=True)]


@gradient_of("nn.softmax")
def _softmax(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    total = call("sum", mul(g, y), axis=[facets(c).axis], keepdims=True, exclude=False)
    return [mul(sub(g, total), y)]


@gradient_of("nn.log_softmax")
def _log_softmax(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    total = call("sum", g, axis=[facets(c).axis], keepdims=True, exclude=False)
    return [sub(g, mul(call("exp", y), total))]


@gradient_of("nn.dense")
def _dense(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, w = c.args
    rows = call("reshape", x, newshape=[-1, int(shape_of(w)[1])])
    grads = call("reshape", g, newshape=[-1, int(shape_of(w)[0])])
    dx = call("nn.dense", grads, call("transpose", w, axes=[1, 0]), units=int(shape_of(w)[1]))
    dw = call(
        "nn.dense",
        call("transpose", grads, axes=[1, 0]),
        call("transpose", rows, axes=[1, 0]),
        units=int(shape_of(w)[1]),
    )
    return [call("reshape_like", dx, x), dw]


@gradient_of("nn.batch_matmul")
def _batch_matmul(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b, attrs = *c.args, facets(c)
    ta, tb = attrs.transpose_a, attrs.transpose_b

    def product(p: Expr, q: Expr, tp: bool, tq: bool) -> Expr:
        return call("nn.batch_matmul", p, q, out_dtype=None, transpose_a=tp, transpose_b=tq)

    da = product(b, g, tb, True) if ta else product(g, b, False, not tb)
    db = product(g, a, True, ta) if tb else product(a, g, not ta, False)
    return [call("collapse_sum_like", da, a), call("collapse_sum_like", db, b)]


def _conv_data(c: Call, g: Expr, attrs: Any) -> Expr:
    """The gradient of a convolution's data: the transposed convolution of the gradient, of the data's size."""
    x, w = (shape_of(a) for a in c.args)
    pads = [int(p) for p in attrs.padding] * (4 // len(attrs.padding))
    extra = []
    for i in range(2):
        reach = (int(w[2 + i]) - 1) * int(attrs.dilation[i]) + 1
        size = (int(shape_of(c)[2 + i]) - 1) * int(attrs.strides[i]) - pads[i] - pads[i + 2] + reach
        extra.append(int(x[2 + i]) - size)
    how = {k: getattr(attrs, k) for k in ("strides", "padding", "dilation", "groups")}
    size = [int(d) for d in w[2:]]
    return call(
        "nn.conv2d_transpose",
        g,
        c.args[1],
        channels=int(x[1]),
        kernel_size=size,
        kernel_layout="IOHW",
        output_padding=extra,
        **how,
    )


@gradient_of("nn.conv2d")
def _conv2d(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    attrs, w = facets(c), shape_of(c.args[1])
    if attrs.data_layout != "NCHW" or attrs.kernel_layout != "OIHW" or attrs.groups != 1:
        raise RelayValueError(
            "the gradient of nn.conv2d needs NCHW, OIHW and one group",
            code="gradient.layout",
            help="take the gradient before changing layouts",
        )
    how = {k: getattr(attrs, k) for k in ("strides", "padding", "dilation", "groups")}
    size = [int(d) for d in w[2:]]
    dw = call("nn.conv2d_backward_weight", g, c.args[0], channels=int(w[0]), kernel_size=size, **how)
    return [_conv_data(c, g, attrs), dw]


@gradient_of("nn.max_pool2d", "nn.avg_pool2d")
def _pool2d(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    attrs = facets(c)
    given = {k: v for k, v in attrs.items() if k not in ("dilation", "out_layout")}
    return [call(f"{c.op.name}_grad", g, c.args[0], **given)]  # type: ignore[attr-defined]


@gradient_of("nn.global_avg_pool2d")
def _global_avg_pool2d(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    shape = shape_of(c.args[0])
    layout = facets(c).layout
    count = int(shape[layout.index("H")]) * int(shape[layout.index("W")])
    return [call("broadcast_to", div(g, like(count, c)), shape=shape)]
