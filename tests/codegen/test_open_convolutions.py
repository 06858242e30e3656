"""Convolutions of images whose size only a run tells: one form for all sizes, the interpreter's numbers."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.open.batch import BatchForm
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError

RNG = np.random.default_rng(0)
H, W, N = SizeVar("h"), SizeVar("w"), SizeVar("n")


def weight(*shape, dtype="float32"):
    return relay.const((RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(dtype), dtype)


def machine(x, body):
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
    vm.interpreted = relay.create_executor("debug", mod=mod).evaluate()
    return vm


def agree(vm, *shapes, dtype="float32", kind=OpenForm):
    for shape in shapes:
        x = RNG.standard_normal(shape).astype(dtype)
        got, wanted = vm.invoke("main", x).numpy(), vm.interpreted(x).numpy()
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert isinstance(vm.exe.specializations.open, kind), vm.exe.specializations.closed
    assert not vm.exe.specializations.forms


IMAGES = [(k, g, s, d, "float32") for k, g in ((1, 1), (3, 1), (3, 6), (5, 2)) for s, d in ((1, 1), (2, 1), (1, 2))]


@pytest.mark.parametrize(("kernel", "groups", "stride", "dilation", "dtype"), [*IMAGES, (3, 1, 2, 2, "float64")])
def test_images(kernel, groups, stride, dilation, dtype):
    x = relay.var("x", shape=(1, 6, H, W), dtype=dtype)
    options = {"padding": (kernel // 2, 1, 2, kernel // 2), "strides": (stride, stride), "dilation": (dilation,) * 2}
    y = relay.nn.conv2d(x, weight(12, 6 // groups, kernel, kernel, dtype=dtype), groups=groups, **options)
    y = relay.nn.relu(relay.nn.bias_add(y, weight(12, dtype=dtype)))
    y = relay.nn.conv2d(y, weight(40, 12, 1, 1, dtype=dtype))
    agree(machine(x, y), *((1, 6, *s) for s in ((19, 31), (9, 9), (40, 300), (23, 8))), dtype=dtype)


@pytest.mark.parametrize("channels", (1, 3, 16, 33, 300))
def test_channels_and_lines_of_all_lengths(channels):
    """Tiles of each height, whole panels and a rest, sums in parts."""
    x = relay.var("x", shape=(1, channels, 2, W))
    y = relay.nn.conv2d(relay.nn.relu(x), weight(70, channels, 2, 3), padding=(0, 1))
    agree(machine(x, y), *((1, channels, 2, k) for k in (*range(1, 31), 64, 257)))


@pytest.mark.parametrize("layout", ("NCW", "NWC"))
def test_sound(layout):
    shape = lambda n: (2, 5, n) if layout == "NCW" else (2, n, 5)
    x = relay.var("x", shape=shape(W))
    y, axis = x, layout.index("C")
    for k in range(3):
        form = {"data_layout": layout, "kernel_layout": "OIW" if k else "WIO"}
        kernel = weight(24 if k else 5, 5, 5) if not k else weight(24, 5 if k == 1 else 24, 3)
        kernel = kernel if k else relay.transpose(kernel, (2, 1, 0))
        y = relay.nn.conv1d(y, kernel, dilation=(k + 1,), padding=(k + 2 if not k else k + 1,), **form)
        y = relay.sigmoid(relay.nn.bias_add(y, weight(24 if k else 5), axis=axis))
    agree(machine(x, y), *(shape(n) for n in (16, 1, 100, 5000, 7)))


@pytest.mark.parametrize(("groups", "ins", "outs"), [(2, 16, 40), (4, 64, 64), (3, 24, 60), (2, 16, 2), (8, 8, 16)])
def test_groups(groups, ins, outs):
    x = relay.var("x", shape=(1, ins, H, W))
    y = relay.nn.conv2d(x, weight(outs, ins // groups, 3, 3), groups=groups, padding=(1, 1), strides=(1, 2))
    y = relay.nn.relu(relay.nn.bias_add(y, weight(outs)))
    agree(machine(x, relay.add(y, relay.sigmoid(y))), (1, ins, 5, 40), (1, ins, 1, 1), (1, ins, 9, 333))


def test_volumes():
    x = relay.var("x", shape=(1, 3, SizeVar("d"), H, W))
    y = relay.nn.conv3d(x, weight(8, 3, 3, 2, 3), padding=(1, 0, 1), strides=(2, 1, 1))
    agree(machine(x, relay.tanh(y)), (1, 3, 5, 6, 7), (1, 3, 1, 2, 1), (1, 3, 8, 9, 40))


@pytest.mark.parametrize("layout", ("NCHW", "NHWC"))
def test_a_residual_network_of_images(layout):
    last = layout == "NHWC"
    shape = lambda h, w: (1, h, w, 3) if last else (1, 3, h, w)
    conv = lambda y, o, i, k, s=1: relay.nn.conv2d(
        y, weight(o, i, k, k), padding=(k // 2,) * 2, strides=(s, s), data_layout=layout, kernel_layout="OIHW"
    )
    bias = lambda y, n: relay.nn.bias_add(y, weight(n), axis=3 if last else 1)
    x = relay.var("x", shape=shape(H, W))
    y = relay.nn.relu(bias(conv(x, 16, 3, 3, 2), 16))
    y = relay.nn.max_pool2d(y, (3, 3), (2, 2), padding=(1, 1), layout=layout)
    for _ in range(2):
        y = relay.nn.relu(relay.add(y, bias(conv(relay.nn.relu(bias(conv(y, 16, 16, 3), 16)), 16, 16, 3), 16)))
    y = relay.concatenate(
        [conv(y, 8, 16, 1), y, relay.nn.avg_pool2d(y, (3, 3), padding=(1, 1), layout=layout)], 3 if last else 1
    )
    pooled = relay.nn.global_avg_pool2d(y, layout=layout)
    y = relay.multiply(y, relay.sigmoid(conv(pooled, 40, 40, 1)))
    sizes = ((33, 47), (8, 8), (1, 1), (64, 20), (97, 130))
    agree(machine(x, y), *(shape(*s) for s in sizes))
    cells = relay.nn.adaptive_avg_pool2d(y, (3, 2), layout=layout)
    agree(machine(x, relay.nn.batch_flatten(cells)), *(shape(*s) for s in sizes))


def test_batches_and_images_open_together_and_batches_alone():
    x = relay.var("x", shape=(N, 3, H, W))
    agree(machine(x, relay.nn.conv2d(x, weight(5, 3, 3, 3))), (2, 3, 9, 8), (1, 3, 3, 3), (5, 3, 4, 30), (0, 3, 4, 4))
    x = relay.var("x", shape=(N, 3, 9, 8))
    agree(machine(x, relay.nn.conv2d(x, weight(5, 3, 3, 3))), (2, 3, 9, 8), (5, 3, 9, 8), kind=BatchForm)


def test_images_without_lines_and_too_small_for_a_window():
    x = relay.var("x", shape=(1, 3, H, W))
    vm = machine(x, relay.nn.conv2d(relay.exp(x), weight(5, 3, 3, 3)))
    agree(vm, (1, 3, 3, 3))
    for shape in ((1, 3, 2, 9), (1, 3, 9, 1), (1, 3, 0, 9)):
        with pytest.raises(RelayError, match="conv2d"):
            vm.invoke("main", np.zeros(shape, "float32"))


def test_weights_that_are_inputs_or_bytes_take_plain_loops():
    x, w = relay.var("x", shape=(1, 4, H, W)), relay.var("w", shape=(6, 4, 3, 3))
    mod = relay.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, padding=(1, 1))))
    vm, debug = VirtualMachine(relay.vm.compile(mod, "llvm")), relay.create_executor("debug", mod=mod).evaluate()
    for size in (5, 12, 31):
        args = [RNG.standard_normal(s).astype("float32") for s in ((1, 4, size, 7), (6, 4, 3, 3))]
        np.testing.assert_allclose(vm.invoke("main", *args).numpy(), debug(*args).numpy(), rtol=1e-4, atol=1e-5)
    assert isinstance(vm.exe.specializations.open, OpenForm)
    x = relay.var("x", shape=(1, 4, H, W), dtype="int8")
    y = relay.nn.conv2d(x, relay.const(RNG.integers(-9, 9, (6, 4, 3, 3)).astype("int8")), out_dtype="int32")
    vm = machine(x, y)
    given = RNG.integers(-128, 128, (1, 4, 9, 17)).astype("int8")
    np.testing.assert_array_equal(vm.invoke("main", given).numpy(), vm.interpreted(given).numpy())


def test_images_that_are_cut_out_by_data():
    """Open images of which data decides how many there are, and how large."""
    x, end = relay.var("x", shape=(1, 3, 40, 40)), relay.var("end", shape=(4,), dtype="int64")
    begin, step = relay.const(np.zeros(4, "int64")), relay.const(np.ones(4, "int64"))
    y = relay.nn.relu(
        relay.nn.conv2d(relay.op.dyn.strided_slice(x, begin, end, step), weight(4, 3, 3, 3), padding=(1, 1))
    )
    mod = relay.IRModule.from_expr(relay.Function([x, end], y))
    vm, debug = VirtualMachine(relay.vm.compile(mod, "llvm")), relay.create_executor("debug", mod=mod).evaluate()
    for h, w in ((10, 20), (40, 1), (33, 40)):
        args = RNG.standard_normal((1, 3, 40, 40)).astype("float32"), np.array([1, 3, h, w])
        got = vm.invoke("main", *args).numpy()
        np.testing.assert_allclose(got, debug(*args).numpy(), rtol=1e-4, atol=1e-5)


TRANSPOSED = [
    (4, 2, 1, 0),
    (3, 2, 1, 1),
    (2, 2, 0, 0),
    (16, 8, 4, 0),
    (5, 3, 0, 2),
    (3, 1, 1, 0),
    (1, 4, 0, 3),
    (3, 5, 0, 4),
]


@pytest.mark.parametrize("layout", ("NCW", "NWC"))
@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_ones_are_convolutions_with_a_result_for_each_step(case, layout):
    kernel, stride, pad, extra = case
    shape = lambda n: (2, 6, n) if layout == "NCW" else (2, n, 6)
    options = {"strides": (stride,), "padding": (pad,), "output_padding": (extra,), "data_layout": layout}
    x = relay.var("x", shape=shape(W))
    y = relay.nn.conv1d_transpose(x, weight(6, 10, kernel), channels=10, kernel_size=(kernel,), **options)
    vm = machine(x, relay.tanh(relay.nn.bias_add(y, weight(10), axis=layout.index("C"))))
    agree(vm, *(shape(n) for n in (16, 2, 3, 111)))
    nothing = np.zeros(shape(0), "float32")
    try:
        wanted = vm.interpreted(nothing).numpy()
    except RelayError:
        with pytest.raises(RelayError, match="conv1d_transpose"):
            vm.invoke("main", nothing)
    else:
        np.testing.assert_allclose(vm.invoke("main", nothing).numpy(), wanted, rtol=1e-6)


def test_images_are_enlarged_and_padded():
    x = relay.var("x", shape=(1, 4, H, W))
    y = relay.nn.conv2d_transpose(x, weight(4, 6, 4, 3), strides=(2, 3), padding=(1, 0, 0, 1), output_padding=(0, 1))
    agree(machine(x, y), (1, 4, 5, 6), (1, 4, 1, 1), (1, 4, 20, 7))
    for change in (
        lambda y: relay.nn.upsampling(y, 2, 3),
        lambda y: relay.nn.upsampling(y, 2, 2, method="bilinear", align_corners=True),
        lambda y: relay.image.resize2d(y, (17, 9), method="cubic"),
        lambda y: relay.image.resize2d(y, (1, 9), coordinate_transformation_mode="pytorch_half_pixel"),
        lambda y: relay.nn.pad(y, ((0, 0), (0, 0), (1, 2), (2, 1)), pad_mode="edge"),
        lambda y: relay.nn.pad(y, ((0, 0), (0, 0), (1, 2), (2, 1)), pad_mode="reflect"),
        lambda y: relay.nn.mirror_pad(y, ((0, 0), (0, 0), (1, 1), (3, 1))),
        lambda y: relay.nn.prelu(relay.nn.lrn(y, 3), weight(4)),
    ):
        vm = machine(x, relay.nn.conv2d(change(x), weight(3, 4, 1, 1)))
        agree(vm, (1, 4, 8, 12), (1, 4, 31, 5), (1, 4, 3, 4))
        with pytest.raises(RelayError):
            vm.invoke("main", np.zeros((1, 4, 0, 4), "float32"))


def test_parts_that_are_alike_for_some_sizes_only_are_joined_for_these():
    x = relay.var("x", shape=(1, 3, H, W))
    half = relay.nn.max_pool2d(relay.nn.conv2d(x, weight(4, 3, 1, 1)), (2, 2), (2, 2))
    whole = relay.nn.conv2d_transpose(half, weight(4, 5, 2, 2), strides=(2, 2))
    vm = machine(x, relay.nn.conv2d(relay.concatenate([x, whole], 1), weight(6, 8, 3, 3), padding=(1, 1)))
    agree(vm, (1, 3, 8, 12), (1, 3, 2, 2), (1, 3, 30, 18))
    with pytest.raises(RelayError, match="concatenate"):
        vm.invoke("main", np.zeros((1, 3, 9, 12), "float32"))
