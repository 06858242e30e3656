"""The text of loop programs in lines and tokens, and its expressions. Nothing recurs on depth, nothing is evaluated.

Expressions that are equal are one object, as the compiler makes them. What is wrong raises DiagnosticError `loop.parse`
with its line and column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relaylab.loop.expr import (
    INDEX,
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    ScalarExpr,
    Size,
    Tensor,
    apply,
    const,
)
from relaylab.loop.scalar import DTYPES, SCALAR_OPS, is_float
from relaylab.loop.show import INFIX, SUFFIXES
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.support.source import SourceName, Span, caret
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted

_NAME = r"[^\W\d]\w*(?:\.\w+)*"
_TOKEN = re.compile(
    rf"[ ]*(?:(?P<name>{_NAME})|(?P<number>[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?P<suffix>\w*))"
    rf"|\$(?:(?P<size>[^\W\d]\w*|`[^`]*`)|(?P<apart>[0-9]+))"
    r"|(?P<cut>\.\.\.|…)|(?P<sign><<|>>|//|[<>=!+*|&]=|[-+*/%<>&|^=()\[\],:])|(?P<end>\#|$)|(?P<unknown>.))"
)
LONGEST_NUMBER = 64  # characters
_SIGNS = {sign: (op, strength) for op, (sign, strength) in INFIX.items()}
_DTYPE_OF = {suffix: dtype for dtype, suffix in SUFFIXES.items()}
_CLOSING = {"(": ")", "[": "]", "": "the end"}


class Token(NamedTuple):
    """A word, number or sign of a line: its kind is `name`, `number`, `size`, `apart`, `sign` or `end`."""

    kind: str
    text: str
    column: int
    suffix: str = ""


@dataclass(slots=True)
class Line:
    """A line of a text: its tokens, the last of which is an `end`, and which of them is the next."""

    source: str
    number: int
    text: str
    tokens: list[Token] = field(default_factory=list[Token])
    at: int = 0

    @property
    def indent(self) -> int:
        """How far in the line begins."""
        return len(self.text) - len(self.text.lstrip(" "))

    def error(self, message: str, token: Token | None = None, help: str = "") -> DiagnosticError:
        """What is wrong at a token, by default the next one."""
        token = token or self.tokens[self.at]
        last = token.column + max(1, len(token.text)) - 1
        span = Span(SourceName("loops"), self.number, self.number, token.column, last)
        return DiagnosticError(message, code="loop.parse", place=caret(self.source, span), help=help, span=span)

    def split(self) -> None:
        """Find the tokens."""
        at = 0
        while not self.tokens or self.tokens[-1].kind != "end":
            found = _TOKEN.match(self.text, at)
            assert found is not None, "any character is a token"
            kind = found.lastgroup or ""
            kind = "number" if kind == "suffix" else kind
            token, at = Token(kind, found[kind], found.start(kind) + 1, found["suffix"] or ""), found.end()
            if kind == "cut":
                raise self.error("the text is cut here", token, "print the program whole: `str(program)`")
            if kind == "unknown":
                raise self.error(f"`{token.text}` is no part of a loop program", token)
            self.tokens.append(token)

    @property
    def next(self) -> Token:
        """The next token, which stays the next."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """The next token; an `end` stays."""
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def takes(self, text: str) -> bool:
        """Whether the next token is this one; it is taken then."""
        found = self.tokens[self.at].text == text and self.tokens[self.at].kind != "end"
        self.at += found
        return found

    def expect(self, text: str, help: str = "") -> Token:
        """The next token, which has to be this one."""
        token = self.next
        if not self.takes(text):
            raise self.error(f"expected `{text}`, found {found(token)}", token, help)
        return token

    def word(self, what: str) -> Token:
        """A name."""
        token = self.next
        if token.kind != "name":
            raise self.error(f"expected {what}, found {found(token)}", token)
        return self.take()

    def whole(self, what: str, least: int, most: int) -> int:
        """A whole number without a dtype."""
        token = self.next
        if token.kind != "number" or not token.text.isdecimal() or len(token.text) > LONGEST_NUMBER:
            raise self.error(f"expected {what}, found {found(token)}", token)
        if not least <= int(token.text) <= most:
            raise self.error(f"{what} is from {least} to {most}, not {token.text}", token)
        return int(self.take().text)

    def end(self) -> None:
        """Nothing may follow."""
        if self.next.kind != "end":
            raise self.error(f"expected the end of the line, found {found(self.next)}")


def is_name(word: str) -> bool:
    """Whether a word reads as one name."""
    return re.fullmatch(_NAME, word) is not None


def found(token: Token) -> str:
    """A token in the words of an error."""
    shown = token.text if len(token.text) <= 40 else f"{token.text[:40]}…"
    return "the end of the line" if token.kind == "end" else f"`{shown}`"


def lines_of(text: str) -> Iterator[Line]:
    """The lines that hold something."""
    for number, line in enumerate(text.split("\n"), 1):
        made = Line(text, number, line.rstrip("\r"))
        made.split()
        if len(made.tokens) > 1:
            yield made


@dataclass(slots=True)
class _Open:
    """An open bracket, or the whole: values and the signs between them, and what stands before the last comma."""

    token: Token
    bracket: str = ""
    before: list[ScalarExpr] = field(default_factory=list[ScalarExpr])
    values: list[ScalarExpr] = field(default_factory=list[ScalarExpr])
    signs: list[tuple[Token, str, int]] = field(default_factory=list[tuple[Token, str, int]])


class ExpressionReader:
    """Reads expressions over the names, buffers and sizes that are known where they stand."""

    def __init__(self) -> None:
        self.names: dict[str, Axis | Local] = {}
        self.buffers: dict[str, Tensor] = {}
        self.sizes: dict[str, Size] = {}
        self.apart: list[ScalarExpr] = []
        self._made: dict[tuple[object, ...], ScalarExpr] = {}
        self._results: dict[tuple[str, ...], str] = {}
        self._made_numbers: dict[str, Const] = {}

    def read(self, line: Line, dtype: str = "") -> ScalarExpr:
        """The expression that begins here, up to what cannot belong to it; of a dtype if one is given."""
        first = line.next
        value = self._whole(line)
        if dtype and value.dtype != dtype:
            help = f"convert it: `{dtype}(...)`, or end a constant with its dtype"
            raise line.error(f"expected a value of {dtype}, this is {value.dtype}", first, help)
        return value

    def _whole(self, line: Line) -> ScalarExpr:
        stack = [_Open(line.next)]
        while True:
            if self._opens(line, stack):
                continue
            value = self._atom(line)
            while True:  # what follows a value
                top, token = stack[-1], line.next
                top.values.append(value)
                if token.text in _SIGNS and token.kind != "end":
                    self._sign(line, top)
                    break
                value = self._reduced(line, top, 0)
                if len(stack) == 1:
                    return value
                line.take()
                if token.text == "," and top.token.kind == "name":
                    top.before.append(value)
                    break
                if token.text != _CLOSING[top.bracket]:
                    opened = f"`{top.bracket}` of column {top.token.column}"
                    raise line.error(f"expected `{_CLOSING[top.bracket]}` for {opened}, found {found(token)}", token)
                stack.pop()
                value = self._closed(line, top, value)

    def _opens(self, line: Line, stack: list[_Open]) -> bool:
        """Whether a bracket opens here, with the name before it."""
        token = line.next
        if token.kind == "name" and line.tokens[line.at + 1].text in ("(", "["):
            line.take()
            stack.append(_Open(token, line.take().text))
            return True
        if line.takes("("):
            stack.append(_Open(token, "("))
            return True
        return False

    def _sign(self, line: Line, top: _Open) -> None:
        token = line.take()
        op, strength = _SIGNS[token.text]
        top.values.append(self._reduced(line, top, strength))
        top.signs.append((token, op, strength))

    def _reduced(self, line: Line, top: _Open, strength: int) -> ScalarExpr:
        """The last value with all before it that binds at least so strongly; it is taken out."""
        value = top.values.pop()
        while top.signs and top.signs[-1][2] >= strength:
            token, op, _ = top.signs.pop()
            value = self._apply(line, token, op, (top.values.pop(), value))
        return value

    def _made_once(self, node: ScalarExpr, *key: object) -> ScalarExpr:
        return self._made.setdefault(key, node)

    # ---- nodes

    def _closed(self, line: Line, top: _Open, last: ScalarExpr) -> ScalarExpr:
        token, args, name = top.token, (*top.before, last), top.token.text
        if token.kind != "name":
            return last
        if top.bracket == "[":
            self._count(line, token, args, 1, "index: buffers are flat")
            buffer = self.buffer(line, token)
            if last.dtype != INDEX:
                raise line.error(f"an index is {INDEX}, not {last.dtype}", token, f"convert it: `{INDEX}(...)`")
            return self._made_once(Load(buffer, (last,)), buffer, last)
        if name in DTYPES:
            self._count(line, token, args, 1, "argument")
            return self._made_once(Cast(last, name), name, last)
        if name == "guard":
            self._count(line, token, args, 3, "argument")
            if [a.dtype for a in args] != ["bool", last.dtype, last.dtype]:
                shown = ", ".join(a.dtype for a in args)
                raise line.error(f"`guard` takes a bool and two values of one dtype, not {shown}", token)
            return self._made_once(Guard(args[0], args[1], last), name, *args)
        if name not in SCALAR_OPS:
            help = did_you_mean(name, [*SCALAR_OPS, *DTYPES, "guard"]) or "reductions are loops here"
            raise line.error(f"there is no function `{name}`", token, help)
        self._count(line, token, args, SCALAR_OPS[name].arity, "argument")
        return self._apply(line, token, name, args)

    def _count(self, line: Line, token: Token, args: Sequence[ScalarExpr], wanted: int, what: str) -> None:
        if len(args) != wanted:
            noun, _, why = what.partition(": ")
            message = f"`{token.text}` takes {counted(wanted, noun)}, not {len(args)}" + (f": {why}" if why else "")
            raise line.error(message, token)

    def _apply(self, line: Line, token: Token, op: str, args: tuple[ScalarExpr, ...]) -> ScalarExpr:
        key = (op, *(a.dtype for a in args))
        dtype = self._results.get(key)
        if dtype is None:
            try:
                dtype = apply(op, *(Local("", a.dtype) for a in args)).dtype
            except RelayError as error:
                raise line.error(error.message, token, "convert a side: `float32(x)`") from None
            self._results[key] = dtype
        return self._made_once(Apply(op, args, dtype), op, *args)

    def buffer(self, line: Line, token: Token) -> Tensor:
        """The buffer of a name."""
        if token.text not in self.buffers:
            help = did_you_mean(token.text, [*self.buffers][:1000]) or f"the buffers are {_listed(self.buffers)}"
            raise line.error(f"there is no buffer `{token.text}`", token, help)
        return self.buffers[token.text]

    def _atom(self, line: Line) -> ScalarExpr:
        token = line.take()
        match token.kind:
            case "number":
                return self._number(line, token, "")
            case "sign" if token.text == "-" and (
                line.next.kind == "number" or line.next.text.partition("_")[0] == "inf"
            ):
                return self._number(line, line.take(), "-")
            case "apart":
                if len(token.text) > LONGEST_NUMBER or int(token.text) >= len(self.apart):
                    raise line.error(f"`${token.text}` is not written above this line", token)
                return self.apart[int(token.text)]
            case "size":
                if token.text not in self.sizes:
                    help = (
                        f"the sizes are {_listed(self.sizes)}" if self.sizes else "below the first line: `sizes $n=0`"
                    )
                    raise line.error(f"there is no size `${token.text}`", token, help)
                return self.sizes[token.text]
            case "name" if token.text in self.names:
                return self.names[token.text]
            case "name" if token.text in ("True", "False"):
                return self._made_once(Const(token.text == "True", "bool"), token.text)
            case "name" if token.text.partition("_")[0] in ("inf", "nan"):
                return self._number(line, token, "")
            case "name":
                help = "a buffer is read at an index: `x[i]`" if token.text in self.buffers else ""
                help = (
                    help
                    or did_you_mean(token.text, [*self.names][:1000])
                    or f"the names here are {_listed(self.names)}"
                )
                raise line.error(f"there is no loop or register `{token.text}` here", token, help)
            case _:
                raise line.error(f"expected an expression, found {found(token)}", token)

    def _number(self, line: Line, token: Token, minus: str) -> ScalarExpr:
        key = minus + token.text
        if key in self._made_numbers:
            return self._made_numbers[key]
        if token.kind == "name":
            digits, _, suffix = token.text.partition("_")
            suffix = suffix or "f"
        else:
            digits, suffix = token.text.removesuffix(token.suffix), token.suffix
        dtype = _DTYPE_OF.get(suffix, "") if suffix else INDEX
        whole = digits.isdecimal()
        if not dtype or len(digits) > LONGEST_NUMBER or not (whole or is_float(dtype)):
            help = "`3` is int64, `3i32`, `3u8`; `0.5f` is float32, `0.5f64`, `0.5f16`, `0.5bf16`"
            raise line.error(f"{found(token)} is no number of a dtype", token, help)
        try:
            value = const(float(minus + digits) if is_float(dtype) else int(minus + digits), dtype)
        except RelayError as error:
            raise line.error(error.message, token) from None
        if token.kind == "number" and not math.isfinite(value.value):
            raise line.error(f"{found(token)} is more than {dtype} has", token, "infinity is `inf`")
        return self._made_numbers.setdefault(key, value)


def _listed(names: Mapping[str, object]) -> str:
    few = list(names)[:12]
    return (", ".join(f"`{n}`" for n in few) + (" …" if len(names) > 12 else "")) or "none"
