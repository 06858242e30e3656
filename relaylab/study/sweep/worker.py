"""What a cell gives: measured in the process that `run` starts for it, on this machine or on a worker of a cluster."""

from __future__ import annotations

import time
import warnings
from typing import Any

from relaylab.codegen.build import compile_main, parse_target
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.external import inline_external
from relaylab.codegen.operations.records import RECORDS, current_version
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.ir import IRModule
from relaylab.relay import parse
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.threads import threads_used
from relaylab.study.checking import check
from relaylab.study.compare import end_figures
from relaylab.study.exploration import explore
from relaylab.study.measure import interval, race
from relaylab.study.pipeline import passes_of
from relaylab.study.program import Program, load, with_known_sizes
from relaylab.study.sweep.cell import SweepCell
from relaylab.support.errors import RelayError
from relaylab.support.line_process import Answer, serve
from relaylab.transform import InferType, PassContext
from relaylab.transform.normal_forms.first_order import first_order

Measures = dict[str, Any]


def machine() -> dict[str, str]:
    """What tells this worker's rows from those of others: its CPU and the code that it runs."""
    return {"cpu": CpuTarget.host().key, "version": current_version()}


def measured(cell: SweepCell) -> Measures:
    """All that a cell asks for, flat: `time_us`, `build_s`, `operators` …"""
    with threads_used(cell.threads):
        return _measured(cell, _program(cell))


def _measured(cell: SweepCell, program: Program) -> Measures:
    config: dict[str, Any] = {RECORDS: "", **dict(cell.options)}
    with PassContext(opt_level=cell.opt_level, config=config):
        start = time.perf_counter()
        plain = first_order(inline_external(InferType()(program.mod)))
        program = Program(program.name, plain, program.params)
        exploration = explore(program, cell.opt_level, passes_of(cell.pipeline, cell.opt_level))
        if exploration.history.error is not None:
            raise exploration.history.error
        end, passes = exploration.history.mod, time.perf_counter() - start
    found: Measures = {}
    if "passes" in cell.measures:
        found["passes"] = {row.name: row.delta for row in exploration.rows if row.changed}
    if not {"time", "build", "counts", "memory"} & set(cell.measures):
        return found | _error(cell, end)
    with PassContext(opt_level=cell.opt_level, config=config | {SCHEDULES: dict(cell.schedules)}):
        start = time.perf_counter()
        library = compile_main(end, parse_target(cell.target), ir_mod=end)
        compiling = time.perf_counter() - start
    found |= {"passes_s": passes, "compile_s": compiling} if "build" in cell.measures else {}
    return found | _figures(cell, end, library) | _error(cell, end)


def _program(cell: SweepCell) -> Program:
    if not cell.text:
        return with_known_sizes(load(cell.program))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that constants are drawn from a seed
        return with_known_sizes(Program(cell.program, parse(cell.text, cell.program, fill=0)))


def _figures(cell: SweepCell, end: IRModule, library: GraphExecutorFactoryModule) -> Measures:
    found: Measures = {}
    if "counts" in cell.measures:
        figures = end_figures(end)
        found |= {"operators": figures["operator calls"], "kernels": len(library.kernels())}
        found |= {"macs": figures["MACs"], "bytes_moved": figures["bytes moved"]}
    if "memory" in cell.measures:
        made = library.executable
        found["arena_bytes"] = made.plan.arena_bytes
        found["constant_bytes"] = made.constants.nbytes
        found["code_bytes"] = sum(map(len, made.objects))
    if "time" in cell.measures:
        took = interval(race([library])[0])
        found |= {"time_us": took.median, "time_low_us": took.low, "time_high_us": took.high}
    return found


def _error(cell: SweepCell, end: IRModule) -> Measures:
    return {"error": check(end, opt_level=0).error} if "error" in cell.measures else {}


def answer(asked: Answer) -> Answer:
    """The answer to a cell's text: the machine, and a status with the measures or the reason."""
    if "cell" not in asked:
        return {**machine(), "status": "ready"}
    try:
        return {**machine(), "status": "ok", "measures": measured(SweepCell.parse(asked["cell"]))}
    except RelayError as error:
        return {**machine(), "status": "refused", "why": str(error)}


if __name__ == "__main__":
    serve(answer)
