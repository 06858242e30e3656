"""The public functions that read text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylab.ir.expr import Expr
from relaylab.ir.module import IRModule
from relaylab.text import hooks
from relaylab.text.reading.control import branch, cell, function_literal, match_
from relaylab.text.reading.definitions import header, module
from relaylab.text.reading.expressions import block, parentheses, sequence
from relaylab.text.reading.reader import Stop
from relaylab.text.reading.state import Productions, State
from relaylab.text.trampoline import run

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
) -> IRModule:
    """The module that `source` describes, typed if type inference is loaded.

    The text begins with `#[version = "0.0.5"]`. Its definitions are added to (a copy of)
    `init_module`; the objects of `init_meta_table` follow the entries of the text's own meta data.
    Raises `DiagnosticError` with everything that is wrong in the text.
    """
    return hooks.typed(read_module(source, source_name, init_module, init_meta_table))


def read_module(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTables | None = None,
) -> IRModule:
    """As `parse`, without type inference."""
    mod = IRModule() if init_module is None else init_module.shallow_copy()
    source = source.removeprefix("\ufeff")  # editors on Windows begin files with it
    state = State(source, NESTED, source_name, mod, init_meta_table)
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
        header(state, required=False)
        expr = run(sequence(state, "end"))
        state.expect("end", "the end of the text")
    except Stop:
        pass
    state.raise_errors()
    assert expr is not None
    return expr
