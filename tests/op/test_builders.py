"""Builders: signatures, defaults and what they make of their arguments."""

from __future__ import annotations


import numpy as np
import pytest
from op_cases import evaluate

from relaylab import op
from relaylab.op.builder import OperatorBuilder
from relaylab.ir import OPERATORS, Call, Constant, Tuple, TupleGetItem, TupleWrapper, const, var
from relaylab.support.errors import RelayAttributeError, RelayError, RelayTypeError

x = var("x", shape=(1, 4, 8, 8))
w = var("w")
n = var("n", shape=(2,), dtype="int64")


def test_padding_and_sizes_are_expanded():
    conv = op.nn.conv2d(x, w, channels=8, kernel_size=3, strides=2, padding=1).attrs
    assert (conv.padding, conv.kernel_size, conv.strides) == ((1, 1, 1, 1), (3, 3), (2, 2))
    assert op.nn.conv2d(x, w, padding=(1, 2)).attrs.padding == (1, 2, 1, 2)
    assert op.nn.conv1d(x, w, padding=(1, 2)).attrs.padding == (1, 2)
    assert op.nn.conv3d(x, w, padding=(1, 2, 3)).attrs.padding == (1, 2, 3, 1, 2, 3)
    assert op.nn.max_pool2d(x).attrs.padding == (0, 0, 0, 0)
    assert op.nn.avg_pool2d(x, pool_size=2).attrs.pool_size == (2, 2)
    with pytest.raises(RelayError, match="must have 1, 2 or 4 values"):
        op.nn.conv2d(x, w, padding=(1, 2, 3))


def test_python_defaults_that_differ_from_the_attributes():
    assert op.nn.batch_matmul(x, w).attrs.transpose_b is True
    assert op.nn.leaky_relu(x).attrs.alpha == 0.01
    assert op.nn.lrn(x).attrs.alpha == 1e-5
    assert op.nn.conv2d_transpose(x, w).attrs.kernel_layout == "IOHW"
    assert op.image.resize2d(x, (4, 4)).attrs.rounding_method == ""
    assert op.topk(x).astuple().attrs.k == 1 and op.argsort(x).attrs.dtype == "int32"
    assert op.shape_of(x).attrs.dtype == "int32"
    assert op.nn.dense(x, w).attrs.units is None and op.transpose(x).attrs.axes is None
    assert op.strided_slice(x, [0], [1]).attrs.strides == (1,)


def test_tuples_in_and_out():
    joined = op.concatenate([x, x], axis=1)
    assert isinstance(joined.args[0], Tuple) and joined.attrs.axis == 1
    parts = op.split(x, 2, axis=1)
    assert isinstance(parts, TupleWrapper) and len(parts) == 2
    assert len(op.split(x, (1, 2), axis=1)) == 3
    assert len(op.nn.batch_norm(x, w, w, w, w)) == 3
    dropped = op.nn.dropout(x)
    assert isinstance(dropped, TupleGetItem) and dropped.index == 0
    assert isinstance(op.concatenate(parts, 0), Call)


def test_expressions_for_shapes_choose_the_dynamic_operator():
    assert op.reshape(x, n).op.name == "dyn.reshape"
    assert op.reshape(x, const(np.array([4, -1]))).attrs.newshape == (4, -1)
    assert op.zeros(n, "float32").op.name == "dyn.zeros"
    assert op.tile(x, n).op.name == "dyn.tile"
    assert op.broadcast_to(x, n).op.name == "dyn.broadcast_to"
    assert op.full(const(1.0), n).op.name == "dyn.full"
    assert op.strided_slice(x, n, [3, 3]).op.name == "dyn.strided_slice"
    assert op.nn.pad(x, n).op.name == "dyn.nn.pad"
    assert op.image.resize2d(x, n).op.name == "dyn.image.resize2d"
    assert op.nn.upsampling(x, var("s", shape=())).op.name == "dyn.nn.upsampling"
    assert op.squeeze(x, n).op.name == "dyn.squeeze"
    assert op.topk(x, var("k", shape=(), dtype="int32")).astuple().op.name == "dyn.topk"
    assert op.one_hot(x, const(1), const(0), var("d", shape=(), dtype="int32"), -1, "int8").op.name == "dyn.one_hot"
    assert op.expand_dims(x, var("a", shape=(), dtype="int32")).op.name == "dyn.expand_dims"


def test_numbers_become_constants_where_relay_does_so():
    assert isinstance(op.nn.pad(x, [(0, 0)] * 4, 1.5).args[1], Constant)
    assert [a.data.numpy().item() for a in op.arange(const(5)).args] == [0.0, 5, 1.0]
    assert op.random.threefry_key(3).data.dtype == "uint64"


def test_composites():
    assert op.std(x, axis=1).op.name == "sqrt"
    spread = op.variance(x, axis=1)
    assert spread.op.name == "variance" and spread.args[1].op.name == "mean" and spread.args[1].attrs.keepdims
    assert len(op.mean_variance(x, axis=1)) == 2 and len(op.mean_std(x)) == 2
    assert op.logsumexp(x, axis=1).op.name == "squeeze"
    assert op.nn.global_avg_pool3d(x).attrs.output_size == (1, 1, 1)


def test_misuse_is_explained():
    with pytest.raises(RelayTypeError, match="expected an expression"):
        op.nn.relu(3)
    with pytest.raises(RelayAttributeError, match="there is no operator named"):
        op.get("nn.conv2")
    with pytest.raises(TypeError, match="stride"):
        op.nn.conv2d(x, w, stride=2)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_has_a_builder_that_keeps_attribute_order(name):
    definition = OPERATORS[name].definition
    assert list(definition(**_required(definition)).__dict__) == list(definition.fields)
    assert all(isinstance(f.kind, str) for f in definition.fields.values())


def _required(definition):
    cases = definition.samples()
    return cases[0].attrs if cases else {}


@pytest.mark.parametrize("module", [op, op.nn, op.image, op.vision, op.random, op.dyn], ids=lambda m: m.__name__)
def test_exported_builders_are_documented(module):
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, OperatorBuilder):
            assert value.__doc__ and name == value.__name__


def test_lists_that_mix_numbers_and_expressions_are_refused():
    with pytest.raises(RelayTypeError, match="cannot mix"):
        op.reshape(x, [1, var("k", shape=(), dtype="int32")])


def test_triangle_takes_a_number():
    assert op.trilu(x, 1).args[1].data.dtype == "int32"


@pytest.mark.parametrize("count", [None, 4])
def test_segment_sum_adds_rows(count):
    rows = np.arange(8, dtype="float32").reshape(4, 2)
    found = evaluate(op.segment_sum(const(rows), const(np.array([0, 2, 0, 2])), count))
    np.testing.assert_array_equal(found, np.array([[4, 6], [0, 0], [8, 10], [0, 0]], "float32")[: count or 3])


def test_composites_compute_what_numpy_does():
    data = np.random.default_rng(3).normal(size=(3, 4, 5)).astype("float32")
    np.testing.assert_allclose(evaluate(op.std(const(data), axis=1)), data.std(axis=1), rtol=1e-5)
    np.testing.assert_allclose(
        evaluate(op.logsumexp(const(data), axis=2)), np.log(np.exp(data.astype("float64")).sum(axis=2)), rtol=1e-5
    )
    ends = np.array([[np.inf, 1], [-np.inf, 2], [-np.inf, -np.inf], [np.inf, -np.inf], [np.nan, np.inf]], "float32")
    np.testing.assert_array_equal(evaluate(op.logsumexp(const(ends), axis=1)), np.logaddexp(*ends.T))
    mean, variance = (evaluate(e) for e in op.mean_variance(const(data), axis=1).astuple().fields)
    np.testing.assert_allclose(mean, data.mean(axis=1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance, data.var(axis=1), rtol=1e-4)
