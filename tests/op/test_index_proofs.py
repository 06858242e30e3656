"""No operator reads outside its tensors: every index of every loop form is proven, or limited by construction.

An index is proven by intervals under its guards (`relaylab.loop.verify`); one that is computed from loaded numbers or
from floats is limited to its tensor when loads become addresses, and the evaluator runs it with its bounds checked
(`test_facets_agree`, `test_variants`). After that every address of the program is proven, limits included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from op_cases import arrays_of, cases, infer, type_of
from test_variants import variants

from relaylab.ir import OPERATORS, TupleType
from relaylab.loop.builder import OutSpec, b
from relaylab.loop.expr import Axis, Local, Tensor
from relaylab.loop.procedure import Procedure
from relaylab.loop.program import Define, For, LoopNest, LoopProgram
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.verify import Access, program_accesses
from relaylab.support.errors import RelayError

NAMES = sorted(OPERATORS)
# The indices of all samples: what is not proven falls only, what is has no reason to.
BUDGET = {"limited": 27, "open": 0}
PROVEN = 4700


def typed(record, args) -> tuple[list, list[OutSpec]] | None:
    """The types of arguments and what the operator gives, or None where it refuses them."""
    types = [type_of(a) for a in args]
    try:
        found = infer(record, *types)
    except RelayError:
        return None
    fields = found.fields if isinstance(found, TupleType) else [found]
    return types, [OutSpec(t.concrete_shape, t.dtype, k) for k, t in enumerate(fields)]


def readable(type_, name: str, group: ProgramBuilder | None = None):
    """The readable form of an argument: a tensor, or those of a tuple."""
    if isinstance(type_, TupleType):
        return tuple(readable(t, f"{name}_{k}", group) for k, t in enumerate(type_.fields))
    shape = type_.concrete_shape
    return (
        Tensor(name, shape, type_.dtype) if group is None else group.read(name, BufferLayout.dense(shape, type_.dtype))
    )


def expression_accesses(value):
    """Every index of every load of an expression, axis by axis."""
    once = For(Axis("once", 1), "serial", (Define(Local("value", value.dtype), value),))
    return program_accesses(LoopProgram("expression", (), (), (LoopNest(once),)))


def form_accesses(record, args) -> Iterator[Access]:
    """The indices that the loop form reads at."""
    known = typed(record, args)
    if record.is_procedure():  # its accesses are those of its programs
        return
    for spec in known[1] if known else ():
        if 0 not in spec.shape:
            axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(spec.shape))
            inputs = [readable(t, f"in{k}") for k, t in enumerate(known[0])]
            yield from expression_accesses(record.lower(b, spec, axes, *inputs))


def kind(access: Access) -> str:
    return "proven" if access.proven else "limited" if access.by_data else "open"


@cache
def sample_accesses(name: str, k: int) -> tuple[Access, ...]:
    """The indices that the loop form of a sample reads at, as it is: two tests ask for them."""
    return next(tuple(form_accesses(record, arrays_of(case))) for record, n, case in of(name) if n == k)


def of(name: str):
    """The samples of an operator that has a loop form."""
    for _, k, case in (c for c in cases() if c[0] == name):
        record = OPERATORS[name].definition(**case.attrs)
        if "lower" not in record.waivers:
            yield record, k, case


def programs(record, types, specs) -> Iterator[LoopProgram]:
    """The loop programs of a call: one for each result, or those of a procedure."""
    name = record.op_name
    if record.is_procedure():
        group = ProgramBuilder(name)
        ins = [readable(t, f"in{d}", group) for d, t in enumerate(types)]
        outs = [group.read(f"out{s.field}", BufferLayout.dense(s.shape, s.dtype)) for s in specs]
        procedure = Procedure(group)
        record.procedure(procedure, *outs, *ins)
        yield from procedure.programs
        return
    for spec in specs:
        group = ProgramBuilder(name)
        value = group.compute(spec, record.lower, [readable(t, f"in{d}", group) for d, t in enumerate(types)])
        group.write("out", value, BufferLayout.dense(spec.shape, spec.dtype))
        yield group.program()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_index_of_every_variant_is_proven_or_limited(name):
    for record, k, case in of(name):
        for what, args in variants(case.args):
            changed = arrays_of(replace(case, args=args))
            for access in sample_accesses(name, k) if args is case.args else form_accesses(record, changed):
                assert kind(access) != "open", f"{name}, sample {k}, argument {what}: {access}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_address_of_every_program_is_proven(name):
    for record, k, case in of(name):
        types, specs = typed(record, arrays_of(case))
        for program in programs(record, types, specs):
            for access in program_accesses(program):
                assert access.proven, f"{name}, sample {k}: {access}"


@pytest.mark.slow
def test_how_many_indices_are_proven(capsys):
    found, limited = Counter(), Counter()
    for name in NAMES:
        for _, k, _ in of(name):
            for access in sample_accesses(name, k):
                found[kind(access)] += 1
                limited[name] += kind(access) == "limited"
    waived = {n: OPERATORS[n].definition.waivers["lower"] for n in NAMES if "lower" in OPERATORS[n].definition.waivers}
    with capsys.disabled():
        print(f"\nindices: {dict(found)}; no loop form: {len(waived)} operators\nlimited: {dict(+limited)}")
    assert found["proven"] >= PROVEN
    assert all(found[what] <= most for what, most in BUDGET.items())
    assert all(len(reason.split()) > 3 for reason in waived.values())
