"""Judges that are ONNX's reference evaluator; without onnx these operators are not judged."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from judges import FITTED, judge


def onnx(kind: str, *inputs: np.ndarray | None, opset: int = 18, outputs: int = 1, **attrs: Any) -> Any:
    """What ONNX's reference gives for one node; attributes that are None are left out."""
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    given = {f"x{k}": np.asarray(x) for k, x in enumerate(inputs) if x is not None}
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(inputs)]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(kind, names, results, **{k: v for k, v in attrs.items() if v is not None})
    ins = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()
    ]
    outs = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in results]
    model = helper.make_model(
        helper.make_graph([node], "one", ins, outs), opset_imports=[helper.make_opsetid("", opset)]
    )
    found = ReferenceEvaluator(model).run(None, given)
    return found[0] if outputs == 1 else tuple(found)


def whole(*values: Any) -> np.ndarray:
    return np.array(values, "int64")


@judge("sigmoid")
def sigmoid(a: Any, x: np.ndarray) -> Any:
    return onnx("Sigmoid", x)


@judge("nn.relu")
def relu(a: Any, x: np.ndarray) -> Any:
    return onnx("Relu", x)


@judge("nn.leaky_relu")
def leaky_relu(a: Any, x: np.ndarray) -> Any:
    return onnx("LeakyRelu", x, alpha=a.alpha) if x.dtype.kind == "f" else NotImplemented


@judge("nn.prelu")
def prelu(a: Any, x: np.ndarray, slope: np.ndarray) -> Any:
    return onnx("PRelu", x, slope.reshape([-1 if d == a.axis % x.ndim else 1 for d in range(x.ndim)]))


@judge("nn.softmax", "nn.log_softmax", "nn.fast_softmax")
def softmax(a: Any, x: np.ndarray) -> Any:
    return onnx("LogSoftmax" if "log" in type(a).op_name else "Softmax", x, axis=a.axis)


# ---- elements by index


@judge("nn.attention")
def attention(a: Any, query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> Any:
    *lead, m, _ = query.shape
    heads = [x.reshape(1, -1, *x.shape[-2:]) for x in (query, key, value)]
    mask = np.broadcast_to(mask, (*lead, m, key.shape[-2])).reshape(1, -1, m, key.shape[-2])
    return onnx("Attention", *heads, mask, opset=23, scale=a.scale).reshape(*lead, m, -1)


@judge("gather_nd")
def gather_nd(a: Any, x: np.ndarray, at: np.ndarray) -> Any:
    return onnx("GatherND", x, np.moveaxis(at, 0, -1).astype("int64"), batch_dims=a.batch_dims)


@judge("scatter", "scatter_add")
def scatter(a: Any, x: np.ndarray, at: np.ndarray, new: np.ndarray) -> Any:
    how = "add" if type(a).op_name == "scatter_add" else "none"
    return onnx("ScatterElements", x, at.astype("int64"), new, axis=a.axis, reduction=how)


@judge("scatter_nd")
def scatter_nd(a: Any, x: np.ndarray, at: np.ndarray, new: np.ndarray) -> Any:
    how = "none" if a.mode == "update" else a.mode
    return onnx("ScatterND", x, np.moveaxis(at, 0, -1).astype("int64"), new, reduction=how)


@judge("sparse_to_dense", "dyn.sparse_to_dense")
def sparse_to_dense(a: Any, at: np.ndarray, values: np.ndarray, default: np.ndarray, *shape: np.ndarray) -> Any:
    extents = tuple(shape[0]) if shape else a.output_shape
    at = at.reshape(-1, len(extents)).astype("int64")
    return onnx("ScatterND", np.full(extents, default, values.dtype), at, np.broadcast_to(values, len(at)))


# ONNX counts negative ones from the end
FITTED["one_hot"] = lambda a, at, *values: (np.clip(at, 0, a.depth - 1).astype(at.dtype), *values)


@judge("one_hot", "dyn.one_hot")
def one_hot(a: Any, at: np.ndarray, on: np.ndarray, off: np.ndarray, *depth: np.ndarray) -> Any:
    count = int(depth[0]) if depth else a.depth
    on, off = (v.astype(a.dtype) if a.dtype else v for v in (on, off))
    return onnx("OneHot", at.astype("int64"), np.int64(count), np.stack([off, on]), axis=a.axis)


@judge("topk", "dyn.topk")
def topk(a: Any, x: np.ndarray, *k: np.ndarray) -> Any:
    count = int(np.reshape(k[0], ())) if k else a.k
    count = count if count > 0 else x.shape[a.axis]
    found = onnx("TopK", x, whole(count), axis=a.axis, largest=int(not a.is_ascend), outputs=2)
    return {"both": found, "values": found[0], "indices": found[1]}[a.ret_type]


@judge("trilu")
def trilu(a: Any, x: np.ndarray, k: np.ndarray) -> Any:
    return onnx("Trilu", x, np.asarray(k, "int64").reshape(()), upper=int(a.upper))


@judge("strided_slice", "dyn.strided_slice")
def strided_slice(a: Any, x: np.ndarray, *given: np.ndarray) -> Any:
    first, last, steps = given or (a.begin, a.end, a.strides)
    if a.slice_mode != "end" or any(v is None for v in (*first, *last)):
        return NotImplemented
    steps = list(steps) * (len(first) if len(steps) == 1 else 1)
    axes = a.axes if a.axes is not None else range(len(first))
    return onnx("Slice", x, *(whole(*map(int, v)) for v in (first, last, axes, steps)))


@judge("reverse_sequence")
def reverse_sequence(a: Any, x: np.ndarray, lengths: np.ndarray) -> Any:
    time, batch = a.seq_axis % x.ndim, a.batch_axis % x.ndim
    y = onnx("ReverseSequence", np.moveaxis(x, (time, batch), (0, 1)), lengths.astype("int64"))
    return np.moveaxis(y, (0, 1), (time, batch))


def _lengths(a: Any, x: np.ndarray, lengths: np.ndarray) -> tuple:
    return x, np.clip(lengths, 1, x.shape[a.seq_axis]).astype(lengths.dtype)


FITTED["reverse_sequence"] = _lengths


@judge("unique")
def unique(a: Any, x: np.ndarray) -> Any:
    """(values, indices of the first, inverse, how many[, counts]); behind `how many` nothing is said."""
    values, first, inverse, counts = onnx("Unique", x, sorted=int(a.sorted), outputs=4)
    found = [values, first, inverse, whole(len(values)), *([counts] if a.return_counts else [])]
    return tuple(found)


@judge("stft")
def stft(a: Any, x: np.ndarray, window: np.ndarray) -> Any:
    if a.normalized or len(window) != a.n_fft:
        return NotImplemented
    found = onnx("STFT", x[..., None], np.int64(a.hop_length), window, np.int64(a.n_fft), onesided=int(a.onesided))
    return np.moveaxis(found, 1, 2)


# ---- convolutions and pools


def to_plain(x: np.ndarray, layout: str, plain: str) -> Any:
    return np.einsum(f"{layout}->{plain}", x)


@judge("nn.conv1d", "nn.conv2d", "nn.conv3d")
def conv(a: Any, x: np.ndarray, w: np.ndarray, offset: Any = 0, woffset: Any = 0, *scales: Any) -> Any:
    spatial, out = type(a).spatial, a.out_layout or a.data_layout
    if not (a.data_layout + a.kernel_layout + out).isalpha():
        return NotImplemented
    x, w = to_plain(x, a.data_layout, "NC" + spatial), to_plain(w, a.kernel_layout, "OI" + spatial)
    if a.groups > 1 and a.groups == w.shape[0]:
        w = w.reshape(-1, 1, *w.shape[2:])
    n = len(spatial)
    many = lambda v: list(v) * (n // len(v))
    pads = list(a.padding) * (2 * n // len(a.padding))
    how = {"strides": many(a.strides), "dilations": many(a.dilation), "pads": pads, "group": a.groups}
    x, w = x.astype("float64") - offset, w.astype("float64") - np.reshape(woffset, (-1, *[1] * (n + 1)))
    return to_plain(onnx("Conv", x, w, **how), "NC" + spatial, out)


judge("qnn.conv2d")(conv)


@judge("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose", "qnn.conv2d_transpose")
def conv_transpose(a: Any, x: np.ndarray, w: np.ndarray, offset: Any = 0, woffset: Any = 0, *scales: Any) -> Any:
    spatial, out, n = type(a).spatial, a.out_layout or a.data_layout, len(type(a).spatial)
    if a.groups != 1:
        return NotImplemented  # the reference of ONNX has one group only
    many = lambda v: list(v) * (n // len(v))
    order = (type(a).ins + type(a).outs) + spatial
    how = {"strides": many(a.strides), "dilations": many(a.dilation), "output_padding": many(a.output_padding)}
    x, w = to_plain(x, a.data_layout, "NC" + spatial), to_plain(w, a.kernel_layout, order)
    x, w = x.astype("float64") - offset, w.astype("float64") - woffset
    pads = list(a.padding) * (2 * n // len(a.padding))
    return to_plain(onnx("ConvTranspose", x, w, pads=pads, **how), "NC" + spatial, out)


@judge("nn.dilate")
def dilate(a: Any, x: np.ndarray) -> Any:
    """A transposed convolution with one weight of 1."""
    if a.dilation_value:
        return NotImplemented
    weight = np.ones((1, 1, *[1] * x.ndim), x.dtype)
    return onnx("ConvTranspose", x[None, None], weight, strides=list(a.strides))[0, 0]


@judge("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d")
def max_pool(a: Any, x: np.ndarray) -> Any:
    layout, n = a.layout, len(a.layout) - 2
    if not layout.isalpha() or a.ceil_mode or x.dtype.kind != "f" or (a.out_layout or layout) != layout:
        return NotImplemented
    many = lambda v: list(v) * (n // len(v))
    plain = "NC" + "".join(v for v in "DHW" if v in layout)
    pads = list(a.padding) * (2 * n // len(a.padding))
    how = {"kernel_shape": many(a.pool_size), "strides": many(a.strides), "dilations": many(a.dilation), "pads": pads}
    return to_plain(onnx("MaxPool", to_plain(x, layout, plain), **how), plain, layout)


@judge("nn.global_avg_pool2d", "nn.global_max_pool2d")
def global_pool(a: Any, x: np.ndarray) -> Any:
    kind = "GlobalAveragePool" if "avg" in type(a).op_name else "GlobalMaxPool"
    if not a.layout.isalpha() or x.dtype.kind != "f":
        return NotImplemented
    return to_plain(onnx(kind, to_plain(x, a.layout, "NCHW")), "NCHW", a.layout)


@judge("nn.depth_to_space", "nn.space_to_depth")
def blocks(a: Any, x: np.ndarray) -> Any:
    deep = type(a).op_name == "nn.depth_to_space"
    if a.mode != "DCR" and not deep:
        return NotImplemented
    how = {"mode": a.mode} if deep else {}
    kind = "DepthToSpace" if deep else "SpaceToDepth"
    return to_plain(onnx(kind, to_plain(x, a.layout, "NCHW"), blocksize=a.block_size, **how), "NCHW", a.layout)


# ---- normalisation and losses


@judge("nn.batch_norm")
def batch_norm(a: Any, x: np.ndarray, *params: np.ndarray) -> Any:
    gamma, beta, mean, variance = params
    gamma = gamma if a.scale else np.ones_like(gamma)
    beta = beta if a.center else np.zeros_like(beta)
    y = onnx("BatchNormalization", np.moveaxis(x, a.axis, 1), gamma, beta, mean, variance, epsilon=a.epsilon)
    return np.moveaxis(y, 1, a.axis), mean, variance


@judge("nn.layer_norm")
def layer_norm(a: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> Any:
    gamma = gamma if a.scale else np.ones_like(gamma)
    beta = beta if a.center else np.zeros_like(beta)
    y = onnx("LayerNormalization", np.moveaxis(x, a.axis, -1), gamma, beta, epsilon=a.epsilon, axis=-1)
    return np.moveaxis(y, -1, a.axis)


@judge("nn.instance_norm")
def instance_norm(a: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> Any:
    gamma = gamma if a.scale else np.ones_like(gamma)
    beta = beta if a.center else np.zeros_like(beta)
    y = onnx("InstanceNormalization", np.moveaxis(x, a.axis, 1), gamma, beta, epsilon=a.epsilon)
    return np.moveaxis(y, 1, a.axis)


@judge("nn.group_norm")
def group_norm(a: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> Any:
    if a.axis % x.ndim != 1:
        return NotImplemented
    gamma = gamma if a.scale else np.ones_like(gamma)
    beta = beta if a.center else np.zeros_like(beta)
    return onnx("GroupNormalization", x, gamma, beta, epsilon=a.epsilon, num_groups=a.num_groups, opset=21)


@judge("nn.lrn")
def lrn(a: Any, x: np.ndarray) -> Any:
    x = np.moveaxis(x, a.axis, 1)
    wide = np.resize(x, (max(x.shape), *x.shape[1:]))  # the reference of ONNX sums as many channels as there are images
    y = onnx("LRN", wide, alpha=a.alpha, beta=a.beta, bias=a.bias, size=a.size)[: len(x)]
    return np.moveaxis(y, 1, a.axis)


@judge("nn.nll_loss")
def nll_loss(a: Any, x: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Any:
    kind = "NegativeLogLikelihoodLoss"
    return onnx(kind, x, targets, weights, reduction=a.reduction, ignore_index=a.ignore_index)


@judge("nn.dropout")
def dropout(a: Any, x: np.ndarray) -> Any:
    return *onnx("Dropout", x, outputs=2)[:1], np.ones_like(x)


# ---- images


MODES = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic", "bilinear": "linear", "bicubic": "cubic"}
ROUND = {k: k for k in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")} | {"round": "round_prefer_ceil"}


@judge("image.resize1d", "image.resize2d", "dyn.image.resize2d")
def resize(a: Any, x: np.ndarray, *given: np.ndarray) -> Any:
    mode, place, plain = MODES[a.method], a.coordinate_transformation_mode, "NC" + a.layout.strip("NC")
    how = a.rounding_method or ("round" if place != "align_corners" else "round")
    if not a.layout.isalpha() or place == "tf_crop_and_resize" or (mode == "nearest" and not a.rounding_method):
        return NotImplemented
    if x.dtype.kind != "f" or a.out_dtype not in ("", None, "float32"):
        return NotImplemented
    sizes = whole(*x.shape[:1], to_plain(x, a.layout, plain).shape[1], *map(int, given[0] if given else a.size))
    more = {"nearest_mode": ROUND[how]} if mode == "nearest" else {}
    more |= {"cubic_coeff_a": a.cubic_alpha, "exclude_outside": int(a.cubic_exclude)} if mode == "cubic" else {}
    x = to_plain(x, a.layout, plain)
    y = onnx("Resize", x, None, None, sizes, mode=mode, coordinate_transformation_mode=place, opset=19, **more)
    return to_plain(y, plain, a.layout)


@judge("nn.upsampling", "nn.upsampling3d", "dyn.nn.upsampling", "dyn.nn.upsampling3d")
def upsampling(a: Any, x: np.ndarray, *given: np.ndarray) -> Any:
    deep = "3d" in type(a).op_name
    plain = "NCDHW" if deep else "NCHW"
    if not a.layout.isalpha():
        return NotImplemented
    x = to_plain(x, a.layout, plain)
    scales = [float(v) for v in given] or [getattr(a, f"scale_{v}") for v in ("dhw" if deep else "hw")]
    mode = {"nearest_neighbor": "nearest", "trilinear": "linear"}.get(a.method) or MODES[a.method]
    place = a.coordinate_transformation_mode if deep else "align_corners" if a.align_corners else "asymmetric"
    if mode == "nearest" and place == "align_corners":
        return NotImplemented
    more = {"nearest": {"nearest_mode": "floor"}, "cubic": {"cubic_coeff_a": -0.5}}.get(mode, {})
    sizes = whole(*x.shape[:2], *(round(n * s) for n, s in zip(x.shape[2:], scales)))
    y = onnx("Resize", x, None, None, sizes, mode=mode, coordinate_transformation_mode=place, opset=19, **more)
    return to_plain(y, plain, a.layout)


@judge("image.affine_grid")
def affine_grid(a: Any, x: np.ndarray) -> Any:
    size = whole(len(x), 1, *a.target_shape)
    return np.moveaxis(onnx("AffineGrid", x, size, align_corners=1, opset=20), -1, 1)


@judge("vision.roi_align")
def roi_align(a: Any, x: np.ndarray, rois: np.ndarray) -> Any:
    if a.mode not in (0, "avg", b"avg") or a.layout != "NCHW":
        return NotImplemented
    height, width = a.pooled_size
    how = {"sampling_ratio": max(a.sample_ratio, 0), "spatial_scale": a.spatial_scale}
    how |= {"output_height": height, "output_width": width, "mode": "avg"}
    how |= {"coordinate_transformation_mode": "half_pixel" if a.aligned else "output_half_pixel"}
    return onnx("RoiAlign", x, rois[:, 1:], rois[:, 0].astype("int64"), **how)


@judge("vision.all_class_non_max_suppression")
def all_class_nms(a: Any, boxes: np.ndarray, scores: np.ndarray, *limits: np.ndarray) -> Any:
    if a.output_format != "onnx":
        return NotImplemented
    count, overlap, score = (np.reshape(v, (1,)) for v in limits)
    floats = (v.astype("float32") for v in (boxes, scores, overlap, score))
    boxes, scores, overlap, score = floats
    found = onnx("NonMaxSuppression", boxes, scores, count.astype("int64"), overlap, score)
    return found, whole(len(found))


@judge("matrix_set_diag")
def matrix_set_diag(a: Any, x: np.ndarray, diagonal: np.ndarray) -> Any:
    if a.k1 != a.k2:
        return NotImplemented
    out, place = x.copy(), range(diagonal.shape[-1])
    at = np.array([(k + max(-a.k1, 0), k + max(a.k1, 0)) for k in place], "int64")
    for lead in itertools.product(*map(range, x.shape[:-2])):
        out[lead] = onnx("ScatterND", out[lead], at, diagonal[lead])
    return out


# ---- whole numbers


@judge("qnn.quantize")
def quantize(a: Any, x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> Any:
    if not (zero == zero.astype(a.out_dtype)).all():
        return NotImplemented
    zero = zero.astype(a.out_dtype)
    return onnx(
        "QuantizeLinear", x.astype("float32"), scale.astype("float32"), zero, axis=a.axis if scale.ndim else None
    )


@judge("qnn.dequantize")
def dequantize(a: Any, x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> Any:
    if x.dtype.name not in ("int8", "uint8"):
        return NotImplemented
    zero = zero.astype(x.dtype)
    return onnx("DequantizeLinear", x, scale.astype("float32"), zero, axis=a.axis if scale.ndim else None, opset=19)
