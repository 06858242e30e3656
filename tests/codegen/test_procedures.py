"""Operators that are procedures, compiled, against numpy: order of updates, edges of extents and of values."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.operator_programs import compiled

from relaylab.ir import OPERATORS
from relaylab.loop.builder import OutSpec
from relaylab.loop.procedure import Procedure, perform
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder

RNG = np.random.default_rng(5)


def native(name: str, arrays: list, **attrs) -> list[np.ndarray]:
    return compiled(OPERATORS[name].definition(**attrs), [np.asarray(a) for a in arrays], "llvm")


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


# ---- scatters


def scattered(data, axis, indices, updates, add):
    """Along an axis, in order; an index beyond it is left out."""
    out, n = data.copy(), data.shape[axis]
    for at in np.ndindex(*indices.shape):
        k = indices[at] + n * (indices[at] < 0)
        if 0 <= k < n:
            to = (*at[:axis], k, *at[axis + 1 :])
            out[to] = out[to] + updates[at] if add else updates[at]
    return out


@pytest.mark.parametrize("shape, taken, axis", [((50, 8), (90, 5), 0), ((6, 40), (4, 70), 1), ((9,), (20,), 0)])
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_scatters_along_an_axis_keep_the_order_of_updates(name, shape, taken, axis):
    indices = RNG.integers(-shape[axis] - 3, shape[axis] + 3, taken)
    data, updates = floats(*shape), floats(*taken)
    (got,) = native(name, [data, indices, updates], axis=axis)
    np.testing.assert_allclose(got, scattered(data, axis, indices, updates, name == "scatter_add"), rtol=1e-6)


@pytest.mark.parametrize("mode", ["update", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatters_of_slices_are_those_of_numpy(mode, depth):
    shape = (7, 3, 19)
    data, updates = floats(*shape), floats(30, *shape[depth:])
    indices = np.array([RNG.integers(-n, n, 30) for n in shape[:depth]])
    want = data.copy()
    if mode == "update":
        for k in range(30):
            want[tuple(indices[:, k])] = updates[k]
    else:
        ufunc = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[mode]
        ufunc.at(want, tuple(indices), updates)
    np.testing.assert_allclose(native("scatter_nd", [data, indices, updates], mode=mode)[0], want, rtol=1e-6)


def test_places_outside_are_left_out():
    data, indices = floats(4, 5), np.array([[0, 4, -5, 1 << 40, -(1 << 62)]])
    updates = floats(5, 5)
    (got,) = native("scatter_nd", [data, indices, updates], mode="add")
    np.testing.assert_array_equal(got[1:], data[1:])
    np.testing.assert_array_equal(got[0], data[0] + updates[0])


@pytest.mark.parametrize("extents", [(0, 3), (4, 0)])
def test_scatters_without_elements(extents):
    data, updates = floats(4, 3)[:, : extents[1]], floats(extents[0], extents[1])
    (got,) = native("scatter_nd", [data, np.zeros((1, extents[0]), "int64"), updates], mode="update")
    np.testing.assert_array_equal(got, data if 0 in updates.shape else updates)


@pytest.mark.parametrize("name, whole", [("cumsum", np.cumsum), ("cumprod", np.cumprod)])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_running_sums_are_those_of_numpy(name, whole, axis):
    x = floats(5, 40, 3)
    np.testing.assert_allclose(native(name, [x], axis=axis)[0], whole(x, axis, "float64"), rtol=1e-5, atol=1e-5)


# ---- the language of procedures


def test_a_loop_ends_where_it_says_and_a_branch_carries_its_registers():
    def odd_numbers_below(p, out, limits):
        with p.parallel(3) as row:
            total = p.let(0)
            with p.loop(10, stop=p.b.load_index(limits(row))) as k, p.when(p.b.eq(k % 2, 1)):
                p.add(total, k)
                p.store(out, (row, total), 1)

    limits, spec = np.array([4, -2, 99], "int32"), OutSpec((3, 30), "int64")
    (got,) = perform([spec], odd_numbers_below, [limits])
    assert [np.flatnonzero(row).tolist() for row in got] == [[1, 4], [], [1, 4, 9, 16, 25]]
    group = ProgramBuilder("demo")
    x = group.read("limits", BufferLayout.dense((3,), "int32"))
    procedure = Procedure(group)
    odd_numbers_below(procedure, group.read("out", BufferLayout.dense((3, 30), "int64")), x)
    text = str(procedure.programs[0])
    assert "for k0 in 10 to int64(limits[p0]):" in text and "if k0 % 2 == 1:" in text
