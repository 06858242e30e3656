"""All that the parsing functions share: the reader, what names mean, the meta data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relaylab.ir.expr import Expr, Var
from relaylab.ir.module import IRModule
from relaylab.support.source import Span
from relaylab.support.trampoline import Task
from relaylab.text.reading.metadata import SIZE_VAR, MetaTable
from relaylab.text.reading.names import Names
from relaylab.text.reading.reader import TokenReader
from relaylab.text.reading.size_names import named_sizes

DEEPEST = 100
"""How deep types, patterns and attribute values may nest. Expressions may nest to any depth."""


Productions = Mapping[str, Callable[["State"], Task[Expr]]]
"""What reads an expression, by the kind of its first token."""


class State(TokenReader):
    """A reader that knows what the names of its text mean; `nested` reads the expressions that hold others."""

    def __init__(
        self,
        text: str,
        nested: Productions,
        source_name: str = "from_string",
        mod: IRModule | None = None,
        meta_table: Mapping[str, Sequence[object]] | None = None,
    ):
        super().__init__(text, source_name)
        self.nested = nested
        self.names = Names() if mod is None else Names.of(mod)
        self.names.sizes |= named_sizes((meta_table or {}).get(SIZE_VAR, ()))
        section = text[self.metadata :] if self.metadata >= 0 else ""
        self.meta = MetaTable.read(section, meta_table or {}, self._bad_metadata)
        self.holes: dict[int, Var] = {}
        """What stands for the constants of the function that is being read whose data the text does not hold."""
        self.filled: Mapping[int, np.ndarray] = {}
        """Numbers for such constants."""

    def _bad_metadata(self, message: str) -> None:
        span = self.offsets(self.metadata - len("#[metadata]"), self.metadata)
        self.report("parse.bad-metadata", message, span, "print the program again with `astext()`")

    def check_names(self, mark: int, what: str) -> None:
        """Report variables that are bound twice since the mark: the second would hide the first."""
        for var in self.names.variables.bound_twice(mark):
            message, place = f"{what} has two variables named %{var.name_hint}", var.span
            assert isinstance(place, Span)  # the parser gave it
            self.report("parse.duplicate-variable", message, place, "give one of them another name")

    def check_depth(self, depth: int, what: str) -> None:
        """Refuse types, patterns and values that nest too deeply."""
        if depth > DEEPEST:
            raise self.stop("parse.too-deep", f"{what} may nest {DEEPEST} levels deep, not deeper")
