"""The public functions that read text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylab.ir.expr import Expr
from relaylab.ir.module import IRModule
from relaylab.text import control, hooks
from relaylab.text.definitions import header, module
from relaylab.text.expressions import sequence
from relaylab.text.reader import Stop
from relaylab.text.state import State
from relaylab.text.trampoline import run

assert control  # its import adds functions, branches, matches and cells to the expressions

MetaTables = Mapping[str, Sequence[object]]


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
    state = State(source, source_name, mod, init_meta_table)
    mod.source_map[source_name] = source
    return module(state, mod)


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The module that `source` describes, typed if type inference is loaded."""
    return parse(source, source_name)


def parse_expr(source: str, source_name: str = "from_string", init_meta_table: MetaTables | None = None) -> Expr:
    """The one expression that `source` consists of, untyped; the version line may be left out."""
    state = State(source, source_name, None, init_meta_table)
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
