"""Operators on images and boxes against their formulas, told again in plain numpy loops (TVM 0.10's topi, torch)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import OPERATORS
from relaylab.ir.dims import AnyDim, SizeVar
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)


def run(build, *arrays):
    """What a function of the arrays gives, interpreted and compiled: the same."""
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=a.dtype.name) for k, a in enumerate(arrays)]
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(variables, build(*variables))))
    meant = relay.create_executor("debug", mod=mod).evaluate()(*arrays)
    made = relay.create_executor("vm", mod=mod).evaluate()(*arrays)
    single = not isinstance(meant, (list, tuple))
    for a, c in [(meant, made)] if single else zip(meant, made):
        np.testing.assert_allclose(c.numpy(), a.numpy(), rtol=1e-5, atol=1e-5)
    return meant.numpy() if single else [m.numpy() for m in meant]


def type_of(expr):
    return relay.transform.InferType()(relay.IRModule.from_expr(expr))["main"].body.checked_type


# ---- grid_sample: torch.nn.functional.grid_sample, topi/image/grid_sample.py


def away(v: float) -> int:
    """The nearest whole number, halves away from zero."""
    return int(math.copysign(math.floor(abs(v) + 0.5), v))


def mirrored(v: float, extent: int, align_corners: bool) -> float:
    """A place reflected at the outermost pixels or their outer edges until it lies between, then clipped."""
    low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
    while not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return min(max(v, 0.0), extent - 1.0)


def padded(v: float, extent: int, mode: str, align_corners: bool) -> float:
    if mode == "border":
        return min(max(v, 0.0), extent - 1.0)
    return mirrored(v, extent, align_corners) if mode == "reflection" else v


def keys(x: float) -> float:
    """Keys' kernel with a = -0.75."""
    a, x = -0.75, abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def sampled(data, grid, method, mode, align_corners):
    out = np.zeros((*data.shape[:2], *grid.shape[2:]))
    for n, row, column in np.ndindex(len(grid), *grid.shape[2:]):
        axes = []
        for extent, g in zip(data.shape[2:], grid[n, ::-1, row, column].astype("float64")):
            v = (g + 1) * (extent - 1) / 2 if align_corners else ((g + 1) * extent - 1) / 2
            if method == "bicubic":
                first = math.floor(v) - 1
                taps = [(padded(k, extent, mode, align_corners), keys(v - k)) for k in range(first, first + 4)]
            elif method == "nearest":
                taps = [(away(padded(v, extent, mode, align_corners)), 1.0)]
            else:
                v = padded(v, extent, mode, align_corners)
                taps = [(math.floor(v), 1 - v + math.floor(v)), (math.floor(v) + 1, v - math.floor(v))]
            axes.append([(int(k), w) for k, w in taps if 0 <= k <= extent - 1])
        for (y, v), (x, w) in itertools.product(*axes):
            out[n, :, row, column] += data[n, :, y, x] * v * w
    return out


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bicubic", "bilinear", "nearest"])
def test_grid_sample_pads_as_torch_does(method, mode, align_corners):
    data, grid = RNG.random((2, 2, 5, 4), "float32"), RNG.uniform(-1.9, 1.9, (2, 2, 6, 7)).astype("float32")
    found = run(lambda x, g: relay.image.grid_sample(x, g, method, "NCHW", mode, align_corners), data, grid)
    np.testing.assert_allclose(found, sampled(data, grid, method, mode, align_corners), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grid_sample_takes_the_pixel_away_from_0_in_the_middle_of_two(mode, align_corners):
    data, halves = RNG.random((1, 1, 4, 5), "float32"), np.arange(-12, 13) / 8
    grid = np.stack(np.meshgrid(halves, halves)).astype("float32")[None]
    found = run(lambda x, g: relay.image.grid_sample(x, g, "nearest", "NCHW", mode, align_corners), data, grid)
    np.testing.assert_array_equal(found, sampled(data, grid, "nearest", mode, align_corners).astype("float32"))
    volume, middle = np.arange(64, dtype="float32").reshape(1, 1, 4, 4, 4), np.full((1, 3, 1, 1, 1), 0.5, "float32")
    found = run(lambda x, g: relay.image.grid_sample(x, g, "nearest", "NCDHW", mode, False), volume, middle)
    assert found.item() == 63


@pytest.mark.parametrize("mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bicubic", "bilinear", "nearest"])
def test_grid_sample_reads_what_is_near_only_and_takes_places_that_are_no_numbers(method, mode):
    data, grid = RNG.random((1, 1, 5, 5), "float32"), np.full((1, 2, 1, 2), 0.75, "float32")
    near = data.copy()
    near[0, 0, 0, 0] = np.inf
    sample = lambda x, g: relay.image.grid_sample(x, g, method, "NCHW", mode, True)
    np.testing.assert_array_equal(run(sample, near, grid), run(sample, data, grid))
    grid[0, 0, 0] = np.nan, -np.inf
    found = run(sample, data, grid)
    assert np.isnan(found[..., 0]).all() or method == "nearest" and np.isfinite(found).all()


# ---- crop_and_resize: topi/image/resize.py in float32


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
def test_crop_and_resize_finds_places_in_float32(method):
    boxes = np.stack([np.array([0.05 * k, 0.03 * k, 1.0, 1.0], "float32") for k in range(12)])
    data, one = np.ones((1, 1, 10, 11), "float32"), np.float32(1)
    which = np.zeros(len(boxes), "int32")
    found = run(lambda x, b, i: relay.image.crop_and_resize(x, b, i, (8, 7), "NCHW", method, -9.0), data, boxes, which)
    wanted = np.ones_like(found)
    for n, k, d in np.ndindex(len(boxes), 8, 2):
        extent, target, first = (10, 11)[d], (8, 7)[d], boxes[n, d]
        scale = np.float32(np.float32(np.float32(extent - 1) * np.float32(one - first)) / np.float32(target - 1))
        place = np.float32(np.float32(first * np.float32(extent - 1)) + np.float32(scale * np.float32(k)))
        if k < target and place > extent - 1:
            wanted[n, 0, k if d == 0 else slice(None), k if d == 1 else slice(None)] = -9.0
    assert (wanted == -9).any() and (wanted[:, 0, -1, -1] == 1).any()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_box_that_ends_at_the_first_pixel_has_it(dtype):
    data, box = RNG.random((1, 1, 6, 5), "float32") + 1, np.array([[0.5, 0.5, 0, 0]], dtype)
    cut = lambda x, b, i: relay.image.crop_and_resize(x, b, i, 4, "NCHW")
    assert run(cut, data, box, np.zeros(1, "int32")).min() >= 1
    roi = {"roi": (0.75, 0.0), "coordinate_transformation_mode": "tf_crop_and_resize"}
    assert run(lambda x: relay.image.resize1d(x, 12, layout="NCW", **roi), RNG.random((1, 1, 13)) + 1).min() >= 1


# ---- dilation2d: topi/image/dilation2d.py pads with zeros


def test_dilation2d_pads_with_zeros():
    data, weight = -RNG.random((1, 2, 4, 5), "float32") - 1, RNG.random((2, 3, 2), "float32") - 0.5
    found = run(lambda x, w: relay.image.dilation2d(x, w, (1, 1), (1, 1, 1, 1), (1, 1)), data, weight)
    x = np.pad(data, [(0, 0), (0, 0), (1, 1), (1, 1)])
    wanted = np.zeros_like(found)
    for c, row, column in np.ndindex(*wanted.shape[1:]):
        wanted[0, c, row, column] = (x[0, c, row : row + 3, column : column + 2] + weight[c]).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


# ---- resize3d: topi/image/resize.py reads x from roi[0] and roi[3], z from roi[2] and roi[5]


def test_resize3d_reads_its_region_from_x_to_z():
    data, roi, size = RNG.random((1, 1, 5, 6, 7), "float32"), (0.1, 0.2, 0.3, 0.6, 0.7, 0.8), (3, 4, 2)
    mode = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    found = run(lambda x: relay.image.resize3d(x, size, roi, "NCDHW", "linear", **mode), data)
    line = data.astype("float64")
    for d, (extent, target) in enumerate(zip(data.shape[2:], size)):
        first, last = (roi[2 - d] * (extent - 1), roi[5 - d] * (extent - 1))
        read = lambda v, at=np.linspace(first, last, target): np.interp(at, np.arange(len(v)), v)
        line = np.apply_along_axis(read, d + 2, line)
    np.testing.assert_allclose(found, line, rtol=1e-5)


# ---- roi_pool: topi/vision/rcnn/roi_pool.py


def pooled(data, rois, size, scale):
    out = np.zeros((len(rois), data.shape[1], *size), data.dtype)
    for n, *cell in np.ndindex(len(rois), *size):
        window = []
        for d in range(2):
            begin, end = (away(float(np.float32(rois[n, c]) * np.float32(scale))) for c in (2 - d, 4 - d))
            bin_size = np.float32(max(end - begin + 1, 1)) / np.float32(size[d])
            low, high = math.floor(np.float32(cell[d]) * bin_size), math.ceil(np.float32(cell[d] + 1) * bin_size)
            window.append(slice(*(min(max(v + begin, 0), data.shape[2 + d]) for v in (low, high))))
        part = data[int(rois[n, 0]), :, window[0], window[1]]
        out[n, :, cell[0], cell[1]] = part.max(axis=(1, 2)) if part.size else 0
    return out


@pytest.mark.parametrize("scale", [0.5, 0.1])
def test_roi_pool_rounds_halves_away_from_zero(scale):
    rois = np.array([[0, -4, -3, 30, 30], [0, -5, -1, 11, 13], [0, 3, 7, 12, 9], [0, -15, -25, 35, 5]], "float32")
    data = RNG.random((1, 2, 12, 13), "float32")
    found = run(lambda x, r: relay.vision.roi_pool(x, r, (5, 3), scale), data, rois)
    np.testing.assert_array_equal(found, pooled(data, rois, (5, 3), scale))


# ---- proposal: topi/vision/rcnn/proposal.py


def proposed(prob, delta, info, few, stride):
    """The boxes of one image by falling score, in which no box removes another."""
    found, least = [], few["rpn_min_size"] * info[2]
    sizes = []
    for ratio in few["ratios"]:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        sizes += [(width * s, math.floor(width * ratio + 0.5) * s) for s in few["scales"]]
    for y, x, k in np.ndindex(*prob.shape[1:], len(sizes)):
        (w, h), (dx, dy, dw, dh) = sizes[k], delta[4 * k : 4 * k + 4, y, x]
        cx, cy = x * stride + (stride - 1) / 2 + dx * w, y * stride + (stride - 1) / 2 + dy * h
        w, h = math.exp(dw) * w, math.exp(dh) * h
        box = [cx - (w - 1) / 2, cy - (h - 1) / 2, cx + (w - 1) / 2, cy + (h - 1) / 2]
        box = [min(max(v, 0.0), m - 1.0) for v, m in zip(box, (info[1], info[0], info[1], info[0]))]
        score = prob[len(sizes) + k, y, x]
        if y >= int(info[0] / stride) or x >= int(info[1] / stride):
            score = -1.0
        if box[2] - box[0] + 1 < least or box[3] - box[1] + 1 < least:
            box = [v + s * least / 2 for v, s in zip(box, (-1, -1, 1, 1))]
            score = -1.0
        found.append((score, box))
    return np.array([[0, *box] for _, box in sorted(found, key=lambda f: -f[0])])


@pytest.mark.parametrize("image, least", [((48, 60, 1.0), 4), ((64, 64, 1.5), 20), ((40, 80, 1.0), 16)])
def test_proposal_leaves_out_cells_beyond_the_image_and_grows_small_boxes(image, least):
    few = {"scales": (1.0, 2.0), "ratios": (0.5, 1.0), "rpn_min_size": least}
    prob, delta = RNG.random((1, 8, 3, 4), "float32"), RNG.uniform(-0.5, 0.3, (1, 16, 3, 4)).astype("float32")
    info = np.array([image], "float32")
    build = lambda p, d, i: relay.vision.proposal(
        p, d, i, feature_stride=16, threshold=1.1, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=48, iou_loss=False, **few
    )
    found = run(build, prob, delta, info)
    wanted = proposed(prob[0], delta[0].astype("float64"), info[0].astype("float64"), few, 16)
    assert len(wanted) == 48
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "bbox, info", [((1, 1, 1, 1), (1, 3)), ((1, 48, 3, 5), (1, 3)), ((1, 48, 3, 4), (1, 2)), ((2, 48, 3, 4), (1, 3))]
)
def test_proposal_refuses_inputs_that_do_not_fit(bbox, info):
    arguments = [relay.var(n, shape=s) for n, s in (("p", (1, 24, 3, 4)), ("d", bbox), ("i", info))]
    with pytest.raises(RelayError, match="differ"):
        type_of(relay.vision.proposal(*arguments, (4.0, 8.0, 16.0, 32.0), (0.5, 1, 2), 16, 0.7, 6000, 300, 16, False))


# ---- anchors


def test_multibox_prior_needs_a_size_and_a_ratio():
    x = relay.var("x", shape=(1, 3, 2, 2))
    for few in ({"sizes": []}, {"ratios": []}):
        with pytest.raises(RelayError, match="needs a size and a ratio"):
            type_of(relay.vision.multibox_prior(x, **few))


@pytest.mark.parametrize("classes, anchors", [(0, 3), (1, 3), (2, 0), (0, 0)])
def test_multibox_transform_loc_of_nothing_finds_nothing(classes, anchors):
    arrays = [np.full(s, 0.9, "float32") for s in ((2, classes, anchors), (2, 4 * anchors), (1, anchors, 4))]
    boxes, counts = run(lambda *a: relay.vision.multibox_transform_loc(*a).tuple_value, *arrays)
    np.testing.assert_array_equal(boxes, np.full((2, anchors, 6), -1, "float32"))
    np.testing.assert_array_equal(counts, [0, 0])


# ---- sizes that are known at run time only


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_resize_takes_symbolic_sizes(rank):
    n, x = SizeVar("n"), relay.var("x", shape=(1, 4, 8, 8, 8)[: rank + 2])
    resize = getattr(relay.image, f"resize{rank}d")
    assert type_of(resize(x, (n,) * rank)).shape == (1, 4, *[n] * rank)
    assert type_of(resize(x, (relay.Any(), 7, 9)[:rank])).shape == (1, 4, *(AnyDim(), 7, 9)[:rank])
    if rank == 1:
        assert type_of(resize(x, n)).shape == (1, 4, n)


def test_yolo_reorg_takes_symbolic_extents():
    n = SizeVar("n")
    assert type_of(relay.vision.yolo_reorg(relay.var("x", shape=(n, n, 20, 20)), 10)).shape == (n, 100 * n, 2, 2)
    assert type_of(relay.vision.yolo_reorg(relay.var("x", shape=(1, 8, n, 6)), 2)).shape == (1, 32, n // 2, 3)
    with pytest.raises(RelayError, match="reorganised"):
        type_of(relay.vision.yolo_reorg(relay.var("x", shape=(1, 6, n, 6)), 2))


# ---- what type inference accepts can be computed


REFUSED = [
    ("image.crop_and_resize", ((2, 3, 5, 6), (3, 4), (4,)), {"crop_size": (2, 2)}),
    ("image.crop_and_resize", ((2, 3, 5, 6), (3, 3), (3,)), {"crop_size": (2, 2)}),
    ("image.grid_sample", ((1, 2, 0, 4), (1, 2, 3, 3)), {}),
    ("vision.roi_pool", ((0, 2, 4, 4), (3, 5)), {"pooled_size": (2, 2), "spatial_scale": 1.0}),
    ("vision.roi_align", ((1, 2, 4, 0), (3, 5)), {"pooled_size": (2, 2), "spatial_scale": 1.0}),
    ("vision.multibox_transform_loc", ((2, 3, 4), (1, 16), (1, 4, 4)), {}),
    ("vision.multibox_transform_loc", ((2, 3, 4), (2, 16), (2, 4, 2)), {}),
    ("vision.get_valid_counts", ((2, 5, 1), ()), {}),
    ("vision.get_valid_counts", ((2, 5, 6), (2,)), {}),
    ("vision.non_max_suppression", ((2, 5, 5), (2,), (2, 5), (), ()), {}),
    ("vision.non_max_suppression", ((2, 5, 6), (1,), (2, 5), (), ()), {}),
    ("vision.non_max_suppression", ((2, 5, 6), (2,), (2, 4), (), ()), {}),
    ("vision.non_max_suppression", ((2, 5, 6), (2,), (2, 5), (2,), ()), {}),
    ("vision.all_class_non_max_suppression", ((2, 5, 4), (1, 3, 5), (), (), ()), {}),
    ("vision.all_class_non_max_suppression", ((2, 5, 3), (2, 3, 5), (), (), ()), {}),
    ("vision.all_class_non_max_suppression", ((2, 5, 4), (2, 3, 5), (0,), (), ()), {}),
    ("vm.reshape_tensor", ((2, 6), (2,)), {"newshape": (3, 3)}),
    ("vm.reshape_tensor", ((2, 6), (3,)), {"newshape": (3, 4)}),
]
INTEGERS = {"box_indices", "valid_count", "indices", "max_output_size", "max_output_boxes_per_class", "shape"}


@pytest.mark.parametrize("name, shapes, attrs", REFUSED)
def test_inputs_that_cannot_be_computed_are_refused(name, shapes, attrs):
    cls = OPERATORS[name].definition
    kinds = ["int32" if n in INTEGERS else "float32" for n in cls.inputs]
    arguments = [relay.var(n, shape=s, dtype=k) for n, s, k in zip(cls.inputs, shapes, kinds, strict=True)]
    with pytest.raises(RelayError, match=r"differ|nothing to|no column|must be a scalar|not as many elements"):
        type_of(cls.call(*arguments, **attrs))


@pytest.mark.parametrize("image", [-3, 0, 1, 2, 99])
def test_images_of_boxes_are_limited_to_those_there_are(image):
    data, box = RNG.random((2, 1, 4, 4), "float32"), np.array([[0, 0, 1, 1]], "float32")
    which = np.array([image], "int32")
    found = run(lambda x, b, i: relay.image.crop_and_resize(x, b, i, (4, 4), "NCHW"), data, box, which)
    np.testing.assert_allclose(found[0], data[min(max(image, 0), 1)], rtol=1e-6)
    rois = np.array([[image, 0, 0, 3, 3]], "float32")
    found = run(lambda x, r: relay.vision.roi_pool(x, r, (4, 4), 1.0), data, rois)
    np.testing.assert_array_equal(found[0], data[min(max(image, 0), 1)])


@pytest.mark.parametrize("name", ["roi_align", "roi_pool"])
def test_one_size_stands_for_both_of_a_region(name):
    data, rois = RNG.random((1, 2, 6, 6), "float32"), np.array([[0, 1, 1, 4, 4]], "float32")
    pool = getattr(relay.vision, name)
    found, same = (run(lambda x, r, n=n: pool(x, r, n, 1.0), data, rois) for n in (3, (3, 3)))
    np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_region_that_is_no_number_has_a_pool(value, column):
    data, rois = RNG.random((2, 1, 5, 5), "float32"), np.array([[0, 1, 1, 3, 3]], "float32")
    rois[0, column] = value
    run(lambda x, r: relay.vision.roi_pool(x, r, 2, 1.0), data, rois)
    run(lambda x, r: relay.vision.roi_align(x, r, 2, 1.0, sample_ratio=2), data, rois)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align_gives_whole_numbers_between_bytes(mode):
    data, rois = np.arange(0, 27, 3, "uint8").reshape(1, 1, 1, 9), np.array([[0, 0, 0, 8, 1]], "float32")
    found = run(lambda x, r: relay.vision.roi_align(x, r, (1, 12), 1.0, 1, mode=mode), data, rois)
    np.testing.assert_array_equal(found[0, 0, 0], range(1, 25, 2))


@pytest.mark.parametrize(
    "build",
    [
        lambda key, x: relay.random.threefry_key(x),
        lambda key, x: relay.random.threefry_key("float31"),
        lambda key, x: relay.random.threefry_key(1.5),
        lambda key, x: relay.random.uniform(key, (2,), "float31"),
        lambda key, x: type_of(relay.image.resize1d(x, None)),
        lambda key, x: type_of(relay.image.resize2d(x, None)),
    ],
)
def test_arguments_that_make_no_sense_are_errors_of_their_own(build):
    with pytest.raises(RelayError):
        build(relay.random.threefry_key(0), relay.var("x", shape=(1, 2, 3, 3)))


def test_no_limit_before_the_suppression_is_none():
    inputs = [RNG.random((1, 4, 3, 2)), RNG.random((1, 8, 3, 2)), np.array([[64.0, 80.0, 1.0]])]
    few = {"scales": (2.0,), "ratios": (0.5, 1.0), "rpn_post_nms_top_n": 3, "rpn_min_size": 4, "iou_loss": False}
    few |= {"feature_stride": 16, "threshold": 0.7}
    found = [run(lambda *x, n=n: relay.vision.proposal(*x, rpn_pre_nms_top_n=n, **few), *inputs) for n in (99, 0, -1)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert found[0].any()


def test_a_proposal_of_no_cells_is_no_box():
    record = OPERATORS["vision.proposal"].definition(scales=(2.0,), ratios=(0.5, 1.0), rpn_post_nms_top_n=3)
    found = record.reference(np.zeros((1, 4, 0, 2)), np.zeros((1, 8, 0, 2)), np.array([[64.0, 80.0, 1.0]]))
    np.testing.assert_array_equal(found, np.zeros((3, 5)))
