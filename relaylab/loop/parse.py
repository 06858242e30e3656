"""Text to loop programs: `parse(str(program))` is the program again, and an edited text is another one.

    program = parse('''
        kernel scale(x: in0 float32[12], y: out0 float32[12]) items=3
          parallel i in 3:
            for j in 4 vectorized:
              y[i * 4 + j] = x[i * 4 + j] * 2f
    ''')

What stands in a loop or condition is further in than its first line; `#` begins a remark. Which members of a fused
group expressions come from is not written, and not known of what is read.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from relaylab.loop.expr import INDEX, Axis, Const, Local, ScalarExpr, Size, Tensor, apply, post_order
from relaylab.loop.program import (
    FUNCTION,
    SIGNS,
    SIZES,
    Accumulate,
    Body,
    Define,
    For,
    IfThenElse,
    LoopNest,
    LoopProgram,
    Prefetch,
    Prepared,
    Statement,
    Store,
    extent_of,
)
from relaylab.loop.scalar import DTYPES
from relaylab.loop.show import show
from relaylab.loop.tokens import ExpressionReader, Line, Token, found, lines_of
from relaylab.loop.verify import accesses_by_statement
from relaylab.support.errors import RelayError, RelayTypeError, is_a, kind_of
from relaylab.support.table import did_you_mean

MOST = 1 << 62  # elements, turns
MOST_SLOTS = 1 << 16
RESERVED = frozenset(
    ("if", "else", "for", "parallel", "prefetch", "prepared", "True", "False", "and", "or", "inf", "nan")
)
_KINDS = {sign.removesuffix("="): kind for kind, sign in SIGNS.items()}


def parse(text: str, verify: bool = True) -> LoopProgram:
    """The loop program of a text.

    With `verify`, every access has to be proven to lie in its buffer, and loops have to be such that they can run.
    Raises DiagnosticError `loop.parse` with line and column.
    """
    if not is_a(text, str):
        raise RelayTypeError(f"loops are text, not {kind_of(text)}", code="loop.parse", help="`parse(str(program))`")
    reader = _Reader()
    for line in lines_of(text):
        reader.line(line)
    program = reader.finish(text)
    if verify:
        _verify(program, reader.places)
    return program


def _verify(program: LoopProgram, places: Mapping[Statement, Line]) -> None:
    for statement, access in accesses_by_statement(program):
        if not access.proven:
            raise replaced(places[statement]).error(
                f"this is not proven to stay in its buffer: {access}",
                help="limit the index with `min` and `max`, or read under `guard`; "
                "`verify=False` leaves it to the evaluator, which checks every access",
            )


def replaced(line: Line) -> Line:
    """A line from its first token."""
    return replace(line, at=0)


@dataclass(slots=True)
class _Block:
    """What stands further in than a line: `close` takes it when it ends. Names from inside hide those around it."""

    line: Line
    close: Callable[[Body], Statement | None]
    inner: int = -1  # how far in its lines begin
    body: list[Statement] = field(default_factory=list[Statement])
    hidden: list[tuple[str, Axis | Local | None]] = field(default_factory=list[tuple[str, "Axis | Local | None"]])
    condition: bool = False  # may `else` follow?
    lanes: str = ""  # the name of a vectorized loop


class _Reader:
    """Reads a program line by line; `places` are the lines of its statements."""

    def __init__(self) -> None:
        self.expressions = ExpressionReader()
        self.places: dict[Statement, Line] = {}
        self.blocks: list[_Block] = []
        self.closed: _Block | None = None  # by the line that is read
        self.name = ""
        self.roles: list[tuple[str, Tensor]] = []
        self.known: set[Tensor] = set()
        self.private: dict[str, list[Tensor]] = {"scratch": [], "registers": []}
        self.prepared: list[Prepared] = []
        self.nests: list[LoopNest] = []
        self.items: Line | None = None

    def line(self, line: Line) -> None:
        """One more line."""
        if not self.blocks:
            self._kernel(line)
            return
        if "\t" in line.text[: line.tokens[0].column]:
            raise line.error("a tab before the line", help="indent with spaces")
        self.closed = None
        while line.indent <= self.blocks[-1].line.indent:
            if len(self.blocks) == 1:
                raise line.error(
                    "a line of no kernel", help="what belongs to the kernel is further in than its first line"
                )
            self._close()
        block = self.blocks[-1]
        if block.inner not in (-1, line.indent):
            raise line.error(f"this begins after {line.indent} spaces, the lines before it after {block.inner}")
        block.inner = line.indent
        if line.next.kind == "apart":
            self._apart(line)
            return
        (self._declaration if len(self.blocks) == 1 else self._statement)(line)
        self.expressions.apart = []

    def finish(self, text: str) -> LoopProgram:
        """The program, when all lines are read."""
        if not self.blocks:
            raise Line(text, 1, "", [Token("end", "", 1)]).error(
                "there is no kernel", help="`kernel name(x: in0 float32[8])`"
            )
        while len(self.blocks) > 1:
            self._close()
        program = LoopProgram(
            self.name,
            tuple(self.roles),
            tuple(self.private["scratch"]),
            tuple(self.nests),
            tuple(self.private["registers"]),
            tuple(self.prepared),
            frozenset(self.known),
        )
        self._check_whole(program)
        return program

    # ---- the kernel

    def _kernel(self, line: Line) -> None:
        line.expect("kernel", "a program begins with `kernel name(x: in0 float32[8])`")
        self.name = line.word("the name of the kernel").text
        line.expect("(")
        while not line.takes(")"):
            name = self._new_buffer(line)
            line.expect(":")
            role = line.word("the role of the buffer").text
            tensor = self._tensor(line, name)
            self.roles.append((role, tensor))
            if line.takes("known"):
                self.known.add(tensor)
            if line.next.text != ")":
                line.expect(",")
        if line.next.text == "items":
            self.items = line  # told from loops that are below
        else:
            line.end()
        self.blocks.append(_Block(line, lambda body: None))

    def _new_buffer(self, line: Line) -> Token:
        token = line.word("a name")
        if token.text in self.expressions.buffers:
            raise line.error(f"there is a buffer `{token.text}` already", token)
        return token

    def _tensor(self, line: Line, name: Token, sized: bool = False) -> Tensor:
        dtype = self._dtype(line)
        line.expect("[")
        place, size = line.next, None
        if sized and place.kind != "number":
            size = self.expressions.read(line, INDEX)
            extent = _most(size)
            if not 0 <= extent <= MOST:
                raise line.error(f"the length of `{name.text}` is a number or made of sizes", place)
        else:
            extent = line.whole("a number of elements", 0, MOST)
        line.expect("]")
        self.expressions.buffers[name.text] = tensor = Tensor(name.text, (extent,), dtype, size)
        return tensor

    def _dtype(self, line: Line) -> str:
        token = line.word("a dtype")
        if token.text not in DTYPES:
            help = did_you_mean(token.text, DTYPES) or ", ".join(sorted(DTYPES))
            raise line.error(f"the loop level has no dtype `{token.text}`", token, help)
        return token.text

    def _declaration(self, line: Line) -> None:
        word = line.word("`parallel`, or what is declared")
        match word.text:
            case "sizes":
                self._sizes(line)
            case "scratch" | "registers" as kind:
                name = self._new_buffer(line)
                line.expect(":")
                self.private[kind].append(self._tensor(line, name, sized=kind == "scratch"))
            case "prepared":
                name = self._new_buffer(line)
                line.expect(":")
                buffer = self._tensor(line, name)
                self._block(line, lambda body: self._fill(line, buffer, body))
                return
            case "parallel":
                self._loop(line, lambda loop, grain: self.nests.append(LoopNest(loop, grain)), parallel=True)
                return
            case other:
                words = ("parallel", "scratch", "registers", "prepared", "sizes")
                help = did_you_mean(other, words) or "outermost loops are `parallel i in 8:`"
                raise line.error(f"`{other}` cannot stand directly in a kernel", word, help)
        line.end()

    def _sizes(self, line: Line) -> None:
        operand = dict(self.roles).get(SIZES)
        while True:
            token = line.take()
            if token.kind != "size" or token.text in self.expressions.sizes:
                raise line.error(f"expected the name of a new size, found {found(token)}", token, "`sizes $n=0, $m=1`")
            line.expect("=")
            place = line.next
            slot = line.whole("the slot of a size", 0, MOST_SLOTS)
            if operand is None or operand.dtype != INDEX or operand.shape[0] <= slot:
                help = f"among the buffers: `{SIZES}: {SIZES} {INDEX}[{slot + 1}]`"
                raise line.error(f"there is no operand with a slot {slot}", place, help)
            self.expressions.sizes[token.text] = Size(token.text.strip("`"), slot)
            if not line.takes(","):
                return

    def _fill(self, line: Line, buffer: Tensor, body: Body) -> None:
        inner = body
        while len(inner) == 1 and isinstance(inner[0], For) and inner[0].stop is inner[0].axis.size is None:
            inner = inner[0].body
        filled = len(inner) == 1 and isinstance(inner[0], Store) and inner[0].buffer is buffer
        if not filled or not isinstance(body[0], For):
            help = f"`for i in {buffer.shape[0]}:`, and in it `{buffer.name}[i] = ...`"
            raise replaced(line).error(f"`{buffer.name}` is filled by loops around one store", help=help)
        self.prepared.append(Prepared(buffer, body[0]))

    # ---- blocks and names

    def _block(self, line: Line, close: Callable[[Body], Statement | None], condition: bool = False) -> None:
        line.end()
        self.blocks.append(_Block(line, close, condition=condition, lanes=self.blocks[-1].lanes))

    def _close(self) -> None:
        block = self.blocks.pop()
        for name, before in reversed(block.hidden):
            if before is None:
                del self.expressions.names[name]
            else:
                self.expressions.names[name] = before
        made = block.close(tuple(block.body))
        if made is not None:
            self._add(block.line, made)
        self.closed = block

    def _bind(self, line: Line, token: Token, value: Axis | Local) -> None:
        if token.text in RESERVED:
            raise line.error(f"`{token.text}` is a word of the language", token)
        names = self.expressions.names
        self.blocks[-1].hidden.append((token.text, names.get(token.text)))
        names[token.text] = value

    def _add(self, line: Line, statement: Statement) -> None:
        self.blocks[-1].body.append(statement)
        self.places[statement] = line

    def _apart(self, line: Line) -> None:
        token = line.take()
        if token.text != str(len(self.expressions.apart)):
            raise line.error(f"expected `${len(self.expressions.apart)}`, found `${token.text}`", token)
        line.expect("=")
        self.expressions.apart.append(self.expressions.read(line))
        line.end()

    # ---- statements

    def _statement(self, line: Line) -> None:
        first = line.word("a statement")
        after = line.next.text
        match first.text:
            case _ if after == "[":
                buffer, address = self._place(line, first)
                line.expect("=")
                self._add(line, Store(buffer, address, self.expressions.read(line, buffer.dtype)))
            case _ if after == ":" and first.text != "else":
                line.take()
                local = Local(first.text, self._dtype(line))
                line.expect("=")
                value = self.expressions.read(line, local.dtype)
                self._bind(line, first, local)
                self._add(line, Define(local, value))
            case "for":
                self._loop(line, lambda loop, grain: self._add(line, loop))
                return
            case "if":
                condition = self.expressions.read(line, "bool")
                line.expect(":")
                self._block(line, lambda body: IfThenElse(condition, body), condition=True)
                return
            case "else":
                line.expect(":")
                self._otherwise(line)
                return
            case "prefetch":
                token = line.word("a buffer")
                near = token.text == "near" and line.next.text != "["
                token = line.word("a buffer") if near else token
                self._add(line, Prefetch(*self._place(line, token), near))
            case _:
                self._accumulate(line, first)
        line.end()

    def _place(self, line: Line, token: Token) -> tuple[Tensor, ScalarExpr]:
        buffer = self.expressions.buffer(line, token)
        line.expect("[")
        address = self.expressions.read(line, INDEX)
        line.expect("]", "buffers are flat: one index")
        return buffer, address

    def _accumulate(self, line: Line, first: Token) -> None:
        sign = line.take()
        kind = sign.text
        if kind in ("max", "min"):
            line.expect("=")
        elif kind.endswith("="):
            kind = kind[:-1]
        if sign.kind == "end" or kind not in _KINDS:
            signs = ", ".join(f"`{s}`" for s in SIGNS.values())
            raise line.error(f"`{first.text}` begins no statement", first, f"a register takes {signs}")
        local = self.expressions.names.get(first.text)
        if not isinstance(local, Local):
            help = did_you_mean(first.text, self.expressions.names) or f"define it: `{first.text}: float32 = 0f`"
            raise line.error(f"there is no register `{first.text}` here", first, help)
        kind = _KINDS[kind]
        if kind in FUNCTION:
            try:
                apply(FUNCTION[kind], local, local)
            except RelayError as error:
                raise line.error(error.message, sign) from None
        self._add(line, Accumulate(local, kind, self.expressions.read(line, local.dtype)))

    def _otherwise(self, line: Line) -> None:
        body = self.blocks[-1].body
        condition = body[-1] if body else None
        ended = self.closed is not None and self.closed.condition and self.closed.line.indent == line.indent
        if not ended or not isinstance(condition, IfThenElse):
            raise replaced(line).error("`else` of no `if`")

        def close(otherwise: Body) -> None:
            body[-1] = made = replace(condition, otherwise=otherwise)
            self.places[made] = self.places.pop(condition)

        self._block(line, close)

    def _loop(self, line: Line, close: Callable[[For, int], None], parallel: bool = False) -> None:
        name = line.word("the name of a loop")
        line.expect("in")
        axis = self._axis(line, name)
        stop, place = None, line.next
        if line.takes("to"):
            stop = self.expressions.read(line, INDEX)
        grain = line.whole("a grain", 1, MOST) if parallel and line.takes("by") else 1
        kind = next((k for k in ("vectorized", "unrolled", "matrix", "outlined") if line.takes(k)), "serial")
        times, unroll = line.next.text, 1
        if kind == "vectorized" and times[:1] == "x" and times[1:].isdecimal() and int(times[1:10]):
            unroll = int(line.take().text[1:10])
        line.expect(":", "a loop is `for i in 8:`, `for i in 8 to n:`, `... unrolled:`, `... vectorized x4:`")
        if stop is not None and (kind != "serial" or parallel):
            raise line.error("only a serial loop can end before all its turns", place)
        if axis.size is not None and kind == "unrolled":
            raise line.error("a loop whose length is a size cannot be unrolled", name)
        lanes = self.blocks[-1].lanes
        if lanes and kind == "vectorized":
            raise line.error(f"`{name.text}` and `{lanes}` cannot both be lanes", name)
        self._block(line, lambda body: close(For(axis, kind, body, unroll, stop), grain))
        self.blocks[-1].lanes = name.text if kind == "vectorized" else lanes
        self._bind(line, name, axis)

    def _axis(self, line: Line, name: Token) -> Axis:
        place = line.next
        length = self.expressions.read(line, INDEX)
        if isinstance(length, Const):
            if not 0 <= length.value < MOST:
                raise line.error(f"a loop has 0 to {MOST - 1} turns, not {length.value}", place)
            return Axis(name.text, int(length.value))
        extent = _most(length)
        if line.takes("below") and extent >= 0:
            extent = line.whole("an extent", 0, MOST)
        if not 0 <= extent <= MOST:
            help = "a computed end is written `for i in 8 to END:`, where 8 are the most turns"
            raise line.error(f"the length of `{name.text}` is a number or made of sizes", place, help)
        return Axis(name.text, extent, size=length)

    # ---- the whole

    def _check_whole(self, program: LoopProgram) -> None:
        line = self.items
        if line is None:
            return
        line.expect("items")
        line.expect("=")
        place, given = line.next, show(self.expressions.read(line))
        line.end()
        items = program.items
        wanted = str(items) if isinstance(items, int) else show(items)
        if given != wanted:
            raise line.error(f"the loops make {wanted} items", place, f"`items={wanted}`, or leave it out")


def _most(length: ScalarExpr) -> int:
    """What an expression of sizes is for the largest of them; -1 of any other."""
    extent = -1
    if any(isinstance(n, Size) for n in post_order(length)):
        with suppress(RelayError, ArithmeticError):
            extent = extent_of(length)
    return extent
