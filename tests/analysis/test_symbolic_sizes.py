"""What type relations derive from sizes with names: the recorded types of TVM, and the types of the same programs with
numbers.
"""

import numpy as np
import pytest

import relaylab
from relaylab import relay
from relaylab.ir.dims import AnyDim, IntImm, SizeVar, larger
from relaylab.ir.free import with_sizes
from relaylab.ir.types import TensorType, TupleType
from relaylab.support.errors import RelayError
from relaylab.transform import InferType

N, C, H, W = map(SizeVar, "nchw")
IMAGE = (N, C, H, W)


def var(*shape, dtype="float32", name="x"):
    return relay.var(name, shape=shape, dtype=dtype)


def type_of(expr):
    expr = expr.astuple() if hasattr(expr, "astuple") else expr
    return InferType()(relay.IRModule.from_expr(expr))["main"].body.checked_type


def shapes(t):
    return [f.shape for f in t.fields] if isinstance(t, TupleType) else t.shape


WEIGHT = var(4, 3, 3, 3, name="w")
RECORDED = [
    ("concatenate", lambda: relay.concatenate((var(N, C, 100), var(N, C, 100)), 1), (N, C + C, 100)),
    ("pad", lambda: relay.nn.pad(var(N, 2, 3, W), ((1, 1), (2, 2), (3, 3), (4, 4))), (N + 2, 6, 9, W + 8)),
    ("batch_flatten", lambda: relay.nn.batch_flatten(var(*IMAGE)), (N, (C * H) * W)),
    ("batch_flatten of some", lambda: relay.nn.batch_flatten(var(N, 2, H, 3)), (N, (2 * H) * 3)),
    ("split", lambda: relay.split(var(*IMAGE), 4, 2), [(N, C, H // 4, W)] * 4),
    ("split at", lambda: relay.split(var(*IMAGE), (2, 4, 7), 1), [(N, k, H, W) for k in (2, 2, 3, C - 7)]),
    ("upsampling", lambda: relay.nn.upsampling(var(*IMAGE), 2, 2, "NCHW", "bilinear"), (N, C, 2 * H, 2 * W)),
    ("yolo_reorg", lambda: relay.vision.yolo_reorg(var(*IMAGE), 2), (N, C * 2 * 2, H // 2, W // 2)),
    ("conv2d", lambda: relay.nn.conv2d(var(N, 3, H, W), WEIGHT, padding=(1, 1)), (N, 4, H, W)),
    ("conv2d, strides", lambda: relay.nn.conv2d(var(N, 3, H, W), WEIGHT, (2, 1)), (N, 4, (H - 3) // 2 + 1, W - 2)),
    ("repeat", lambda: relay.repeat(var(N, 4), 3, 0), (N * 3, 4)),
    ("tile", lambda: relay.tile(var(N, 4), (2, 3)), (N * 2, 12)),
    ("reshape", lambda: relay.reshape(var(N, 4, C), (-3, 0)), (N * 4, C)),
    ("reshape, the rest", lambda: relay.reshape(var(N, 4, C), (N, -1)), (N, 4 * C)),
    ("layout_transform", lambda: relay.layout_transform(var(*IMAGE), "NCHW", "NCHW4c"), (N, C // 4, H, W, 4)),
    ("add", lambda: relay.add(var(N + 1, 1), var(1 + N, 4, name="y")), (N + 1, 4)),
]  # fmt: skip


@pytest.mark.parametrize("build, expected", [case[1:] for case in RECORDED], ids=[case[0] for case in RECORDED])
def test_the_arithmetic_that_tvm_keeps(build, expected):
    assert shapes(type_of(build())) == expected


NUMBERS = {N: 2, C: 8, H: 12, W: 16}
OTHERS = {N: 1, C: 12, H: 20, W: 8}
PROGRAMS = [
    lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2), padding=(1, 1), ceil_mode=True),
    lambda x: relay.nn.avg_pool2d(x, (3, 3), (2, 2), dilation=(2, 1)),
    lambda x: relay.nn.depth_to_space(x, 2),
    lambda x: relay.nn.space_to_depth(x, 2),
    lambda x: relay.nn.space_to_batch_nd(x, (2, 2), ((0, 0), (1, 1)), 0.0),
    lambda x: relay.nn.batch_flatten(x),
    lambda x: relay.nn.conv2d_transpose(x, relay.var("w"), strides=(2, 2), channels=6, kernel_size=(3, 3)),
    lambda x: relay.nn.mirror_pad(x, ((0, 0), (0, 0), (1, 2), (2, 1))),
    lambda x: relay.nn.dilate(x, (1, 1, 2, 3)),
    lambda x: relay.nn.upsampling(x, 1.5, 2),
    lambda x: relay.strided_slice(x, [0, 1], [1, 3]),
    lambda x: relay.concatenate((x, relay.nn.relu(x), x), 3),
    lambda x: relay.reshape(x, (0, -1, 4)),
    lambda x: relay.reshape(x, (-4, -1, 1, -2)),
    lambda x: relay.reshape(x, (-1,)),
    lambda x: relay.repeat(x, 2, 1),
    lambda x: relay.topk(x, k=2, axis=1, ret_type="values"),
    lambda x: relay.transpose(x, (3, 1, 0, 2)),
    lambda x: relay.stack((x, x), 2),
    lambda x: relay.sliding_window(x, 2, (3, 4), (2, 3)),
    lambda x: relay.split(x, 4, 1)[2],
    lambda x: relay.nn.correlation(x, x, 1, 2, 1, 1, 2, True, "NCHW"),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_expressions_have_the_extents_of_the_program_with_numbers(program):
    derived = type_of(program(var(*IMAGE))).shape
    for sizes in (NUMBERS, OTHERS):
        found = type_of(program(var(*sizes.values()))).shape
        values = {v: IntImm(k) for v, k in sizes.items()}
        assert len(found) == len(derived)
        assert all(type(d) is AnyDim or with_sizes(d, values) == k for d, k in zip(derived, found)), derived


def test_most_of_them_know_every_extent():
    known = [not any(type(d) is AnyDim for d in type_of(p(var(*IMAGE))).shape) for p in PROGRAMS]
    assert sum(known) >= len(known) - 7


def test_what_is_cut_from_an_open_axis_is_not_the_axis():
    assert type_of(relay.strided_slice(var(N, 4), [1, 0], [3, 2])).shape == (larger(N - 1, 0) - larger(N - 3, 0), 2)
    back = larger(larger(N - 1, 0) - larger(N - 4, 0), 0)
    assert type_of(relay.strided_slice(var(N, 4), [-2, 0], [-5, 2], [-1, 1])).shape == (back, 2)


# ---- joining


def test_sizes_that_always_differ_are_refused():
    with pytest.raises(RelayError, match="cannot be joined"):
        type_of(relay.concatenate((var(N, 2), var(N + 1, 2, name="y")), 1))
    branch = lambda n: relay.If(relay.var("c", "bool"), var(N, 2), var(n, 2, name="y"))
    assert type_of(branch(N)).shape == (N, 2) and type_of(branch(C)).shape == (AnyDim(), 2)
    with pytest.raises(RelayError, match="n against n \\+ 1"):
        type_of(branch(N + 1))


def test_joined_tensors_have_what_is_known_of_either():
    joined = relay.concatenate((var(AnyDim(), 2), var(N, 3, name="y"), var(AnyDim(), 1, name="z")), 1)
    assert type_of(joined).shape == (N, 6)


# ---- calls


def doubled():
    x = var(N, 4)
    return relay.Function([x], relay.concatenate((x, x), 0))


def called(*shape_lists):
    mod, f = relay.IRModule(), relay.GlobalVar("f")
    mod[f] = doubled()
    args = [var(*shape, name=f"a{k}") for k, shape in enumerate(shape_lists)]
    mod["main"] = relay.Function(args, relay.Tuple([relay.Call(f, [a]) for a in args]))
    return mod


def test_a_call_says_what_the_sizes_of_a_function_are():
    mod = InferType()(called((3, 4), (C, 4), (AnyDim(), 4), (C + 1, 4)))
    assert shapes(mod["main"].ret_type) == [(6, 4), (2 * C, 4), (AnyDim(), 4), (2 * C + 2, 4)]
    assert mod["f"].ret_type.shape == (2 * N, 4)


def test_one_size_is_one_number_at_a_call():
    x, y = var(N, 2), var(N, 3, name="y")
    f = relay.Function([x, y], relay.concatenate((x, y), 1))
    assert type_of(relay.Call(f, [var(AnyDim(), 2, name="a"), var(7, 3, name="b")])).shape == (7, 5)
    with pytest.raises(RelayError, match="the size `n` is 6 and 7"):
        type_of(relay.Call(f, [var(6, 2, name="a"), var(7, 3, name="b")]))


def test_a_function_that_calls_itself_keeps_its_sizes():
    mod = relay.parse("""
    #[version = "0.0.5"]
    def @f(%x: Tensor[(meta[tir.SizeVar][0], 2), float32], %k: int32) -> Tensor[(meta[tir.SizeVar][0], 2), float32] {
      if (less(%k, 1)) { %x } else { nn.relu(@f(%x, subtract(%k, 1))) }
    }
    def @main(%y: Tensor[(5, 2), float32]) { @f(%y, 3) }
    """)
    assert InferType()(mod)["main"].ret_type == TensorType((5, 2))


# ---- running


def test_the_virtual_machine_runs_what_the_interpreter_runs():
    x = var(N, 3, H, 8)
    y = relay.nn.conv2d(x, relay.const(np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")))
    z = relay.concatenate((y, relay.nn.relu(y)), 1)
    parts = relay.split(z, 2, 1)
    f = relay.Function(
        [x], relay.Tuple([relay.nn.batch_flatten(z), relay.nn.pad(parts[1], ((0, 1), (0, 0), (2, 0), (0, 0)))])
    )
    mod = relay.IRModule.from_expr(f)
    for n, h in ((1, 5), (3, 9)):
        data = np.random.default_rng(n).normal(size=(n, 3, h, 8)).astype("float32")
        expected = relay.create_executor("debug", mod=mod).evaluate()(data)
        found = relay.create_executor("vm", mod=mod).evaluate()(data)
        assert expected[1].numpy().shape == (n + 1, 4, h, 6)
        for a, b in zip(expected, found):
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["graph", "aot"])
def test_static_executors_refuse_by_name(kind):
    x = var(N, 4)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.sum(relay.concatenate((x, x), 0))))
    with pytest.raises(RelayError, match=r"Tensor\[\((2 \* )?n, 4\), float32\]") as raised:
        relay.create_executor(kind, mod=mod).evaluate()(np.ones((2, 4), "float32"))
    assert raised.value.code == "build.not-static"


def test_a_program_for_tvm_divides_sizes():
    relaylab.install_as_tvm()
    try:
        import tvm

        n = tvm.te.var("n")
        assert tvm.tir.indexdiv(n, 4) == n // 4 and tvm.te.size_var("n") != n and tvm.tir.floordiv(9, 4) == 2
    finally:
        relaylab.compat.uninstall_tvm()
