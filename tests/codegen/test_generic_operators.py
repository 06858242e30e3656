"""Every sample of every operator that has a loop-level form: native code agrees with the evaluator."""

from __future__ import annotations

import math
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from native_group import TARGETS, execute, run_native

from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.isa.target import CpuTarget
from relaylab.ir import OPERATORS, TupleType
from relaylab.loop import OutSpec, compute
from relaylab.loop.parse import parse
from relaylab.loop.procedure import Procedure, perform
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.support.errors import RelayError

sys.path.append(str(Path(__file__).parents[1] / "op"))
import op_cases  # noqa: E402  (shared with the operators' own tests)

pytestmark = pytest.mark.slow


def readable(group, x, flat):
    """A readable for an argument; tuples become tuples of readables."""
    if isinstance(x, tuple):
        return tuple(readable(group, part, flat) for part in x)
    flat.append(x)
    return group.read(f"in{len(flat) - 1}", MemoryView.dense(x.shape, x.dtype.name))


def check_procedure(record, args, specs, isa):
    """The kernels of a procedure, run one after another, against its loop programs evaluated."""
    target, group, flat = CpuTarget.parse(TARGETS[isa]), ProgramBuilder("op"), []
    ins = [readable(group, x, flat) for x in args]
    outs = [group.read(f"out{k}", MemoryView.dense(spec.shape, spec.dtype)) for k, spec in enumerate(specs)]
    procedure = Procedure(group)
    record.procedure(procedure, *outs, *ins)
    arrays = [np.array(x).reshape(-1) for x in flat] + [np.empty(math.prod(s.shape), s.dtype) for s in specs]
    for program in procedure.programs:
        execute(lower_program(program, target), target, arrays, (0, 0.3, 0.35, 1))
    for spec, got, want in zip(specs, arrays[len(flat) :], perform(specs, record.procedure, args)):
        agree(got.reshape(spec.shape), want)


def agree(got, expected):
    rtol = {"float16": 2e-3, "bfloat16": 2e-2}.get(got.dtype.name, 2e-5)
    np.testing.assert_allclose(got.astype("float64"), expected.astype("float64"), rtol=rtol, atol=1e-5)


def check(record, args, spec, isa):
    group, flat = ProgramBuilder("op"), []
    inputs = [readable(group, x, flat) for x in args]
    value = group.compute(spec, record.lower, inputs)
    group.write("out0", value, MemoryView.dense(spec.shape, spec.dtype))
    target = CpuTarget.parse(TARGETS[isa])
    says_all(group.program(), target)
    agree(run_native(group, flat, spec, target), compute(spec, record.lower, args))


def says_all(program, target):
    """Read again, the text of a program is the same program: the same text, proofs and machine code."""
    text = str(program)
    again = parse(text)
    assert str(again) == text
    first, second = (lower_program(p, target).text.splitlines() for p in (program, again))
    assert [x for x in first if not x.startswith("  ; @")] == [x for x in second if not x.startswith("  ; @")], text


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_native_code_agrees_with_the_evaluator(name):
    definition = OPERATORS[name].definition
    for number, case in enumerate(definition.samples()):
        args, record = op_cases.arrays_of(case), definition(**case.attrs)
        out = op_cases.infer(record, *map(op_cases.type_of, args))
        fields = out.fields if isinstance(out, TupleType) else [out]
        isa = list(TARGETS)[(zlib.crc32(name.encode()) + number) % len(TARGETS)]
        if any(t.is_dynamic for t in fields):
            pytest.skip(f"{name} has a shape that is not known before run time")
        specs = [OutSpec(t.concrete_shape, t.dtype, k) for k, t in enumerate(fields)]
        if record.is_procedure():
            check_procedure(record, args, specs, isa)
            continue
        for spec in specs:
            try:
                check(record, args, spec, isa)
            except RelayError as error:
                if error.code != "op.no-facet":
                    raise
                pytest.skip(f"{name} has no loop-level form")
