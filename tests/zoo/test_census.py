"""The networks against the census (parameters, weights, operators, structure), recorded texts and numbers."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from support.recorded import recorded
from relaylab import relay
from relaylab.ir import Call, Let, Op, TupleGetItem, walk
from relaylab.relay import testing
from relaylab.support.errors import RelayError

CENSUS = {
    "mlp": (
        lambda: testing.mlp.get_net(1),
        7,
        109_386,
        10,
        0,
        {"nn.dense": 3, "nn.bias_add": 3, "nn.relu": 2, "nn.batch_flatten": 1, "nn.softmax": 1},
    ),
    "resnet18": (
        lambda: testing.resnet.get_net(1, 1000, 18),
        100,
        11_699_892,
        72,
        19,
        {"nn.conv2d": 21, "nn.batch_norm": 19, "nn.relu": 18, "add": 8},
    ),
    "resnet34": (lambda: testing.resnet.get_net(1, 1000, 34), 180, 21_815_476, 128, 35, {"nn.conv2d": 37, "add": 16}),
    "resnet50": (
        lambda: testing.resnet.get_net(1, 1000, 50),
        260,
        25_595_060,
        176,
        51,
        {"nn.conv2d": 53, "nn.relu": 50},
    ),
    "resnet101": (lambda: testing.resnet.get_net(1, 1000, 101), 515, 44_639_412, 346, 102, {"nn.conv2d": 104}),
    "resnet152": (lambda: testing.resnet.get_net(1, 1000, 152), 770, 60_329_140, 516, 153, {"nn.conv2d": 155}),
    "resnet18_nhwc": (
        lambda: testing.resnet.get_net(1, 1000, 18, (224, 224, 3), layout="NHWC"),
        100,
        11_699_892,
        72,
        19,
        {},
    ),
    "resnet8": (
        lambda: testing.resnet.get_net(1, 10, 8, (3, 28, 28)),
        45,
        78_598,
        33,
        8,
        {"nn.conv2d": 10, "nn.batch_norm": 8, "nn.relu": 7, "add": 3},
    ),
    "resnet_3d": (
        lambda: testing.resnet_3d.get_net(1, 1000, 18),
        100,
        33_689_652,
        71,
        19,
        {"nn.conv3d": 21, "nn.adaptive_avg_pool3d": 1},
    ),
    "mobilenet": (
        lambda: testing.mobilenet.mobile_net(),
        138,
        4_253_864,
        86,
        27,
        {"nn.conv2d": 27, "nn.batch_norm": 27, "nn.relu": 27},
    ),
    "mobilenet_nhwc": (
        lambda: testing.mobilenet.mobile_net(data_shape=(1, 224, 224, 3), layout="NHWC"),
        138,
        4_254_184,
        86,
        27,
        {},
    ),
    "squeezenet1.0": (
        lambda: testing.squeezenet.get_net(1, (3, 224, 224), 1000, "1.0", "float32"),
        53,
        1_248_424,
        93,
        1,
        {"nn.conv2d": 26, "concatenate": 8},
    ),
    "squeezenet1.1": (
        lambda: testing.squeezenet.get_net(1, (3, 224, 224), 1000, "1.1", "float32"),
        53,
        1_235_496,
        93,
        1,
        {"nn.max_pool2d": 3},
    ),
    "vgg11": (
        lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 11),
        23,
        132_863_336,
        41,
        2,
        {"nn.conv2d": 8, "nn.dropout": 2},
    ),
    "vgg13": (
        lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 13),
        27,
        133_047_848,
        47,
        2,
        {"nn.conv2d": 10},
    ),
    "vgg16": (
        lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 16),
        33,
        138_357_544,
        56,
        2,
        {"nn.conv2d": 13},
    ),
    "vgg19": (
        lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 19),
        39,
        143_667_240,
        65,
        2,
        {"nn.conv2d": 16},
    ),
    "vgg11_bn": (
        lambda: testing.vgg.get_net(1, (3, 224, 224), 1000, "float32", 11, True),
        55,
        132_874_344,
        49,
        10,
        {"nn.batch_norm": 8},
    ),
    "inception_v3": (
        lambda: testing.inception_v3.get_net(1, 1000, (3, 299, 299), "float32"),
        473,
        23_869_000,
        311,
        94,
        {"nn.conv2d": 94, "concatenate": 11},
    ),
    "densenet121": (
        lambda: testing.densenet.get_net(121, batch_size=1),
        607,
        3_568_808,
        374,
        121,
        {"nn.conv2d": 120, "concatenate": 4},
    ),
    "densenet161": (lambda: testing.densenet.get_net(161, batch_size=1), 807, 10_848_136, 494, 161, {}),
    "densenet169": (lambda: testing.densenet.get_net(169, batch_size=1), 847, 5_363_899, 518, 169, {}),
    "densenet201": (lambda: testing.densenet.get_net(201, batch_size=1), 1007, 6_783_656, 614, 201, {}),
    "dqn": (
        lambda: testing.dqn.get_net(1),
        11,
        1_693_362,
        15,
        0,
        {"nn.conv2d": 3, "nn.bias_add": 5, "nn.relu": 4, "nn.dense": 2},
    ),
    "dcgan": (
        lambda: testing.dcgan.get_net(1),
        18,
        12_658_176,
        14,
        3,
        {"nn.conv2d_transpose": 4, "nn.batch_norm": 3, "tanh": 1, "reshape": 1},
    ),
    "synthetic": (
        lambda: testing.synthetic.get_net(),
        10,
        465,
        16,
        1,
        {"nn.conv2d": 2, "reshape_like": 2, "nn.batch_norm": 1},
    ),
    "lstm": (
        lambda: testing.lstm.get_net(2, 128),
        10,
        264_192,
        33,
        16,
        {"nn.dense": 4, "sigmoid": 6, "multiply": 6, "split": 2, "zeros": 1},
    ),
}


@pytest.mark.parametrize("name", CENSUS)
def test_census(name: str) -> None:
    build, n_params, weights, calls, projections, ops = CENSUS[name]
    mod = relay.transform.InferType()(relay.IRModule.from_expr(build()))
    main = mod["main"]
    nodes = list(walk((main,)))
    assert len(main.params) == n_params
    assert sum(math.prod(p.checked_type.concrete_shape) for p in main.params if p.name_hint != "data") == weights
    assert sum(isinstance(n, Call) for n in nodes) == calls
    assert sum(isinstance(n, TupleGetItem) for n in nodes) == projections
    counts = testing.count_ops(main)
    assert {k: counts[k] for k in ops} == ops


def test_lstm_structure() -> None:
    nodes = list(walk((testing.lstm.get_net(2, 128),)))
    assert sum(isinstance(n, Let) for n in nodes) == 30
    assert sum(isinstance(n, relay.Function) for n in nodes) == 3
    assert sum(isinstance(n, relay.Tuple) for n in nodes) == 5
    assert [n.op.name for n in nodes if isinstance(n, Call) and isinstance(n.op, Op)].count("tanh") == 4


RECORDED = {
    "mlp": lambda: testing.mlp.get_workload(1),
    "dqn": lambda: testing.dqn.get_workload(1),
    "dcgan": lambda: testing.dcgan.get_workload(1),
    "synthetic": lambda: testing.synthetic.get_workload(),
    "lstm": lambda: testing.lstm.get_workload(3, 16),
}


@pytest.mark.parametrize("name", RECORDED)
def test_same_numbers_as_recorded(name: str) -> None:
    """Seeded parameters and inputs give the numbers that users of the reference have seen."""
    record = recorded("network", name)
    mod, params = RECORDED[name]()
    assert {k: [list(v.shape), v.dtype] for k, v in params.items()} == record["params"]
    rng = np.random.RandomState(7)
    inputs = {n: rng.uniform(-1, 1, shape).astype(dtype) for n, (shape, dtype) in record["inputs"].items()}
    values = [(inputs | params)[p.name_hint] for p in mod["main"].params]
    got = relay.create_executor("debug", mod).evaluate()(*values).numpy()
    expected = record["outputs"][0]
    assert list(got.shape) == expected["shape"]
    np.testing.assert_allclose(got.ravel()[: len(expected["head"])], expected["head"], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(got.sum(), expected["sum"], rtol=1e-4, atol=1e-4)


def test_mobilenet_has_the_classes_of_imagenet() -> None:
    mod, params = testing.mobilenet.get_workload()
    assert mod["main"].ret_type.concrete_shape == (1, 1000)
    assert sum(math.prod(value.shape) for value in params.values()) == 4_253_864


@pytest.mark.parametrize("layout, shape", [("NCHW", (2, 3, 64, 64)), ("NHWC", (2, 64, 64, 3))])
def test_images_of_the_generator_have_the_channels_that_are_asked_for(layout: str, shape: tuple[int, ...]) -> None:
    mod, _ = testing.dcgan.get_workload(2, oshape=[3, 64, 64], ngf=4, layout=layout)
    assert mod["main"].ret_type.concrete_shape == shape


def test_parameters_without_elements() -> None:
    _, params = testing.lstm.get_workload(1, 0)
    assert params["i2h_0_weight"].shape == (0, 0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: testing.resnet.get_net(1, 10, 19), "num_layers 19"),
        (lambda: testing.resnet.get_net(1, 10, 9, (3, 28, 28)), "num_layers 9"),
        (lambda: testing.resnet.get_net(1, 10, 20, (3, 32, 32)), "images of at most 28 rows take 6n+2"),
        (lambda: testing.resnet.get_net(1, 10, -4, (3, 28, 28)), "num_layers -4"),
        (lambda: testing.resnet.get_net(1, 10, 18, layout="CHWN4c"), "known for CHWN4c"),
        (lambda: testing.resnet.get_net(1, 10, 18, (224, 224)), "(224, 224) has the layout NCHW"),
        (lambda: testing.resnet.get_net(1, 10, "18"), "`num_layers` must be a whole number, not '18'"),
        (lambda: testing.mlp.get_workload(1, image_shape=784), "`image_shape` must be a list"),
        (lambda: testing.mobilenet.get_workload(alpha="1"), "`alpha` must be a number"),
        (lambda: testing.synthetic.get_workload((3, 24, 12)), "four axes"),
        (lambda: testing.lstm.get_net(-1, 16), "-1 steps"),
        (lambda: testing.make_nat_value(testing.Prelude(), -1), "-1 is not a natural number"),
        (lambda: testing.vgg.get_net(1, (3, 32, 32), 10, "float32", 12), "num_layers 12"),
        (lambda: testing.squeezenet.get_net(1, (3, 64, 64), 10, "2.0", "float32"), "version 2.0"),
        (lambda: testing.densenet.get_net(99), "99 layers"),
        (lambda: testing.dcgan.get_net(1, oshape=(3, 32, 32)), "64x64"),
        (lambda: testing.dcgan.get_net(1, oshape=(64, 64, 3), layout="NHWC"), "64x64"),
        (lambda: testing.layers.conv2d(relay.var("x"), channels=1), "needs a name"),
    ],
)
def test_bad_options(call, message: str) -> None:
    with pytest.raises(RelayError, match=re.escape(message)):
        call()


def test_sizes_may_be_open() -> None:
    mod, _ = testing.resnet.get_workload(relay.Any(), 10, 8, [3, 28, 28])
    assert str(mod["main"].ret_type) == "Tensor[(?, 10), float32]"
