"""Relations with unknown dimensions and with unknown types: dimensions propagate, weights get their types."""

from __future__ import annotations

import pytest
from op_cases import Solver

from relaylab.ir import OPERATORS, AnyDim, IncompleteType, TensorType, TupleType

N = AnyDim()


def T(*shape, dtype="float32"):
    return TensorType(shape, dtype)


def solve(name, attrs, *types):
    solver = Solver()
    found = OPERATORS[name].definition(**attrs).relation(solver, *types)
    return (found if found is None else solver.resolve(found)), solver


DYNAMIC = [
    ("add", {}, [T(N, 3), T(1, 3)], T(N, 3)),
    ("add", {}, [T(N, 3), T(4, 3)], T(4, 3)),
    ("add", {}, [T(N), T(N)], T(N)),
    ("less", {}, [T(N), T(1)], T(N, dtype="bool")),
    ("nn.dense", {"units": 4}, [T(N, 3), T(4, 3)], T(N, 4)),
    ("nn.batch_matmul", {"transpose_b": True}, [T(N, 3, 4), T(2, 5, 4)], T(N, 3, 5)),
    ("nn.conv2d", {}, [T(N, 3, N, 8), T(4, 3, 3, 3)], T(N, 4, N, 6)),
    (
        "nn.conv2d_transpose",
        {"kernel_layout": "IOHW", "strides": (2, 2)},
        [T(1, 3, N, 4), T(3, 5, 2, 2)],
        T(1, 5, N, 8),
    ),
    ("nn.max_pool2d", {"pool_size": (2, 2)}, [T(N, 3, N, 8)], T(N, 3, N, 7)),
    ("nn.global_avg_pool2d", {}, [T(N, 3, N, 8)], T(N, 3, 1, 1)),
    ("nn.adaptive_avg_pool2d", {"output_size": ()}, [T(1, 3, N, 8)], T(1, 3, N, 8)),
    ("nn.pad", {"pad_width": ((1, 1), (2, 0))}, [T(N, 3), T()], T(N, 5)),
    ("nn.batch_flatten", {}, [T(N, 3, 4)], T(N, 12)),
    ("nn.batch_flatten", {}, [T(2, N, 4)], T(2, N)),
    ("reshape", {"newshape": (0, -1)}, [T(N, 3, 4)], T(N, 12)),
    ("reshape", {"newshape": (-1, 4)}, [T(N, 3, 4)], T(N, 4)),
    ("transpose", {"axes": (1, 0)}, [T(N, 3)], T(3, N)),
    ("concatenate", {"axis": 0}, [TupleType([T(N, 3), T(2, N)])], T(N, 3)),
    ("stack", {"axis": 0}, [TupleType([T(N, 3), T(2, 3)])], T(2, 2, 3)),
    ("split", {"indices_or_sections": 2, "axis": 1}, [T(N, 4)], TupleType([T(N, 2)] * 2)),
    ("split", {"indices_or_sections": 2}, [T(N)], TupleType([T(N)] * 2)),
    ("strided_slice", {"begin": (0, 1), "end": (2, 3), "strides": (1,)}, [T(N, 4)], T(N, 2)),
    ("take", {"axis": 0}, [T(N, 4), T(N, 2, dtype="int32")], T(N, 2, 4)),
    ("sum", {"axis": 1}, [T(N, 3)], T(N)),
    ("argmax", {"axis": 0, "keepdims": True}, [T(N, 3)], T(1, 3, dtype="int32")),
    ("where", {}, [T(N, dtype="bool"), T(1), T()], T(N)),
    ("tile", {"reps": (2, 2)}, [T(N, 3)], T(N, 6)),
    ("repeat", {"repeats": 2, "axis": 0}, [T(N, 3)], T(N, 3)),
    ("layout_transform", {"src_layout": "NCHW", "dst_layout": "NHWC4c"}, [T(N, 8, N, 2)], T(N, N, 2, 2, 4)),
    ("image.resize2d", {"size": (4, 5)}, [T(N, 3, N, N)], T(N, 3, 4, 5)),
    ("nn.upsampling", {"scale_h": 2, "scale_w": 2}, [T(1, 3, N, 4)], T(1, 3, N, 8)),
    ("image.affine_grid", {"target_shape": (4, 5)}, [T(N, N, N)], T(N, 2, 4, 5)),
    ("sparse_to_dense", {"output_shape": (4, 5)}, [T(N, N, dtype="int32"), T(N), T()], T(4, 5)),
    (
        "vision.proposal",
        {"scales": (2.0,), "ratios": (1.0,), "rpn_post_nms_top_n": 5},
        [T(N, 2, N, N), T(N, 4, N, N), T(N, 3)],
        T(N, 5),
    ),
    ("one_hot", {"depth": 5, "dtype": "int8"}, [T(N, dtype="int64"), T(), T()], T(N, 5, dtype="int8")),
]


@pytest.mark.parametrize("name, attrs, types, expected", DYNAMIC, ids=[f"{c[0]}-{k}" for k, c in enumerate(DYNAMIC)])
def test_unknown_dimensions_propagate(name, attrs, types, expected):
    assert solve(name, attrs, *types)[0] == expected


C3 = T(3)
COMPLETED = [
    ("nn.dense", {"units": 4}, [T(2, 3), None], {1: T(4, 3)}, T(2, 4)),
    ("nn.matmul", {"units": 4}, [T(2, 3), None], {1: T(3, 4)}, T(2, 4)),
    ("nn.bias_add", {"axis": -1}, [T(2, 3), None], {1: C3}, T(2, 3)),
    ("nn.prelu", {}, [T(2, 3), None], {1: C3}, T(2, 3)),
    ("nn.batch_norm", {}, [T(2, 3, 4), *[None] * 4], dict.fromkeys((1, 2, 3, 4), C3), TupleType([T(2, 3, 4), C3, C3])),
    ("nn.layer_norm", {}, [T(2, 3), None, None], {1: C3, 2: C3}, T(2, 3)),
    ("nn.conv2d", {"channels": 4, "kernel_size": (3, 3)}, [T(1, 3, 8, 8), None], {1: T(4, 3, 3, 3)}, T(1, 4, 6, 6)),
    (
        "nn.conv2d",
        {"channels": 4, "kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWIO"},
        [T(1, 8, 8, 3), None],
        {1: T(3, 3, 3, 4)},
        T(1, 6, 6, 4),
    ),
    (
        "nn.conv2d_transpose",
        {"channels": 4, "kernel_size": (2, 2), "kernel_layout": "IOHW", "strides": (2, 2)},
        [T(1, 3, 4, 4), None],
        {1: T(3, 4, 2, 2)},
        T(1, 4, 8, 8),
    ),
    ("nn.conv1d", {"channels": 4, "kernel_size": (3,)}, [T(1, 3, 8), None], {1: T(4, 3, 3)}, T(1, 4, 6)),
]


@pytest.mark.parametrize(
    "name, attrs, types, weights, expected", COMPLETED, ids=[f"{c[0]}-{k}" for k, c in enumerate(COMPLETED)]
)
def test_weights_get_their_types(name, attrs, types, weights, expected):
    types = [IncompleteType() if t is None else t for t in types]
    found, solver = solve(name, attrs, *types)
    assert found == expected
    assert {k: solver.resolve(types[k]) for k in weights} == weights


def test_unknown_types_are_waited_for():
    """No relation fails or answers while an argument's type is unknown, unless the rest decides."""
    for name, entry in OPERATORS.items():
        for case in entry.definition.samples():
            types = [IncompleteType() for _ in case.args]
            found, _ = solve(name, case.attrs, *types)
            assert found is None or isinstance(found, (IncompleteType, TensorType, TupleType))


def test_elementwise_types_flow_back():
    solver, data = Solver(), IncompleteType()
    solver.out = T(2, 3)
    OPERATORS["nn.relu"].definition().relation(solver, data)
    assert solver.resolve(data) == T(2, 3)
