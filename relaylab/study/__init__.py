"""Studies: load a program, run the pipeline, keep every step, compile it, check it, time it, compare, bisect, ask why.

The command, the magics and the notebooks are thin wrappers of what is here; each function answers one question.
"""

from relaylab.interp.agreement import relative_error
from relaylab.study.bisect import Finding, bisect, bisect_history
from relaylab.study.checking import Check, check, difference, leaves, needs_vm
from relaylab.study.compare import Comparison, Quantity, compare
from relaylab.study.compilers import CompilerComparison, compare_compilers
from relaylab.study.crash import Crash, TraceLine, crash_of
from relaylab.study.explain import Explanation, errors, explain
from relaylab.study.exploration import Exploration, Row, explore, operators, rule_hits, stage_diff
from relaylab.study.flow import control_flow
from relaylab.study.lessons import LESSONS, Lesson
from relaylab.study.live import Fault, LiveText
from relaylab.study.measure import Interval, Worth, Worths, interval, predicted, race, worth
from relaylab.study.pipeline import Pipeline, pass_of, split
from relaylab.study.program import Program, load, read
from relaylab.study.record import Recording, compare_recordings, exceeded, record, reopen
from relaylab.study.rewriting import Rewrite, Rewrites, rewrites
from relaylab.study.roofline import Roofline, roofline
from relaylab.study.running import (
    arguments,
    built,
    compiled,
    describe,
    is_compiled,
    listing,
    llvm_steps,
    operator_table,
    profile,
    run,
    run_library,
    seeded,
    timed,
)
from relaylab.study.schedules import ScheduleMoment, Trial, schedule, schedule_steps
from relaylab.study.suggest import Suggestion, Suggestions, suggestions
from relaylab.study.sweep import DEFAULT_MEASURES, SweepCell, SweepRow, SweepTable, cells, sweep
from relaylab.study.tuning import Tuning, TuningGain, comparison, records_table, tune
from relaylab.study.why import WhyNot, rules_of, why, why_not

__all__ = [
    "Rewrite", "Rewrites", "rewrites",
    "Check", "Comparison", "CompilerComparison", "Crash", "DEFAULT_MEASURES", "Explanation", "Exploration", "Fault",
    "Finding",
    "Interval", "LESSONS", "Lesson", "LiveText", "Pipeline", "Program", "Quantity", "Recording", "Roofline", "Row",
    "ScheduleMoment", "Suggestion", "Suggestions", "SweepCell", "SweepRow", "SweepTable", "TraceLine", "Trial",
    "Tuning", "TuningGain", "WhyNot", "Worth", "Worths", "arguments", "bisect", "bisect_history", "built",
    "cells", "check",
    "compare", "compare_compilers", "comparison", "compiled",
    "compare_recordings", "control_flow", "crash_of", "describe", "difference", "errors", "exceeded", "explain",
    "explore", "interval", "is_compiled", "leaves", "listing", "llvm_steps", "load", "needs_vm",
    "operator_table", "operators",
    "pass_of", "predicted", "profile", "race", "read", "record", "records_table", "relative_error", "reopen",
    "roofline", "rule_hits", "rules_of", "run", "run_library", "schedule", "schedule_steps", "seeded", "split",
    "stage_diff", "suggestions", "sweep", "timed", "tune", "why", "why_not", "worth",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
