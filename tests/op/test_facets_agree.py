"""Every operator has every facet, and on every sample the facets agree with each other."""

from __future__ import annotations

import numpy as np
import pytest
from judged_variants import VARIANTS
from op_cases import arrays_of, cases, infer, lowered, type_of

from relaylab import relay
from relaylab.op.rounding import evaluated
from relaylab.ir import OPERATORS, AnyDim, Call, IRModule, Op, TensorType, TupleType
from relaylab.op.base import Operator

pytestmark = pytest.mark.slow

NAMES = sorted(OPERATORS)
CASES = [pytest.param(n, c, id=f"{n}-{k}") for n, k, c in cases()]
TOLERANCE = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


@pytest.mark.parametrize("name", NAMES)
def test_operator_is_complete(name):
    definition = OPERATORS[name].definition
    assert len((definition.__doc__ or "").split()) >= 3
    for facet in ("relation", "reference", "lower"):
        ways = {"relation": ("relation", "result_type"), "lower": ("lower", "procedure")}.get(facet, (facet,))
        has = any(getattr(definition, way) is not getattr(Operator, way) for way in ways)
        assert has != (facet in definition.waivers), facet
    assert all(len(reason.split()) > 3 for reason in definition.waivers.values())
    assert definition.samples() or "samples" in definition.waivers


@pytest.mark.parametrize("name, case", CASES)
def test_relation_says_what_the_reference_does(name, case):
    record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
    if "reference" in record.waivers:
        pytest.skip(record.waivers["reference"])
    found = infer(record, *map(type_of, args))
    assert fits(found, type_of(evaluated(record, args)))


def fits(found, actual) -> bool:
    if isinstance(actual, TupleType):
        return (
            isinstance(found, TupleType)
            and len(found.fields) == len(actual.fields)
            and all(map(fits, found.fields, actual.fields))
        )
    same = isinstance(found, TensorType) and found.dtype == actual.dtype and len(found.shape) == len(actual.shape)
    return same and all(isinstance(d, AnyDim) or d == n for d, n in zip(found.shape, actual.shape))


@pytest.mark.parametrize("name, case", CASES)
def test_loop_form_computes_the_reference(name, case):
    record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
    if "lower" in record.waivers:
        pytest.skip(record.waivers["lower"])
    expected = evaluated(record, args)
    actual = lowered(record, args, infer(record, *map(type_of, args)))
    for want, got in zip(*((v if isinstance(v, tuple) else (v,)) for v in (expected, actual))):
        close(want, got)


def close(want: np.ndarray, got: np.ndarray) -> None:
    assert want.shape == got.shape and want.dtype == got.dtype
    tolerance = TOLERANCE.get(want.dtype.name, 0)
    if want.dtype == "bfloat16":
        want, got = want.astype("float32"), got.astype("float32")
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, case", CASES)
def test_attributes_compare_by_value(name, case):
    definition = OPERATORS[name].definition
    record = definition(**case.attrs)
    assert record == definition(**case.attrs) and hash(record) == hash(definition(**case.attrs))
    assert record == record.replace() and record.type_key in repr(record)


LEGAL = [(n, c) for n, _, c in cases() if hasattr(OPERATORS[n].definition, "legal")]
LEGAL += [("image.resize2d", case) for case in VARIANTS["image.resize2d"]]
LEGAL = [pytest.param(n, c, id=f"{n}-{k}") for k, (n, c) in enumerate(LEGAL)]


@pytest.mark.parametrize("name, case", LEGAL)
def test_what_replaces_an_operator_computes_the_reference(name, case):
    record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
    params = [relay.Var(f"x{k}", type_of(a)) for k, a in enumerate(args)]
    mod = IRModule.from_expr(relay.Function(params, Call(Op.get(name), params, record)))
    mod = relay.transform.Legalize()(mod)
    expected, found = evaluated(record, args), relay.create_executor("debug", mod=mod).evaluate()(*args)
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    for want, got in zip(expected, found, strict=True):
        close(want, got.numpy())
