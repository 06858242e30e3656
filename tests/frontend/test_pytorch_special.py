"""Special functions of torch against scipy's: values, ends, poles; float32 to its last digit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pytorch_tools import Wrapped, agree, program, torch

from relaylab import relay
from relaylab.support.dtypes import BFLOAT16
from relaylab.support.errors import RelayError

scipy_special = pytest.importorskip("scipy.special", reason="holds special functions against scipy's")
S, F = torch.special, torch.nn.functional
ABOVE = np.concatenate([np.linspace(1e-3, 30, 300), np.logspace(-20, 3.5, 80), [2, 8, np.nextafter(8, 0), np.nan]])
BOTH = np.concatenate([ABOVE, -ABOVE])
SHARES = np.concatenate([np.linspace(1e-4, 1 - 1e-4, 200), np.logspace(-30, -2, 60), [0, 1, -0.5, 1.5, np.nan]])
POLES = np.array([0.0, -1.0, -2.0, -0.5, -1.5, -7.25, -20.75, 1, 2, np.inf, np.nan])
GAMMA = np.concatenate([ABOVE, -ABOVE[:380], POLES])
INSIDE = np.concatenate([1 - 2.0 ** -np.arange(1, 54), 2.0 ** -np.arange(2, 80) - 1, np.linspace(-1, 1, 99), [np.nan]])
CASES: dict[str, tuple[Callable, Callable, np.ndarray, float]] = {
    **{f"j{n}": (getattr(S, f"bessel_j{n}"), getattr(scipy_special, f"j{n}"), BOTH, 1e-14) for n in (0, 1)},
    **{f"y{n}": (getattr(S, f"bessel_y{n}"), getattr(scipy_special, f"y{n}"), BOTH, 1e-13) for n in (0, 1)},
    **{f"i{n}": (getattr(S, f"i{n}"), getattr(scipy_special, f"i{n}"), BOTH, 0) for n in (0, 1)},
    **{f"i{n}e": (getattr(S, f"i{n}e"), getattr(scipy_special, f"i{n}e"), BOTH, 0) for n in (0, 1)},
    **{f"k{n}": (getattr(S, f"modified_bessel_k{n}"), getattr(scipy_special, f"k{n}"), BOTH, 0) for n in (0, 1)},
    **{f"k{n}e": (getattr(S, f"scaled_modified_bessel_k{n}"), getattr(scipy_special, f"k{n}e"), ABOVE, 0)
       for n in (0, 1)},
    "spherical j0": (S.spherical_bessel_j0, lambda x: scipy_special.spherical_jn(0, np.abs(x)), BOTH, 1e-15),
    "lgamma": (torch.lgamma, scipy_special.gammaln, GAMMA, 1e-11),
    "digamma": (torch.digamma, scipy_special.psi, GAMMA, 1e-14),
    **{f"polygamma {n}": (lambda x, n=n: torch.polygamma(n, x), lambda x, n=n: scipy_special.polygamma(n, x), ABOVE, 0)
       for n in (1, 2, 3, 5)},
    "ndtri": (S.ndtri, scipy_special.ndtri, SHARES, 1e-15),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str, dtype: str) -> None:
    """float64 has errors of at most 100 units in the last place beside an absolute one where a function is 0."""
    function, known, x, near = CASES[name]
    x = x.astype(dtype)
    mod, params = relay.frontend.from_pytorch(program(Wrapped(function), torch.from_numpy(x)))
    got = relay.build(mod, target="llvm", params=params).run(**{mod["main"].params[0].name_hint: x})
    with np.errstate(all="ignore"):
        want = known(x.astype("float64"))
    assert got.dtype == dtype
    digits = 1.3e-7 if dtype == "float32" else 2e-14
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(got, want.astype(dtype), rtol=digits, atol=max(near, float(np.finfo(dtype).tiny)))


def test_derivatives_of_digamma_below_0() -> None:
    x = -np.linspace(0.05, 8.3, 60)
    for n in (1, 2, 4):
        mod, params = relay.frontend.from_pytorch(
            program(Wrapped(lambda x, n=n: torch.polygamma(n, x)), torch.from_numpy(x))
        )
        got = relay.build(mod, target="llvm", params=params).run(**{mod["main"].params[0].name_hint: x})
        want = np.zeros(60)  # the recurrence psi(x) = psi(x + 1) - (-1)^n n! / x^(n + 1), 5.15.5
        for k in range(10):
            want -= (-1.0) ** n * float(np.prod(np.arange(1, n + 1))) / (x + k) ** (n + 1)
        np.testing.assert_allclose(got, want + scipy_special.polygamma(n, x + 10), rtol=1e-10)


X = torch.linspace(-1.5, 1.5, 31, dtype=torch.float64)
POLYNOMIALS = "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_w".split()  # noqa: E501


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name: str) -> None:
    for n in (-1, 0, 1, 2, 5, 9):
        agree(Wrapped(lambda x, n=n: getattr(S, name)(x, n)), X, tolerance=1e-9)


def test_a_degree_that_is_computed_is_refused() -> None:
    with pytest.raises(RelayError) as refused:
        relay.frontend.from_pytorch(program(Wrapped(S.chebyshev_polynomial_t), X, torch.ones(31)))
    assert refused.value.code == "import.option"


V = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4e38, -2.5, 1e-39], "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_and_parts_of_floats(dtype: str) -> None:
    """Exactly, of the smallest and the largest, on both sides of 0."""
    a, b = (torch.from_numpy(f(V, len(V)).astype(dtype)) for f in (np.repeat, np.tile))
    agree(Wrapped(torch.nextafter), a, b, tolerance=0)
    agree(Wrapped(torch.frexp), a, tolerance=0)


@pytest.mark.parametrize(("dtype", "units"), [("float32", 3), ("float64", 8)])
def test_erfinv_to_its_ends(dtype: str, units: int) -> None:
    """1 less the smallest step too, where float64 was wrong by 5 percent."""
    x = INSIDE.astype(dtype)
    mod, params = relay.frontend.from_pytorch(program(Wrapped(torch.erfinv), torch.from_numpy(x)))
    got = relay.build(mod, target="llvm", params=params).run(**{mod["main"].params[0].name_hint: x})
    want = scipy_special.erfinv(x.astype("float64")).astype(dtype)
    np.testing.assert_allclose(got, want, rtol=units * float(np.finfo(dtype).eps), atol=0)


def test_signs_of_zero() -> None:
    """log(|gamma|) of 1 and 2 is 0, and what is x above 0 and touches it keeps the sign, as PyTorch does."""
    x = torch.tensor([-0.0, 0.0, 1.0, 2.0])
    for function in (torch.lgamma, F.elu, F.selu, F.celu, lambda x: F.elu(x, 0.5), F.silu, F.gelu, F.mish):
        mod, params = relay.frontend.from_pytorch(program(Wrapped(function), x))
        got = relay.build(mod, target="llvm", params=params).run(**{mod["main"].params[0].name_hint: x.numpy()})
        np.testing.assert_array_equal(np.signbit(got), np.signbit(function(x).numpy()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_variance_of_16_bits(dtype: torch.dtype) -> None:
    """Far from 0 the mean was rounded before it was taken off: 6 percent of bfloat16."""
    x = (torch.linspace(-1, 1, 300) + 100.3).to(dtype)
    mod, params = relay.frontend.from_pytorch(program(Wrapped(lambda x: x.var(0)), x))
    lib = relay.build(mod, target="llvm", params=params)
    bits = x.view(torch.int16).numpy().view("float16" if dtype == torch.float16 else BFLOAT16)
    got = float(np.asarray(lib.run(**{mod["main"].params[0].name_hint: bits})).astype("float64"))
    assert abs(got / float(x.double().var()) - 1) < torch.finfo(dtype).eps
