"""Type inference of a call of every operator finds what its relation says."""

from __future__ import annotations

import pytest
from op_cases import arrays_of, cases, infer, type_of

from relaylab.analysis import infer_expr
from relaylab.ir import OPERATORS, Call, Var

CASES = [pytest.param(n, c, id=f"{n}-{k}") for n, k, c in cases()]


@pytest.mark.parametrize("name, case", CASES)
def test_inference_finds_the_type_of_the_relation(name, case):
    entry = OPERATORS[name]
    record = entry.definition(**case.attrs)
    types = [type_of(a) for a in arrays_of(case)]
    call = Call(entry, [Var(f"x{k}", t) for k, t in enumerate(types)], record if record.fields else None)
    assert infer_expr(call).checked_type == infer(record, *types)


def test_macs_count_every_multiplication():
    counts = {
        "nn.dense": 3 * 4 * 5,
        "nn.conv2d": 4 * 7 * 6 * 3 * 9,
        "nn.batch_matmul": 2 * 3 * 4 * 5,
        "nn.conv2d_transpose": 3 * 4 * 5 * 2 * 9,
        "nn.correlation": 9 * 3 * 4 * 3,
    }
    for name, expected in counts.items():
        definition = OPERATORS[name].definition
        case = definition.samples()[0]
        record, types = definition(**case.attrs), [type_of(a) for a in arrays_of(case)]
        assert record.macs(types, infer(record, *types)) == expected, name
