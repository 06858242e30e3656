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


# ---- sorting


def hard(n: int, dtype: str) -> np.ndarray:
    """Numbers with many ties; floats also with NaN of both signs, infinities and zeros of both signs."""
    if not dtype.startswith("float"):
        low, high = (0, 2) if dtype == "bool" else (0 if dtype[0] == "u" else -4, 5)
        return RNG.integers(low, high, n).astype(dtype)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0], dtype)
    return np.where(RNG.random(n) < 0.5, RNG.choice(odd, n), RNG.standard_normal(n).round(1)).astype(dtype)


def stable_order(x: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """The order of Python's own stable sort; NaN is the largest number."""
    lines = np.moveaxis(x, axis, -1)
    out = np.empty(lines.shape, "int64")
    for at in np.ndindex(*lines.shape[:-1]):
        values = [float(v) for v in lines[at]]
        key = lambda k, v=values: (np.isnan(v[k]), 0.0 if np.isnan(v[k]) else v[k])
        # `reverse` keeps the order of equal elements.
        out[at] = sorted(range(len(values)), key=key, reverse=not ascending)
    return np.moveaxis(out, -1, axis)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64", "bool"])
def test_sorted_is_as_pythons_stable_sort(dtype, ascending):
    for shape, axis in [((0,), 0), ((1,), 0), ((2,), -1), ((5, 33), -1), ((37, 4), 0), ((2, 9, 3), 1), ((0, 4), 1)]:
        x = hard(int(np.prod(shape)), dtype).reshape(shape)
        want = stable_order(x, axis, ascending)
        (got,) = native("argsort", [x], axis=axis, is_ascend=ascending, dtype="int64")
        np.testing.assert_array_equal(got, want, err_msg=f"{shape} along {axis}")
        (values,) = native("sort", [x], axis=axis, is_ascend=ascending)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis))


@pytest.mark.parametrize("n, k", [(1, 1), (7, 7), (300, 3), (1000, 1), (1000, 249), (2048, 256), (1537, 300), (600, 0)])
@pytest.mark.parametrize("ascending", [True, False])
def test_the_first_k_are_those_of_the_sorted_row(n, k, ascending):
    rising = np.arange(n, dtype="float32")
    x = np.stack([hard(n, "float32"), rising, -rising, np.full(n, np.nan, "float32"), np.zeros(n, "float32")])
    want = stable_order(x, 1, ascending)[:, : k or n]
    values, indices = native("topk", [x], k=k, axis=-1, ret_type="both", is_ascend=ascending, dtype="int32")
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))
    if k == 249:
        for part, whole in (("values", values), ("indices", indices)):
            (alone,) = native("topk", [x.T], k=k, axis=0, ret_type=part, is_ascend=ascending, dtype="int32")
            np.testing.assert_array_equal(alone, whole.T)


def test_sorting_and_topk_are_those_of_torch():
    torch = pytest.importorskip("torch")
    x = hard(3 * 2000, "float32").reshape(3, 2000)
    for descending in (False, True):
        want = torch.sort(torch.from_numpy(x), dim=1, descending=descending, stable=True)
        np.testing.assert_array_equal(native("sort", [x], is_ascend=not descending)[0], want.values)
        (order,) = native("argsort", [x], is_ascend=not descending)
        np.testing.assert_array_equal(order, want.indices)
        best = native("topk", [x], k=9, ret_type="values", is_ascend=not descending)[0]
        np.testing.assert_array_equal(best, torch.topk(torch.from_numpy(x), 9, largest=descending).values)


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
