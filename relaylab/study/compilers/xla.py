"""XLA's kernels, read from the text of an optimized module: `jax.jit(f).lower(...).compile().as_text()`.

A kernel is an instruction of a scheduled computation, or a fusion with all that is in it. Metadata say which operation
of JAX an instruction came from; these are aligned with what a program's operators are made of, in the order of data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relaylab.study.compilers.alignment import alike, matched
from relaylab.study.compilers.compiled import Compiled, FusedKernel, SourceProgram
from relaylab.study.compilers.hlo import FREE, Flat, HloValue, computations
from relaylab.support.errors import RelayValueError

NAME = "XLA"
FILES = "*after_optimizations.txt"
"""What XLA calls these texts in the folder of `XLA_FLAGS=--xla_dump_to=…`."""
OPCODES = {
    "mul": "multiply", "sub": "subtract", "div": "divide", "max": "maximum", "min": "minimum", "neg": "negate",
    "exp": "exponential", "pow": "power", "add_any": "add", "dot_general": "dot", "conv_general_dilated": "convolution",
    "reduce_sum": "reduce", "reduce_max": "reduce", "reduce_min": "reduce", "reduce_window_max": "reduce-window",
    "reduce_window_sum": "reduce-window", "select_n": "select", "convert_element_type": "convert",
    "broadcast_in_dim": "broadcast",
}  # fmt: skip
"""The instruction that computes an operation of JAX, where it is called differently."""
WORDS = {opcode: word for word, opcode in reversed(OPCODES.items()) if opcode not in ("reduce", "reduce-window")}
ALIASES = {"rsqrt": "sqrt", "erfc": "erf", "integer_pow": "mul", "square": "mul"}
NORM = ("sub", "add", "sqrt", "mul", "mul", "add")
MADE_OF = {
    "add": ("add",), "avg_pool2d": ("reduce_window_sum", "div"), "averagepool": ("reduce_window_sum", "div"),
    "batch_matmul": ("dot_general",), "batch_norm": NORM, "bias_add": ("add",), "clip": ("max", "min"),
    "conv1d": ("conv_general_dilated",), "conv2d": ("conv_general_dilated",), "conv3d": ("conv_general_dilated",),
    "conv2d_transpose": ("conv_general_dilated",), "dense": ("dot_general",), "divide": ("div",), "erf": ("erf",),
    "gelu": ("mul", "neg", "mul", "erf", "mul"),
    "layer_norm": ("reduce_sum", "div", "sub", "mul", "reduce_sum", "div", *NORM[1:]),
    "log_softmax": ("reduce_max", "sub", "exp", "reduce_sum", "log", "sub"), "max": ("reduce_max",),
    "max_pool2d": ("reduce_window_max",), "maximum": ("max",), "mean": ("reduce_sum", "div"), "minimum": ("min",),
    "multiply": ("mul",), "negative": ("neg",), "power": ("pow",), "reducesum": ("reduce_sum",), "relu": ("max",),
    "rsqrt": ("sqrt",), "sigmoid": ("logistic", "neg", "exp", "add", "div"),
    "silu": ("neg", "exp", "add", "div", "mul"),
    "softmax": ("reduce_max", "sub", "exp", "reduce_sum", "div"), "square": ("mul",), "subtract": ("sub",),
    "sum": ("reduce_sum",), "take": ("gather",), "where": ("select_n",),
}  # fmt: skip
"""The operations of JAX that an operator is made of; any other is one of its own name."""
ANCHORS = frozenset(("dot_general", "conv_general_dilated"))


@dataclass(frozen=True)
class TracedValue:
    """An operation of JAX as it is left: its word, and the kernels that compute it."""

    word: str
    kernels: frozenset[str]


def text_of(path: Path) -> str | None:
    """The text of a module in a file or in the folder of a dump (the largest there); None if it is none."""
    files = sorted(path.rglob(FILES), key=lambda f: f.stat().st_size) if path.is_dir() else [path]
    if not files:
        return None
    with files[-1].open(encoding="utf-8", errors="replace") as file:
        start = file.read(9)
        return start + file.read() if start == "HloModule" else None


def read(text: str, program: SourceProgram) -> Compiled:
    """The kernels of an optimized module, aligned with the operations of a program."""
    found, entry = computations(text)
    first = text.partition("\n")[0]
    if not entry or "is_scheduled=true" not in first:
        raise RelayValueError(
            f"this module of XLA is not compiled: {'it has no entry' if not entry else 'it is not scheduled'}",
            code="compilers.dump",
            help="write jax.jit(f).lower(...).compile().as_text(), or the file …after_optimizations.txt of a dump",
        )
    flat = Flat(found, entry)
    traced = _traced(flat.values, flat.ordered())
    owners = [(o.name, word) for o in program.operations for word in MADE_OF.get(alike(o.kind), (alike(o.kind),))]
    pairs = matched([t.word for t in traced], [word for _, word in owners], ANCHORS)
    members: dict[str, set[str]] = {kernel: set() for kernel in flat.kernels}
    for a, b in pairs:
        for kernel in traced[a].kernels:
            members[kernel].add(owners[b][0])
    order = [o.name for o in program.operations]
    kernels = tuple(FusedKernel(k, tuple(n for n in order if n in inside)) for k, inside in members.items() if inside)
    if not kernels:
        raise RelayValueError(
            "no operation of this module is one of the program's",
            code="compilers.strangers",
            help="name the program that it was made from",
        )
    lost, moving = len(traced) - len(pairs), sum(not inside for inside in members.values())
    notes = ["aligned by operators, in order"]
    notes += [f"{lost} of its operations have no counterpart"] if lost else []
    notes += [f"{moving} kernels more have none of the program's (most move data)"] if moving else []
    return Compiled(NAME, kernels, tuple(notes))


def _traced(values: Sequence[HloValue], order: Sequence[int]) -> list[TracedValue]:
    """Operations of JAX: an instruction each, or all connected instructions that one was taken apart into."""
    homes: dict[int, int] = {}  # a value to the first value of its operation
    found: dict[int, list[int]] = {}
    for number in order:
        value = values[number]
        if not _word(value) or not value.kernels:
            continue
        same = [homes[o] for o in value.operands if o in homes and _place(values[o]) == _place(value)]
        first = same[0] if same and value.instruction.place else number
        for other in {*same[1:]} - {first} if first != number else ():
            found[first] += found.pop(other, [])
            homes.update(dict.fromkeys(found[first], first))
        homes[number] = first
        found.setdefault(first, []).append(number)
    traced: list[tuple[int, TracedValue]] = []
    rank = {number: k for k, number in enumerate(order)}
    for inside in found.values():
        own = [n for n in inside if _natural(values[n])]
        for part in [[n] for n in own] or [inside]:
            kernels = frozenset(k for n in part for k in values[n].kernels)
            traced.append((rank[part[-1]], TracedValue(_word(values[part[0]]), kernels)))
    return [operation for _, operation in sorted(traced, key=lambda t: t[0])]


def _place(value: HloValue) -> str:
    return value.instruction.place


def _natural(value: HloValue) -> bool:
    """Whether this is the instruction that the operation is called after."""
    word = _last(value)
    return value.instruction.opcode == OPCODES.get(word, word.replace("_", "-"))


def _last(value: HloValue) -> str:
    origin = value.instruction.origin.partition(";")[0]
    opcode = value.instruction.opcode
    return origin.rpartition("/")[2] if "/" in origin else WORDS.get(opcode, opcode.replace("-", "_"))


def _word(value: HloValue) -> str:
    """The operation of JAX that a value belongs to; none for what moves data on the way."""
    opcode, word = value.instruction.opcode, _last(value)
    if opcode in FREE or opcode in ("broadcast", "copy", "convert") or (opcode == "transpose" and word != "transpose"):
        return ""
    return ALIASES.get(word, word)
