"""The tour: load a program, run the pipeline and keep every step, draw it, compile it, check it, time it.

The command, the magics and the notebooks are thin wrappers of what is here.
"""

from relaylab.tour.bisect import Finding, bisect, bisect_history
from relaylab.tour.checking import Check, check, difference, leaves, needs_vm, relative_error
from relaylab.tour.compare import Comparison, Quantity, compare
from relaylab.tour.exploration import Exploration, Row, explore, operators, rule_hits, stage_diff
from relaylab.tour.flow import control_flow
from relaylab.tour.heat import Heat, heat
from relaylab.tour.measure import Interval, Worth, Worths, interval, predicted, race, worth
from relaylab.tour.pipeline import Pipeline, pass_of, split
from relaylab.tour.program import Program, load, read
from relaylab.tour.record import Recording, compare_recordings, exceeded, record, reopen
from relaylab.tour.running import (
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
from relaylab.tour.suggest import Suggestion, Suggestions, suggestions
from relaylab.tour.why import WhyNot, rules_of, why, why_not
from relaylab.tour.words import in_words

__all__ = [
    "Check",
    "Comparison",
    "Exploration",
    "Finding",
    "Heat",
    "Interval",
    "Pipeline",
    "Program",
    "Quantity",
    "Recording",
    "Row",
    "Suggestion",
    "Suggestions",
    "WhyNot",
    "Worth",
    "Worths",
    "bisect",
    "bisect_history",
    "check",
    "control_flow",
    "compare",
    "compare_recordings",
    "describe",
    "difference",
    "exceeded",
    "explore",
    "heat",
    "in_words",
    "interval",
    "leaves",
    "listing",
    "llvm_steps",
    "load",
    "needs_vm",
    "operator_table",
    "operators",
    "pass_of",
    "predicted",
    "profile",
    "race",
    "read",
    "record",
    "relative_error",
    "reopen",
    "rule_hits",
    "rules_of",
    "run",
    "run_library",
    "seeded",
    "split",
    "stage_diff",
    "suggestions",
    "timed",
    "why",
    "why_not",
    "worth",
]
