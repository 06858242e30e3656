"""Matrices as products with orthogonal ones, against torch; signs of singular vectors and eigenvectors are free."""

from __future__ import annotations

import numpy as np
import pytest
from pytorch_tools import Wrapped, agree, program, run, torch

from relaylab import relay
from relaylab.support.errors import RelayError

torch.manual_seed(0)
SHAPES = [(3, 3), (5, 3), (3, 5), (2, 3, 4, 4), (20, 12), (4, 1), (1, 4), (2, 1, 1)]
TOLERANCE = {torch.float32: 5e-6, torch.float64: 1e-12}


def drawn(shape: tuple[int, ...], dtype: torch.dtype, lost: bool = False) -> torch.Tensor:
    a = torch.randn(*shape, dtype=dtype)
    if lost:
        a[..., -1] = a[..., 0] * 2
    return a


def given(function, *inputs: torch.Tensor) -> list[np.ndarray]:
    mod, params = relay.frontend.from_pytorch(program(Wrapped(function), *inputs))
    return run(mod, params, inputs, "graph")


def orthonormal(columns: np.ndarray, tolerance: float) -> None:
    unit = np.swapaxes(columns, -1, -2) @ columns
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(unit.shape[-1]), unit.shape), rtol=0, atol=tolerance)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values(shape: tuple[int, ...], dtype: torch.dtype, full: bool, lost: bool) -> None:
    a, tolerance = drawn(shape, dtype, lost), TOLERANCE[dtype]
    u, s, v = given(lambda a: torch.linalg.svd(a, full_matrices=full), a)
    want = torch.linalg.svd(a, full_matrices=full)
    assert (u.shape, v.shape) == (want.U.shape, want.Vh.shape)
    np.testing.assert_allclose(s, want.S.numpy(), rtol=tolerance, atol=tolerance)
    k = s.shape[-1]
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a.numpy(), rtol=0, atol=tolerance)
    orthonormal(u, tolerance)
    orthonormal(np.swapaxes(v, -1, -2), tolerance)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 5, 5), (16, 16)], ids=str)
def test_eigenvalues_of_the_triangle_that_is_read(shape: tuple[int, ...], dtype: torch.dtype, upper: bool) -> None:
    a, tolerance = drawn(shape, dtype), TOLERANCE[dtype]
    values, vectors = given(lambda a: torch.linalg.eigh(a, UPLO="U" if upper else "L"), a)
    half = np.triu(a.numpy()) if upper else np.tril(a.numpy())
    whole = half + np.swapaxes(half, -1, -2) - half * np.eye(shape[-1])
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole), rtol=tolerance, atol=4 * tolerance)
    np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], rtol=0, atol=4 * tolerance)
    orthonormal(vectors, tolerance)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_as_torch(shape: tuple[int, ...]) -> None:
    """What has no free signs: QR has LAPACK's."""
    a = drawn(shape, torch.float64)
    for mode in ("reduced", "complete"):
        agree(Wrapped(lambda a, mode=mode: torch.linalg.qr(a, mode=mode)), a, tolerance=1e-12)
    rest = lambda a: (torch.linalg.qr(a, mode="r").R, torch.linalg.svdvals(a), torch.linalg.matrix_rank(a))
    agree(Wrapped(rest), a, tolerance=1e-12)
    norms = lambda a: (torch.linalg.pinv(a), torch.linalg.cond(a), torch.linalg.matrix_norm(a, "nuc"))
    agree(Wrapped(norms), a, tolerance=1e-10)


def test_of_symmetric_matrices_the_lower_triangle_is_read() -> None:
    a = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    agree(Wrapped(lambda a: torch.linalg.pinv(a, hermitian=True)), a, tolerance=1e-10)


def test_what_has_no_rank() -> None:
    nothing = torch.zeros(3, 2)
    agree(Wrapped(lambda a: (torch.linalg.svdvals(a), torch.linalg.pinv(a), torch.linalg.matrix_rank(a))), nothing)
    u, s, v = given(lambda a: torch.linalg.svd(a), nothing)
    orthonormal(u, 0)
    orthonormal(v, 0)
    values, vectors = given(torch.linalg.eigh, torch.zeros(2, 2))
    orthonormal(vectors, 0)
    assert not np.any(values) and not np.any(s)
    assert np.all(np.isnan(given(torch.linalg.svdvals, torch.full((3, 3), torch.nan))[0]))


def test_what_is_not_square_or_not_symmetric_is_refused() -> None:
    with pytest.raises(RelayError) as refused:
        relay.frontend.from_pytorch(program(Wrapped(torch.linalg.eigvals), torch.ones(3, 3)))
    assert "symmetric" in str(refused.value)
    wide = relay.var("x", shape=(3, 5))
    with pytest.raises(RelayError, match="fewer rows than columns"):
        relay.transform.InferType()(relay.IRModule.from_expr(relay.one_sided_svd(wide).astuple()))
