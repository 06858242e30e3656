"""Shapes that a program computes from sizes which data decides: nothing but those is found between its parts."""

import numpy as np
import pytest
from codegen.test_staged_forms import above, agree, form_of, machine, rows

from relaylab import relay
from relaylab.codegen.open.cut import cut
from relaylab.codegen.open.values import UNKNOWN, Followed
from relaylab.ir.dims import SizeVar, UndecidedSize, smaller
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayError
from relaylab.transform import InferType, PassContext
from relaylab.transform.engine.build import call

RNG = np.random.default_rng(0)
N, M = SizeVar("n"), SizeVar("m")


def whole(*values):
    return relay.const(np.array(values, "int64"), "int64")


def size(x, axis):
    return relay.strided_slice(relay.shape_of(x, "int64"), [axis], [axis + 1], [1])


def joined(*parts):
    return relay.concatenate(parts, 0)


def resized(x, factor):
    """An image as large as a factor says that is computed from its shape: data, for all that types know."""
    ends = relay.cast(relay.strided_slice(relay.shape_of(x, "int64"), [2], [4], [1]), "float32")
    to = relay.cast(relay.floor(relay.multiply(ends, factor)), "int64")
    return call("dyn.image.resize2d", x, to, relay.const(np.zeros(4, "float32")))


def test_an_image_is_resized_by_data_padded_to_multiples_and_convolved():
    x, factor = relay.var("x", shape=(1, 3, N, M)), relay.var("factor", shape=())
    image = resized(x, factor)
    weight = relay.const(RNG.standard_normal((4, 3, 3, 3)).astype("float32"))
    beside = []
    for axis in (2, 3):
        own = size(image, axis)
        steps = relay.ceil(relay.divide(relay.cast(own, "float32"), relay.const(np.float32(8))))
        beside.append(relay.subtract(relay.cast(relay.multiply(steps, relay.const(np.float32(8))), "int64"), own))
    widths = joined(whole(0, 0, 0, 0), whole(0), beside[0], whole(0), beside[1])
    padded = call("dyn.nn.pad", image, relay.reshape(widths, (4, 2)), relay.const(np.float32(0)))
    features = relay.nn.conv2d(padded, weight, strides=(2, 2), padding=(1, 1))
    pixels = relay.reshape(features, joined(whole(1, 2, -1), size(features, 2), size(features, 3)))
    vm = machine([x, factor], relay.transpose(pixels, [0, 3, 4, 1, 2]))
    for shape, by in (((9, 17), 1.5), ((8, 8), 1.0), ((30, 5), 0.7)):
        (got,) = agree(vm, RNG.random((1, 3, *shape)).astype("float32"), np.float32(by), atol=1e-5)
        ends = [-(-int(np.float32(n) * np.float32(by)) // 8) * 4 for n in shape]
        assert got.shape == (1, *ends, 2, 2)
    assert form_of(vm).found == "found by dyn.image.resize2d"


def test_levels_of_what_was_found_are_cut_by_sizes():
    """Places are numbered, joined and cut again where a level ends; each is as long as sizes say."""
    x = relay.var("x", shape=(40, 4))
    first, other = (relay.take(x, above(x, k), axis=0) for k in (0, 1))
    both, end = joined(first, other), size(first, 0)
    one = whole(1)
    parts = [
        relay.op.dyn.strided_slice(both, *limits, one, axes=[0])
        for limits in ((whole(0), end), (end, relay.add(end, size(other, 0))))
    ]
    number = relay.arange(whole(0), relay.squeeze(size(parts[1], 0)), whole(1), dtype="int64")
    best = call("dyn.topk", relay.take(parts[0], relay.const(2), axis=1), relay.minimum(end, whole(5)))
    rest = relay.multiply(parts[1], relay.cast(relay.expand_dims(number, 1), "float32"))
    vm = machine([x], relay.Tuple([*parts, rest, relay.TupleGetItem(best, 0), relay.TupleGetItem(best, 1)]))
    for count in (0, 3, 12, 40):
        given = rows(count)
        got = agree(vm, given)
        np.testing.assert_array_equal(got[0], given[given[:, 0] > 0])
        np.testing.assert_array_equal(got[1], given[given[:, 1] > 0])
        np.testing.assert_array_equal(got[3], np.sort(got[0][:, 2])[::-1][:5])
    assert form_of(vm).found == "found by argwhere x2"


def test_a_choice_of_nothing_and_of_what_is_found():
    """What the branches have in common is not the shape of the first one."""
    x = relay.var("x", shape=(40, 4))
    found = relay.take(x, above(x), axis=0)
    empty = relay.equal(relay.ndarray_size(found, "int64"), relay.const(0, "int64"))
    places = relay.squeeze(relay.argwhere(relay.greater(relay.sum(found, axis=[1]), relay.const(0.0))), axis=[1])
    chosen = relay.If(empty, relay.const(np.zeros(0, "int32")), places)
    vm = machine([x], relay.take(found, chosen, axis=0))
    for count in (0, 3, 12, 40):
        given = rows(count)
        (got,) = agree(vm, given)
        np.testing.assert_array_equal(got, given[(given[:, 0] > 0) & (given.sum(1) > 0)])
        assert vm.exe.specializations.open.run([given]) is not None
    assert not vm.exe.specializations.forms


def test_nothing_is_taken_from_what_has_no_elements():
    """Where it is not known how many are taken it may be none; of some it is refused when they come."""
    x = relay.var("x", shape=(40, 4))
    vm = machine([x], relay.take(relay.const(np.zeros((0, 3), "float32")), above(x), axis=0))
    assert agree(vm, rows(0))[0].shape == (0, 3)
    form_of(vm)
    with pytest.raises(RelayError, match="no elements"):
        vm.invoke("main", rows(3))


def test_what_is_found_twice_is_found_once_at_every_level():
    x = relay.var("x", shape=(40, 4))
    body = relay.add(relay.take(x, above(x), axis=0), relay.take(relay.exp(x), above(x), axis=0))
    for level in (0, 2, 3):
        with PassContext(opt_level=level):
            plan = cut(InferType()(relay.IRModule.from_expr(relay.Function([x], body))))
        assert sum(hasattr(step, "takes") for step in plan.steps) == 1


def followed(make):
    """What is known of an expression over an input of `n + 3` and `m` rows and columns."""
    x = relay.var("x", shape=(N + 3, M))
    body = make(relay.shape_of(x, "int64"))
    mod = InferType()(relay.IRModule.from_expr(relay.Function([x], body)))
    body = mod["main"].body
    return Followed(walk((body,))).values(body).reshape(-1).tolist()


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda s: relay.reverse(s, 0), [M, N + 3]),
        (lambda s: relay.stack([s, relay.multiply(s, whole(2, 3))], 1), [N + 3, 2 * N + 6, M, 3 * M]),
        (lambda s: relay.prod(s, axis=[0]), [(N + 3) * M]),
        (lambda s: relay.divide(relay.prod(s, axis=[0]), relay.take(s, relay.const(0))), [UNKNOWN]),
        (lambda s: relay.floor_divide(s, whole(2, 4)), [(N + 3) // 2, M // 4]),
        (lambda s: relay.floor_mod(s, whole(2, 4)), [N + 3 - (N + 3) // 2 * 2, M - M // 4 * 4]),
        (lambda s: relay.cast(relay.ceil(relay.divide(relay.cast(s, "float32"), relay.const(np.float32(8)))), "int64"),
         [(N + 10) // 8, (M + 7) // 8]),
        (lambda s: relay.greater(s, whole(2, 2)), [True, UNKNOWN]),
        (lambda s: relay.where(relay.equal(s, whole(1, 1)), whole(1, 1), s), [N + 3, M]),
        (lambda s: relay.minimum(s, whole(3, 3)), [3, smaller(M, 3)]),
        (lambda s: relay.split(s, 2, 0)[1], [M]),
        (lambda s: relay.add(s, whole(2**63 - 1, 1)), [N + 3 + (2**63 - 1), M + 1]),
    ],
)  # fmt: skip
def test_the_values_of_shapes_are_expressions_of_sizes(make, wanted):
    assert followed(make) == wanted


def test_the_smaller_of_two_sizes_is_no_less_than_nothing():
    found = smaller(1000, N)
    assert found >= 0 and found <= N and found <= 1000
    assert smaller(found, M) >= 0
    with pytest.raises(UndecidedSize):
        assert found >= 1
