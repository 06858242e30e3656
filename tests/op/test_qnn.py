"""The quantized dialect written with ordinary operators computes what its references say."""

from __future__ import annotations

import numpy as np
import pytest
from op_cases import arrays_of, evaluate, type_of

from relaylab.ir import OPERATORS, Tuple, TupleType, const, post_order
from relaylab.ir.expr import Expr

NAMES = [n for n in sorted(OPERATORS) if n.startswith("qnn.") and hasattr(OPERATORS[n].definition, "canonicalize")]
CASES = [pytest.param(n, c, id=f"{n}-{k}") for n in NAMES for k, c in enumerate(OPERATORS[n].definition.samples())]


def as_constant(value) -> Expr:
    return Tuple([as_constant(v) for v in value]) if isinstance(value, tuple) else const(value, value.dtype)


@pytest.mark.parametrize("name, case", CASES)
def test_canonical_form_computes_the_reference(name, case):
    record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
    expected = record.reference(*args)
    types = [TupleType([type_of(v) for v in a]) if isinstance(a, tuple) else type_of(a) for a in args]
    written = record.canonicalize([as_constant(a) for a in args], [*types, type_of(expected)])
    names = {n.op.name for n in post_order(written) if hasattr(n, "op")}
    assert not any(n.startswith("qnn.") for n in names)
    found = evaluate(written)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
