"""Lexers for Pygments, which colours code in documents that Sphinx and nbconvert make: ```` ```relay ````.

Installing relaylab makes them known under `relay` and `relay-loops`; LLVM IR and assembly Pygments knows itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pygments.lexer import Lexer
from pygments.token import Token, string_to_tokentype

from relaylab.text.colours import KINDS, tokens

_TYPES = {kind: string_to_tokentype(look.pygments) for kind, look in KINDS.items()}


class _TableLexer(Lexer):
    language: ClassVar[str]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Offset, type and text of each token."""
        at = 0
        for kind, part in tokens(text, self.language):
            yield at, _TYPES.get(kind, Token.Text), part
            at += len(part)


class RelayLexer(_TableLexer):
    """Relay text."""

    name, language = "Relay", "relay"
    aliases: ClassVar[list[str]] = ["relay"]
    filenames: ClassVar[list[str]] = ["*.relay", "*.rly"]
    mimetypes: ClassVar[list[str]] = ["text/x-relay"]


class LoopsLexer(_TableLexer):
    """Loop programs, as kernels are shown."""

    name, language = "Relay loops", "loops"
    aliases: ClassVar[list[str]] = ["relay-loops"]
    filenames: ClassVar[list[str]] = []
    mimetypes: ClassVar[list[str]] = []
