"""Studies: load a program, run the pipeline, keep every step, compile it, check it, time it, compare, bisect, ask why.

The command, the magics and the notebooks are thin wrappers of what is here; each function answers one question.
"""

from relaylab.study.bisect import Finding, bisect, bisect_history
from relaylab.study.checking import Check, check, difference, leaves, needs_vm, relative_error
from relaylab.study.compare import Comparison, Quantity, compare
from relaylab.study.explain import Explanation, errors, explain
from relaylab.study.exploration import Exploration, Row, explore, operators, rule_hits, stage_diff
from relaylab.study.flow import control_flow
from relaylab.study.lessons import LESSONS, Lesson
from relaylab.study.measure import Interval, Worth, Worths, interval, predicted, race, worth
from relaylab.study.pipeline import Pipeline, pass_of, split
from relaylab.study.program import Program, load, read
from relaylab.study.record import Recording, compare_recordings, exceeded, record, reopen
from relaylab.study.roofline import Roofline, roofline
from relaylab.study.running import (
    describe,
    listing,
    llvm_steps,
    operator_table,
    profile,
    run,
    run_library,
    seeded,
    timed,
)
from relaylab.study.suggest import Suggestion, Suggestions, suggestions
from relaylab.study.why import WhyNot, rules_of, why, why_not

__all__ = [
    "Check", "Comparison", "Explanation", "Exploration", "Finding", "Interval", "LESSONS", "Lesson", "Pipeline",
    "Program", "Quantity", "Recording", "Roofline", "Row", "Suggestion", "Suggestions", "WhyNot", "Worth", "Worths",
    "bisect", "bisect_history", "check", "compare", "compare_recordings", "control_flow", "describe", "difference",
    "errors", "exceeded", "explain", "explore", "interval", "leaves", "listing", "llvm_steps", "load", "needs_vm",
    "operator_table", "operators", "pass_of", "predicted", "profile", "race", "read", "record", "relative_error",
    "reopen", "roofline", "rule_hits", "rules_of", "run", "run_library", "seeded", "split", "stage_diff",
    "suggestions", "timed", "why", "why_not", "worth",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
