"""Matrices that are solved with and taken apart, against torch."""

from __future__ import annotations

import numpy as np
import pytest
from pytorch_tools import Wrapped, agree, program, torch

from relaylab import relay
from relaylab.support.errors import RelayError

torch.manual_seed(0)
A, B, V = (torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 5, 5), (2, 3, 5, 2), (2, 3, 5)))
POSITIVE = A @ A.mT + torch.eye(5, dtype=torch.float64)
CAMERA = torch.tensor([[0.0, 1000, 320], [1000, 0, 240], [0, 0, 1]])
CASES = {
    "inverse": (torch.inverse, A), "inv": (torch.linalg.inv, CAMERA), "inv_ex": (torch.linalg.inv_ex, A),
    "solve": (torch.linalg.solve, A, B), "solve a vector": (torch.linalg.solve, A, V),
    "solve by one matrix": (torch.linalg.solve, A[0, 0], B),
    "solve for one vector": (torch.linalg.solve, A[0, 0], V[0, 0]),
    "solve from the right": (lambda a, b: torch.linalg.solve(a, b, left=False), A, B.mT.contiguous()),
    "det": (torch.det, A), "det of none": (torch.det, torch.ones(3, 3)), "det of one": (torch.det, A[:, :, :1, :1]),
    "slogdet": (torch.linalg.slogdet, A), "logdet": (torch.logdet, POSITIVE),
    "lu": (torch.linalg.lu, A), "cholesky": (torch.linalg.cholesky, POSITIVE),
    "cholesky upper": (lambda a: torch.linalg.cholesky(a, upper=True), POSITIVE),
    "cholesky_ex": (torch.linalg.cholesky_ex, POSITIVE),
    "cholesky_inverse": (lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a)), POSITIVE),
    "cholesky_solve": (lambda b, a: torch.cholesky_solve(b, torch.linalg.cholesky(a)), B, POSITIVE),
    "triangular": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), A, B),
    "triangular right": (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False), A, B.mT.contiguous(),
    ),
    "triangular unit": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True), A, B),
    "triangular_solve": (lambda b, a: torch.triangular_solve(b, a, upper=False, transpose=True).solution, B, A),
    "matrix_power": (lambda a: torch.linalg.matrix_power(a, -2), A),
    "empty": (torch.linalg.inv_ex, torch.empty(2, 0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_torch(case: str) -> None:
    function, *inputs = CASES[case]
    agree(Wrapped(function), *inputs, tolerance=1e-9 if inputs[0].dtype == torch.float64 else 1e-5)


def test_which_column_has_no_pivot() -> None:
    """A singular matrix is told by its number, as LAPACK does; its determinant is 0, and not no number."""
    a = torch.tensor(
        [[[1.0, 2, 3], [2, 4, 7], [1, 2, 5]], [[2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 0, 0], [0, 1, 2], [0, 3, 5]]]
    )
    model = Wrapped(lambda a: (torch.linalg.inv_ex(a).info, torch.linalg.det(a)))
    agree(model, a, tolerance=1e-6)


def test_matrices_that_are_not_square_are_refused() -> None:
    with pytest.raises(RelayError) as refused:
        relay.frontend.from_pytorch(program(Wrapped(torch.linalg.lu), torch.ones(3, 5)))
    assert refused.value.code == "import.shape"
    data = relay.var("x", shape=(3, 5))
    with pytest.raises(RelayError, match=r"\(5\?*|5 and 3|3 and 5"):
        relay.transform.InferType()(relay.IRModule.from_expr(relay.cholesky(data)))


def test_a_matrix_that_is_not_positive_definite_has_no_root() -> None:
    x = np.array([[1, 2], [2, 1]], "float32")
    lib = relay.build(relay.IRModule.from_expr(relay.cholesky(relay.var("x", shape=(2, 2)))), target="llvm")
    assert np.isnan(lib.run(x=x)[1, 1])
