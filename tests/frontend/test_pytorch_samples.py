"""Every operator of torch's own test database (`op_db`), with its own samples: torch's numbers, or refused by name.

The database needs the package expecttest; what it found is also written by hand below.
"""

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="reads PyTorch models")
F = torch.nn.functional

from pytorch_tools import Wrapped, agree, agree_together, compare, program, run  # noqa: E402

from relaylab import relay  # noqa: E402
from relaylab.support.errors import RelayError  # noqa: E402

PARTS = 32
TOLERANCE = 2e-4
DRAWN = ("rand", "bernoulli", "multinomial", "normal", "exponential", "geometric", "cauchy", "log_normal", "uniform")
UNSET = ("empty", "dropout", "sparse.", "resize_", "jiterator")
TIES = {"kthvalue", "topk", "argsort", "sort", "msort"}  # torch promises no order of equal elements
SHADOWED = {
    "bfloat16",  # numpy has none, and torch gives it as float32 here
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu",  # torch's parts give another second result
}
SIGNS = {"linalg.eigh"}  # torch promises none of its vectors, and takes their sizes in its own tests
MALFORMED = ("import.malformed", "import.mismatch")


class Sampled(torch.nn.Module):
    """An operator with all arguments of a sample but its tensors."""

    def __init__(self, operator: Any, sample: Any):
        super().__init__()
        from torch.utils._pytree import tree_flatten

        self.operator = operator
        self.given, self.spec = tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
        self.places = [k for k, v in enumerate(self.given) if isinstance(v, torch.Tensor)]
        self.tensors = [self.given[k].detach() for k in self.places]
        self.given = [None if k in self.places else v for k, v in enumerate(self.given)]

    def forward(self, *tensors: Any) -> Any:
        from torch.utils._pytree import tree_flatten, tree_unflatten

        given = list(self.given)
        for k, x in zip(self.places, tensors):
            given[k] = x
        args, kwargs = tree_unflatten(given, self.spec)
        return [r for r in tree_flatten(self.operator(*args, **kwargs))[0] if isinstance(r, torch.Tensor)]


def samples(part: int) -> list[tuple[str, Any]]:
    """The first sample of each operator, of float32 or what it takes, for one part of the database."""
    pytest.importorskip("expecttest", reason="torch's samples import it")
    from torch.testing._internal.common_methods_invocations import op_db

    found = []
    for info in op_db[part::PARTS]:
        dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in info.dtypes), None)
        if dtype is None or info.name in SHADOWED | TIES or any(word in info.name for word in (*DRAWN, *UNSET)):
            continue
        sample = next(iter(info.sample_inputs("cpu", dtype, requires_grad=False)), None)
        if sample is not None:
            judged = sample.output_process_fn_grad if info.name in SIGNS else lambda results: results
            operator = lambda *args, by=info.op, judged=judged, **named: judged(by(*args, **named))
            found.append((f"{info.name} {info.variant_test_name}", Sampled(operator, sample)))
    return found


@pytest.mark.parametrize("part", range(PARTS))
def test_samples_of_torch(part: int) -> None:
    wrong, agreed = [], 0
    for name, model in samples(part):
        inputs = model.tensors
        if not inputs or any(x.is_complex() or x.layout != torch.strided for x in inputs):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = model(*[x.clone() for x in inputs])
            if not want or any(x.is_complex() for x in want):
                continue
            try:
                exported = program(model, *inputs)
            except Exception:  # not for export: nothing to import
                continue
        try:
            mod, params = relay.frontend.from_pytorch(exported)
        except RelayError as error:
            wrong += [f"{name}: {error}"] if error.code in MALFORMED or not error.code.startswith("import.") else []
            continue
        try:
            compare(run(mod, params, inputs, "vm"), [x.numpy() for x in want], TOLERANCE)
            agreed += 1
        except (AssertionError, RelayError) as error:
            wrong.append(f"{name}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
    assert agreed > 8


def test_part_of_an_axis_as_long_as_the_first_is_written() -> None:
    """The extent of the first axis was taken for that of what is written, and all of it replaced."""
    x, row = torch.randn(6, 6), torch.randn(6, 3)
    agree(Wrapped(lambda x, row: torch.slice_scatter(x, row, 1, 3, 6)), x, row)
    agree(Wrapped(lambda x, row: torch.slice_scatter(x, row.T, 0, 1, 4)), x, row)


def test_averages_of_integers_by_another_divisor() -> None:
    """The sum is divided, and what remains is cut towards 0."""
    x = torch.randint(-9, 9, (1, 2, 7, 7))
    for divisor in (1, 2, -3):
        agree(Wrapped(lambda x, d=divisor: F.avg_pool2d(x, 3, 2, 1, divisor_override=d)), x)


def test_tensors_of_one_number_and_of_none() -> None:
    one, five = torch.tensor(3.0), torch.randn(5)
    agree_together(
        [
            (lambda x: x.repeat(()), one),
            (lambda x: x.squeeze(()), torch.randn(1, 1)),
            (lambda x: torch.transpose(x, 0, -1), one),
            (lambda x, k: torch.index_select(x, 0, k), one, torch.tensor([0])),
            (lambda x, k, y: torch.index_reduce(x, 0, k, y, "mean"), one, torch.tensor([0]), torch.tensor(4.0)),
            (lambda x: F.pixel_shuffle(x, 1), torch.randn(1, 1, 0, 1)),
            (lambda x, m, y: x.masked_scatter(m, y), five, torch.rand(5, 5) < 0.5, torch.randn(25)),
        ]
    )


def test_the_lesser_and_the_greater_of_truths() -> None:
    x, k, y = torch.tensor([True, False, True]), torch.tensor([0, 0, 2]), torch.tensor([False, True, False])
    for how in ("amax", "amin"):
        for keeps in (True, False):
            agree(Wrapped(lambda x, k, y, h=how, s=keeps: x.scatter_reduce(0, k, y, h, include_self=s)), x, k, y)


def test_statistics_that_norms_give() -> None:
    x, w = torch.randn(2, 4, 6), torch.randn(6)
    agree(Wrapped(lambda x, w: torch.native_layer_norm(x, [6], w, None, 1e-5)), x, w)
    agree(Wrapped(lambda x, w: torch.native_layer_norm(x, [4, 6], None, None, 1e-5)), x, w)
    agree(Wrapped(lambda x: torch.native_group_norm(x, None, None, 2, 4, 6, 2, 1e-5)), x)


def test_so_many_places_as_are_asked_for() -> None:
    x = torch.tensor([[0, 3, 0], [2, 0, 1]])
    for size in (0, 2, 3, 5, 9):
        agree(Wrapped(lambda x, n=size: torch.nonzero_static(x, size=n, fill_value=-7)), x)


@pytest.mark.parametrize("function", [torch.unique, torch.unique_consecutive])
def test_different_elements_and_slices(function: Any) -> None:
    x = torch.tensor([[2, 2, 1], [2, 2, 1], [0, 1, 1], [2, 2, 1]])
    everything = {"return_inverse": True, "return_counts": True}
    for given in ({}, everything, {"dim": 0}, {"dim": 0, **everything}):
        agree(Wrapped(lambda x, g=given: function(x, **g)), x, executor="vm")
    agree(Wrapped(lambda x: function(x)), torch.tensor([1.5]), executor="vm")


def test_what_comes_after_different_elements_is_compiled() -> None:
    """Voxels of points: the mean of each, with one form however many there are."""

    def means(points: Any) -> Any:
        cells, cell, count = torch.unique((points * 4).floor(), return_inverse=True, return_counts=True)
        total = torch.zeros_like(cells).index_add(0, cell, points)
        return total / count

    agree(Wrapped(means), torch.rand(40), executor="vm")
    np.testing.assert_equal(means(torch.tensor([0.1, 0.2, 0.9])).shape, (2,))
