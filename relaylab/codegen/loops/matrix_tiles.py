"""Loops marked `matrix` by tiles of bytes (AMX): 16 rows of 16 sums in a tile, held while all steps pass.

A tile of x has 16 rows of 16 words, one of weights 16 words of 16 columns; an instruction multiplies both. Eight tiles
are four of sums, two of x and two of weights. The state of the tiles is set up and given back around every product:
nothing else knows of it.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, "Programming with Intel AMX".
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylab.codegen.llvm.text import Value, literal_vector
from relaylab.codegen.loops.contexts import Ramp, VectorContext
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Axis
from relaylab.loop.matrix import ByteProduct, Side

TILE_ROWS = TILE_WORDS = 16  # rows of a tile, and words of a row
SUM_TILES, X_TILES = 4, 2
WORD_BYTES = 4
STATE_BYTES = 64


def row_tiles(rows: int) -> list[int]:
    """Rows as tiles of nearly as many each."""
    count = -(-rows // TILE_ROWS)
    return [rows // count + (k < rows % count) for k in range(count)]


def fits_tiles(product: ByteProduct) -> bool:
    """Can tiles hold all its sums, and a step's words?"""
    rows, (columns, rest) = len(row_tiles(product.rows.extent)), divmod(product.columns.extent, TILE_WORDS)
    whole = rest == 0 < min(rows, columns) and 0 < product.words.extent <= TILE_WORDS
    return whole and rows <= X_TILES and rows * columns <= SUM_TILES


def write_product(emitter: Emitter, product: ByteProduct, at: VectorContext, state: Value) -> None:
    """The instructions of a product that fits; `state` is memory for what tiles are set up by."""
    f, rows = emitter.f, row_tiles(product.rows.extent)
    columns, words = product.columns.extent // TILE_WORDS, product.words.extent
    here = dict.fromkeys((product.rows, product.columns, product.words), Ramp(0))

    def tile(name: str, number: int, side: Side, base: Value, first_row: int = 0, first_column: int = 0) -> None:
        place = f.offset(base, (first_row * side.step + first_column) * WORD_BYTES)
        f.declare(f"llvm.x86.{name}64", "void", ("i8", "ptr", "i64"))
        f.emit(f"call void @llvm.x86.{name}64(i8 {number}, {place}, i64 {side.step * WORD_BYTES})")

    def start(side: Side, env: dict[Axis, Ramp]) -> Value:
        where = emitter.lane(side.address, VectorContext({**at.env, **env}))
        assert isinstance(where, Ramp), "an address is a sum"
        return f.offset(emitter.pointers[side.buffer], where.base, WORD_BYTES)

    def every_sum(name: str) -> None:
        base = start(product.sums, here)
        for i in range(len(rows)):
            for j in range(columns):
                tile(name, i * columns + j, product.sums, base, sum(rows[:i]), j * TILE_WORDS)

    def step(env: dict[Axis, Ramp]) -> None:
        x, w = start(product.x, env), start(product.w, env)
        for i in range(len(rows)):
            tile("tileloadd", SUM_TILES + i, product.x, x, sum(rows[:i]))
        for j in range(columns):
            weights = SUM_TILES + X_TILES + j % 2
            tile("tileloadd", weights, product.w, w, 0, j * TILE_WORDS)
            for i in range(len(rows)):
                numbers = ", ".join(f"i8 {n}" for n in (i * columns + j, SUM_TILES + i, weights))
                f.declare("llvm.x86.tdpbusd", "void", ("i8",) * 3)
                f.emit(f"call void @llvm.x86.tdpbusd({numbers})")

    f.store(literal_vector("i8", _state(rows, columns, words)), state, STATE_BYTES)
    f.declare("llvm.x86.ldtilecfg", "void", ("ptr",))
    f.emit(f"call void @llvm.x86.ldtilecfg({state})")
    every_sum("tileloadd")
    _turns(emitter, product.around, here, step)
    every_sum("tilestored")
    f.declare("llvm.x86.tilerelease", "void", ())
    f.emit("call void @llvm.x86.tilerelease()")


def _turns(
    emitter: Emitter, axes: Sequence[Axis], env: dict[Axis, Ramp], body: Callable[[dict[Axis, Ramp]], None]
) -> None:
    """Loops of some axes in each other."""
    if not axes:
        return body(env)
    first, *rest = axes
    emitter.f.loop(0, first.extent, lambda i: _turns(emitter, rest, {**env, first: Ramp(i)}, body))


def _state(rows: Sequence[int], columns: int, words: int) -> list[int]:
    """The 64 bytes that say how many bytes a row of each tile has, and how many rows."""
    sums = [(count, TILE_WORDS) for count in rows for _ in range(columns)]
    shapes = [(0, 0)] * (SUM_TILES + X_TILES) + [(words, TILE_WORDS)] * 2
    shapes[: len(sums)] = sums
    shapes[SUM_TILES : SUM_TILES + len(rows)] = [(count, words) for count in rows]
    found = [0] * STATE_BYTES
    found[0] = 1  # the palette
    for number, (height, width) in enumerate(shapes):
        found[16 + 2 * number], found[48 + number] = width * WORD_BYTES, height
    return found
