"""ONNX's own tests of single nodes: a result that is given is right; what is refused is refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx_tools import numpy_helper, onnx, run

from relaylab import relay
from relaylab.frontend.onnx.model import DTYPES, array_of
from relaylab.ir import structural_equal
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

NEAR = {"float16": (5e-3, 2e-3), "bfloat16": (2e-2, 1e-2)}
RANDOM = ("random", "bernoulli", "multinomial")
ROUNDED = {"test_dynamicquantizelinear_expanded"}
"""0.5 divided by a scale is exactly between two integers in float32, and below in float64, which qnn.quantize uses."""

REFUSED = {
    "import.unsupported": 50, "import.dtype": 168, "import.training": 4, "import.input": 27,
}  # fmt: skip
"""How many cases may be refused at most, by the code of the error (ONNX adds cases with every release)."""


@cache
def cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [c for c in collect_testcases(None) if c.data_sets]


def arrays(values: Any) -> list[np.ndarray]:
    """Values as arrays; RelayError for what is no tensor of a known type."""
    out = []
    for v in values:
        if isinstance(v, (list, dict, type(None))):
            raise RelayError("no tensor", code="import.input")
        out.append(array_of(v, "a value") if isinstance(v, onnx.TensorProto) else np.asarray(v))
    return out


def variants(proto: Any, inputs: dict[str, np.ndarray]) -> Iterator[Any]:
    """The model, and the model with small inputs (shapes, axes, limits) as constants: all but the first, then all."""
    yield proto
    for first in (1, 0) if len(inputs) > 1 else (0,):
        fixed = onnx.ModelProto()
        fixed.CopyFrom(proto)
        for name, value in list(inputs.items())[first:]:
            if value.size <= 64:
                fixed.graph.initializer.append(numpy_helper.from_array(value, name))
        yield fixed


def given(proto: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    error = None
    for variant in variants(proto, inputs):
        try:
            mod, _ = relay.frontend.from_onnx(variant, shape={n: a.shape for n, a in inputs.items()})
        except RelayError as found:
            error = error or found
            if found.code != "import.dynamic":
                raise
        else:
            return run(mod, inputs)
    raise error  # type: ignore[misc]


def wrong(case: Any, inputs: dict[str, np.ndarray], wanted: list[np.ndarray]) -> str:
    for k, (got, want) in enumerate(zip(given(case.model, inputs), wanted)):
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            return f"{case.name}: output {k} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        near = NEAR.get(want.dtype.name, (max(case.rtol, 1e-3), max(case.atol, 1e-5)))
        if want.dtype == "bfloat16":
            got, want = got.astype("float32"), want.astype("float32")
        same = np.allclose(got, want, *near, equal_nan=True) if want.dtype.kind == "f" else np.array_equal(got, want)
        if not same and not any(word in case.name for word in RANDOM):
            return f"{case.name}: output {k} has other values"
    return ""


def test_nodes():
    faults, refused, passed = [], {}, 0
    for case in cases():
        names = [i.name for i in case.model.graph.input]
        try:
            data = [(arrays(a), arrays(b)) for a, b in case.data_sets]
            found = [w for ins, outs in data if (w := wrong(case, dict(zip(names, ins)), outs))]
        except RelayError as error:
            refused.setdefault(error.code, []).append(case.name)
        else:
            faults += found
            passed += not found
    assert {f.split(":")[0] for f in faults} <= ROUNDED, faults
    assert passed > 1620
    over = {code: names for code, names in refused.items() if len(names) > REFUSED.get(code, 0) * 1.5}
    assert not over, over


def written_out(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with every attribute that has a default; None if there is none to write."""
    versions = {o.domain: o.version for o in proto.opset_import}
    made, before = onnx.ModelProto(), proto.ByteSize()
    made.CopyFrom(proto)
    for node in made.graph.node:
        if not onnx.defs.has(node.op_type, node.domain):
            continue
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        given = {a.name for a in node.attribute}
        node.attribute.extend(
            a.default_value for a in schema.attributes.values() if a.name not in given and a.default_value.type
        )
    return made if made.ByteSize() > before else None


def test_defaults_that_are_written_out_change_nothing():
    seen = set()
    for case in cases():
        made, key = written_out(case.model), tuple(sorted({n.op_type for n in case.model.graph.node}))
        if made is None or key in seen:
            continue
        try:
            shapes = {i.name: a.shape for i, a in zip(case.model.graph.input, arrays(case.data_sets[0][0]))}
            plain = relay.frontend.from_onnx(case.model, shape=shapes)[0]
        except RelayError:  # of the model as it is
            continue
        seen.add(key)
        assert structural_equal(relay.frontend.from_onnx(made, shape=shapes)[0], plain), case.name
    assert len(seen) > 60


@pytest.mark.parametrize("number", DTYPES)
def test_types_have_their_numbers(number):
    assert onnx.helper.tensor_dtype_to_np_dtype(number) == np.dtype(DTYPES[number])
