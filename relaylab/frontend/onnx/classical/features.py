"""What prepares features: scaling, filling in, encoding, choosing; and the maps at the end of classifiers."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.classical.scores import floats
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.indexing import counted, extent_of
from relaylab.frontend.onnx.table import CLASSICAL, converts
from relaylab.frontend.onnx.texts import Texts
from relaylab.ir import Constant, Expr
from relaylab.op import nn

NORMS = ("MAX", "L1", "L2")


@converts("Scaler", domain=CLASSICAL)
def scaler(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    x = floats(g, x)
    offset, scale = (np.array(node.get(name) or [default]) for name, default in (("offset", 0.0), ("scale", 1.0)))
    return op.cast(op.multiply(op.subtract(x, g.const(offset, x)), g.const(scale, x)), "float32")


@converts("Normalizer", domain=CLASSICAL)
def normalizer(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Along the last axis; what has the norm 0 stays as it is."""
    x, kind = floats(g, x), node.choice("norm", "MAX", NORMS)
    if kind == "MAX":
        norm = op.max(x, axis=[-1], keepdims=True)
    elif kind == "L1":
        norm = op.sum(op.abs(x), axis=[-1], keepdims=True)
    else:
        norm = op.sqrt(op.sum(op.multiply(x, x), axis=[-1], keepdims=True))
    norm = op.where(op.equal(norm, g.const(0, norm)), g.const(1, norm), norm)
    return op.cast(op.divide(x, norm), "float32")


@converts("Imputer", domain=CLASSICAL)
def imputer(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Of the attributes those of the data's type are read."""
    kind = "float" if "float" in g.dtype(x) else "int64"
    values = node.get(f"imputed_value_{kind}s")
    for other in ("float", "int64"):  # of both types writers give some
        for name in (f"imputed_value_{other}s", f"replaced_value_{other}"):
            node.get(name)
    if not values:
        raise node.error(f"there is no value of {kind} to fill in", code="import.attribute")
    wanted = g.const(node.get(f"replaced_value_{kind}", 0), x)
    missing = op.isnan(x) if kind == "float" and np.isnan(wanted.data.numpy()) else op.equal(x, wanted)
    return op.where(missing, g.const(values, x), x)


@converts("Binarizer", domain=CLASSICAL)
def binarizer(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.cast(op.greater(x, g.const(node.get("threshold", 0.0), x)), g.dtype(x))


@converts("OneHotEncoder", domain=CLASSICAL, unused=("zeros",))
def one_hot_encoder(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """What is no category has no one, also where the model says that there is no such value (`zeros` is 0)."""
    categories = node.ints("cats_int64s")
    if not categories:
        raise _of_texts(node)
    x = x if g.dtype(x) == "int64" else g.converted(x, "int64")
    return op.cast(op.equal(op.expand_dims(x, -1), g.const(categories, "int64")), "float32")


def _of_texts(node: OnnxNode) -> Exception:
    return node.error(
        "tensors of texts are not imported",
        code="import.text",
        help="encode texts as numbers before, and convert the rest of the pipeline",
    )


@converts("LabelEncoder", since=2, domain=CLASSICAL)
def label_encoder(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Keys to values, anything else to a default; values that are texts are their places among them."""
    if node.has("keys_strings"):
        raise _of_texts(node)
    keys, (values, default) = _first_of(node, "keys_"), _values_of(node)
    if keys is None or values is None or len(keys) != len(values):
        raise node.error("keys and values do not fit each other", code="import.malformed")
    return _looked_up(g, x, keys, values, default)


def _first_of(node: OnnxNode, prefix: str) -> np.ndarray | None:
    dtypes = {"int64s": "int64", "floats": "float32", "tensor": None}
    found = [(node.get(f"{prefix}{name}"), dtype) for name, dtype in dtypes.items()]
    return next((np.asarray(v, dtype).reshape(-1) for v, dtype in found if v is not None and len(v)), None)


def _values_of(node: OnnxNode) -> tuple[np.ndarray | None, np.generic | float]:
    """The values and what stands for other keys."""
    defaults = {"int64": node.get("default_int64", -1), "float32": node.get("default_float", -0.0)}
    node.get("default_string")
    tensor, texts = node.get("default_tensor"), node.get("values_strings")
    if texts:
        return np.arange(len(texts)), -1
    values = _first_of(node, "values_")
    if tensor is not None:
        return values, np.asarray(tensor).reshape(-1)[0]
    return values, defaults.get("" if values is None else values.dtype.name, 0)


def _looked_up(g: Graph, x: Expr, keys: np.ndarray, values: np.ndarray, default: np.generic | float) -> Expr:
    """By bisection in the sorted keys; of equal ones the first counts, NaN is a key like others."""
    unknown = Constant(np.array(default, values.dtype))
    nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(len(keys), bool)
    known, first = np.unique(keys[~nan], return_index=True)
    out: Expr = unknown
    if len(known):
        at = op.searchsorted(g.const(known, x), x, dtype="int64")
        at = op.minimum(at, g.const(len(known) - 1, "int64"))
        found = op.take(Constant(values[~nan][first]), at, axis=0)
        out = op.where(op.equal(op.take(g.const(known, x), at, axis=0), x), found, unknown)
    if nan.any():
        out = op.where(op.isnan(x), Constant(values[nan][:1].reshape(())), out)
    return out


@converts("FeatureVectorizer", domain=CLASSICAL)
def feature_vectorizer(g: Graph, node: OnnxNode, *xs: Expr) -> Expr:
    """Columns beside each other, of each input as many as are wanted: some are cut off, or zeros added."""
    wanted = node.ints("inputdimensions") or []
    columns = [op.cast(op.expand_dims(x, 1) if g.rank(x) == 1 else x, "float32") for x in xs]
    if len(wanted) != len(columns):
        raise node.error(f"{len(wanted)} widths for {len(columns)} inputs", code="import.malformed")
    fitted = []
    for x, count in zip(columns, wanted):
        have = g.extents(x, 1)[0]
        if count < have:
            x = op.strided_slice(x, [0], [count], axes=[1])
        fitted.append(nn.pad(x, ((0, 0), (0, count - have))) if count > have else x)
    return op.concatenate(fitted, axis=1)


@converts("ArrayFeatureExtractor", domain=CLASSICAL)
def array_feature_extractor(g: Graph, node: OnnxNode, x: Expr | Texts, places: Expr) -> Expr:
    """Places along the last axis; of texts they stay places. A vector counts as a matrix of one row."""
    places = op.reshape(places, (-1,)) if g.rank(places) != 1 else places
    if isinstance(x, Texts):
        return op.expand_dims(op.cast(places, "int64"), 0)
    axis = g.rank(x) - 1
    out = op.take(x, counted(g, places, extent_of(g, x, axis)), axis=axis)
    return op.expand_dims(out, 0) if axis == 0 else out


@converts("ZipMap", domain=CLASSICAL, unused=("classlabels_int64s", "classlabels_strings"))
def zip_map(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """A map of each row is the row itself: its keys are the labels, in their order."""
    return x
