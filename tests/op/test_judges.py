"""Law: every operator is judged by something that nobody here wrote, interpreted and compiled, or says why not."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import judges_onnx  # noqa: F401  (more judges)
import numpy as np
import pytest
from judged_variants import VARIANTS
from judges import FITTED, JUDGES, LOOSE, PARTS
from judges_recorded import EXAMPLES
from op_cases import arrays_of

from relaylab import relay
from relaylab.ir import OPERATORS, Call, Function, IRModule, TensorType, Tuple, TupleType, Var
from relaylab.op.base import Sample

HERE = Path(__file__).parent
ELSEWHERE = {  # judged in another test, by the source that it names
    "test_truth_random.py": "random.*",
    "test_truth_qnn.py": """
        qnn.add qnn.subtract qnn.mul qnn.concatenate qnn.leaky_relu qnn.requantize qnn.simulated_* qnn.tanh qnn.exp
        qnn.sigmoid qnn.erf qnn.abs qnn.hardswish qnn.sqrt qnn.rsqrt qnn.log""",
    "test_truth_vision.py": """
        image.grid_sample image.crop_and_resize image.dilation2d vision.proposal vision.roi_pool image.resize3d""",
    "test_truth_nn.py": "nn.deformable_conv2d nn.avg_pool*",
    "test_truth_prepared.py": """
        nn.bitpack nn.bitserial_dense nn.bitserial_conv2d nn.contrib_conv2d_winograd_* nn.contrib_conv3d_winograd_*
        nn.contrib_conv2d_gemm_*""",
    "test_truth_tensor.py": "strided_set sparse_fill_empty_rows",
}
WITHOUT = {  # nothing independent can be asked
    "it stands for a decision of the compiler: its result is its argument, or none": """
        annotation.* debug device_copy on_device call_lowered memory.* vm.invoke_tvm_op vm.shape_func""",
    "Relay's own: no other library has it": """
        collapse_sum_like collapse_sum_to contrib_reverse_reshape nn.fifo_buffer
        relay.op.annotation.simulated_quantize""",
    "of detectors and flow networks: no library that is installed has it": """
        nn.correlation vision.get_valid_counts vision.multibox_prior vision.multibox_transform_loc
        vision.non_max_suppression vision.yolo_reorg""",
    "a packed form of an operator that is judged; the tests of layouts compare the two": "nn.contrib_*conv2d_NCHWc",
}
TOLERANCE = {"bfloat16": 5e-2, "float16": 6e-3, "float32": 3e-5, "float64": 1e-9}


def wide(value):
    if isinstance(value, tuple):
        return tuple(map(wide, value))
    return value.astype("float64") if "float" in value.dtype.name else value


def fields(value) -> list[np.ndarray]:
    return [f for v in value for f in fields(v)] if isinstance(value, (tuple, list)) else [value]


def program(name: str, cases: list[Sample]) -> tuple[IRModule, list, list[np.ndarray]]:
    """One function of all samples, (record, arguments) of each, and the values of its parameters."""
    definition, params, values, calls, given = OPERATORS[name].definition, [], [], [], []

    def parameter(value):
        if isinstance(value, tuple):
            return Tuple(map(parameter, value))
        params.append(Var(f"x{len(params)}", TensorType(value.shape, value.dtype)))
        values.append(value)
        return params[-1]

    for case in cases:
        record, args = definition(**case.attrs), arrays_of(case)
        args = FITTED.get(name, lambda a, *xs: xs)(record, *args)
        calls.append(Call(definition.op, tuple(map(parameter, args)), record if definition.fields else None))
        given.append((record, args))
    return IRModule.from_expr(Function(params, Tuple(calls))), given, values


def types(t) -> list[TensorType]:
    return [f for v in t.fields for f in types(v)] if isinstance(t, TupleType) else [t]


def plain(value):
    return tuple(map(plain, value)) if isinstance(value, (tuple, list)) or hasattr(value, "tag") else value.numpy()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted({*JUDGES} & {*OPERATORS}))
def test_an_operator_gives_what_its_judge_gives(name: str) -> None:
    check(name, OPERATORS[name].definition.samples())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_its_attributes_mean_what_they_mean_there(name: str) -> None:
    check(name, VARIANTS[name])


def check(name: str, cases: list[Sample]) -> None:
    mod, given, values = program(name, cases)
    with np.errstate(all="ignore"):
        wanted = [JUDGES[name](record, *map(wide, args)) for record, args in given]
    assert any(w is not NotImplemented for w in wanted), "no sample is judged"
    dynamic = any(t.is_dynamic for t in types(relay.transform.InferType()(mod)["main"].ret_type))
    for executor in ("debug", "vm" if dynamic or "lower" in OPERATORS[name].definition.waivers else "graph"):
        for want, found in zip(wanted, relay.create_executor(executor, mod).evaluate()(*values), strict=True):
            if want is not NotImplemented:
                agree(name, executor, fields(want), fields(plain(found)))


def agree(name: str, executor: str, wanted: list, found: list) -> None:
    for want, got in zip(wanted, found, strict=True):
        bar = max(LOOSE.get(name, 0), TOLERANCE.get(got.dtype.name, 0))
        want = np.asarray(want)
        if want.dtype.kind in "iu" and got.dtype.kind in "iu":
            want = want.astype(got.dtype)  # whole numbers wrap
        got = got[tuple(map(slice, want.shape))] if name in PARTS else got
        assert want.shape == got.shape, executor
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), bar, bar, err_msg=executor)


def named(table: dict[str, str]) -> dict[str, list[str]]:
    """The reasons of each operator."""
    return {
        n: [why for why, names in table.items() if any(fnmatchcase(n, pattern) for pattern in names.split())]
        for n, op in OPERATORS.items()
        if op.definition.__module__.startswith("relaylab.")
    }


def test_every_operator_is_judged_or_says_why_not() -> None:
    elsewhere, without = named(ELSEWHERE), named(WITHOUT)
    lacking = [n for n in elsewhere if n not in {**JUDGES, **EXAMPLES} and not elsewhere[n] and not without[n]]
    assert lacking == []
    assert [n for n in without if without[n] and (n in JUDGES or elsewhere[n])] == []
    assert [n for n in JUDGES if n not in OPERATORS] == []


def test_the_tests_that_judge_elsewhere_name_their_operators() -> None:
    for file, names in ELSEWHERE.items():
        text = (HERE / file).read_text(encoding="utf-8")
        for name in names.split():
            assert name.rsplit(".", 1)[-1].strip("*_") in text, (file, name)


@pytest.mark.parametrize("executor", ("debug", "graph"))
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_manuals(name: str, executor: str) -> None:
    attrs, args, wanted = EXAMPLES[name]
    params = [Var(f"x{k}", TensorType(x.shape, "float64")) for k, x in enumerate(args)]
    definition = OPERATORS[name].definition
    mod = IRModule.from_expr(Function(params, Call(definition.op, tuple(params), definition(**attrs))))
    np.testing.assert_array_equal(relay.create_executor(executor, mod).evaluate()(*args).numpy(), wanted)
