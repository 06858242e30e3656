"""The public functions that read text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylab.ir.expr import Expr, GlobalVar
from relaylab.ir.module import IRModule
from relaylab.support.errors import DiagnosticError, warn
from relaylab.support.trampoline import run
from relaylab.text import hooks
from relaylab.text.reading.control import branch, cell, function_literal, match_
from relaylab.text.reading.definitions import header, module
from relaylab.text.reading.expressions import ParseWarning, block, parentheses, sequence
from relaylab.text.reading.holes import UNTYPED, Holes, drawn, words
from relaylab.text.reading.reader import Stop
from relaylab.text.reading.state import Productions, State

MetaTables = Mapping[str, Sequence[object]]

NESTED: Productions = {
    "(": parentheses,
    "{": block,
    "fn": function_literal,
    "if": branch,
    "match": match_,
    "match?": match_,
    "ref": cell,
    "ref_read": cell,
    "ref_write": cell,
}
"""The expressions that hold others, by the token that begins them."""


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTables | None = None,
    fill: int | None = None,
) -> IRModule:
    """The module that `source` describes, typed if type inference is loaded.

    The text may be what TVM printed: with `#[version = "0.0.5"]` before it or without, a module, or one function
    or expression, which is `@main`. Its definitions are added to (a copy of) `init_module`; the objects of
    `init_meta_table` follow the entries of the text's own meta data.

    Constants whose data the text does not hold become the last parameters of the functions that use them,
    `%constant_0` …, of the type in the comment behind them or as inferred, with a `ParseWarning`. With `fill`, a seed,
    they are constants of numbers drawn from it.

    Raises `DiagnosticError` with everything that is wrong in the text.
    """
    mod, found = _read(source, source_name, init_module, init_meta_table, {})
    if not found:
        return hooks.typed(mod)
    try:
        mod = hooks.typed(mod)
    except DiagnosticError as error:
        for wrong in (error, *error.diagnostics):
            if isinstance(wrong, DiagnosticError) and wrong.message.startswith("the type of %constant_"):
                wrong.help = UNTYPED
        raise
    what = words(found.values())
    if fill is None:
        help = "parse(text, fill=seed) puts seeded numbers in their place"
        warn(f"{what}: they are parameters %constant_… now; {help}", ParseWarning)
        return mod
    numbers = drawn(mod, found, fill)
    warn(f"{what}: numbers drawn from the seed {fill} stand in their place", ParseWarning)
    return hooks.typed(_read(source, source_name, init_module, init_meta_table, numbers)[0])


def read_module(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTables | None = None,
) -> IRModule:
    """As `parse`, without type inference."""
    return _read(source, source_name, init_module, init_meta_table, {})[0]


def _read(
    source: str,
    source_name: str,
    init_module: IRModule | None,
    init_meta_table: MetaTables | None,
    filled: Mapping[int, np.ndarray],
) -> tuple[IRModule, dict[GlobalVar, Holes]]:
    mod = IRModule() if init_module is None else init_module.shallow_copy()
    source = source.removeprefix("\ufeff")  # editors on Windows begin files with it
    state = State(source, NESTED, source_name, mod, init_meta_table)
    state.filled = filled
    mod.source_map[source_name] = source
    return module(state, mod)


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The module that `source` describes, typed if type inference is loaded."""
    return parse(source, source_name)


def parse_expr(source: str, source_name: str = "from_string", init_meta_table: MetaTables | None = None) -> Expr:
    """The one expression that `source` consists of, untyped; the version line may be left out."""
    state = State(source, NESTED, source_name, None, init_meta_table)
    expr = None
    try:
        header(state)
        expr = run(sequence(state, "end"))
        state.expect("end", "the end of the text")
    except Stop:
        pass
    state.raise_errors()
    assert expr is not None
    return expr
