"""Passes one after another over a module, and what has to hold after them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.ir.scope import well_formed
from relaylab.text import parse
from relaylab.transform import PASSES, PassContext, Sequential

ROUNDING = {"FastMath": 2e-2, "ToMixedPrecision": 5e-2}
"""Passes that change floats a little, on purpose: comparisons after them may fall on the other side."""
EXACT = sorted(n for n, e in PASSES.items() if e.preserves and n not in ROUNDING and n != "PrintIR")

Step = tuple[str, Mapping[str, object]]
"""The name of a pass and the options that differ from those it is tried with."""


def apply(mod: IRModule, steps: Sequence[str | Step]) -> IRModule:
    """The module after passes, each of which must leave scopes and types right."""
    with PassContext(opt_level=4):
        for step in steps:
            name, options = (step, {}) if isinstance(step, str) else step
            mod = Sequential([PASSES[name].factory(**{**PASSES[name].example, **options})])(mod)
            assert well_formed(mod), f"{name} breaks scopes"
    mod = relay.transform.InferType()(mod)
    assert_types_are_right(mod)
    return mod


def assert_types_are_right(mod: IRModule) -> None:
    """The types that a module carries are those that inference finds for its text."""
    again = relay.transform.InferType()(parse(mod.astext(show_meta_data=True)))
    for gv, func in mod.functions.items():
        assert str(again[gv.name_hint].checked_type) == str(func.checked_type), gv.name_hint
    assert plain(again) == plain(mod)


def plain(mod: IRModule) -> str:
    """The text without types in comments, which stand only once where constants are shared."""
    return re.sub(r" /\* ty=.*? \*/", "", mod.astext())
