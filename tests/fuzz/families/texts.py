"""Relay texts, changed: what comes out is a program that equals its own text, or a DiagnosticError with a place."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from support.gen_text import module

from fuzz.choices import Choices
from fuzz.search import Finding, family
from relaylab import relay
from relaylab.ir import get_first_structural_mismatch
from relaylab.support.errors import DiagnosticError

TOKEN = re.compile(r'[%@]?[A-Za-z_][\w.]*|%\d+|\d[\w.]*|"(?:[^"\\\n]|\\.)*"|->|=>|\s+|.', re.DOTALL)
WORDS = """let fn def if else type match match? extern free_var ref ref_read ref_write _ True False None meta
inff nanf -nanf 0 1 -1 3i64 1f 1e300f64 1e-320f64 99999999999 9223372036854775808 0x1 1. .5 ? * + - / == %x %0 %1 @main
@f x nn.relu add nn.conv2d Tensor[(2),int32] Tensor[(?),float32] int32 float31 (int32,) fn(int32)->int32 List Cons
axis=0 a_min=nanf meta[relay.Constant][0] #[metadata] #[version="0.0.5"] /* */ // \\ é “ ( ) [ ] { } < > , ; : = ==
=> -> . .0 .1 Tensor[(n),float32]
Tensor[(2*n+m,floordiv(n,2)),float32] floordiv( floormod( n newshape=[2*n,-1]""".split()
NUMBER = re.compile(r"-?\d[\w.]*|True|False|float32|int32|%\w+")
NUMBERS = (
    "0 1 2 3i64 -1 1f 0.5f -0f 1e-30f 1e38f 1e300f64 1e-320f64 inff nanf 0.1f16 True False int64 float16 %x %0".split()
)
HEAD = '#[version = "0.0.5"]\n'
ONE = HEAD + "def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n  nn.relu(%x)\n}\n"
SIZED = (
    HEAD
    + """def @main(%x: Tensor[(n, 2 * n + m), float32], %y: Tensor[(m, floordiv(n + 1, 2)), float32]) {
  (reshape(%x, newshape=[2 * n, -1]), zeros(shape=[n, m - 1], dtype="float32"), %y)
}
"""
)
POLY = HEAD + "def @main() { let %f = fn[T](%q: T) -> T { %q }; (%f(1), %f(True)) }\n"


NESTS = [
    ("(", "1", ")"), ("[", "1", "]"), ("{", "1", "}"), ("(", "1", ",)"), ("negative(", "1", ")"), ("-", "1", ""),
    ("if (True) {", "1", "} else {1}"), ("fn() {", "1", "}"), ("let %a = ", "1", "; 1"), ("ref(", "1", ")"),
    ("fn(", "int32", ")->int32"), ("Tensor[(", "1", "),int32]"), ("floordiv(", "n", ", 2)"),
    ("/*", "", "*/"), ("1 + (", "2", ")"),
    ("{a=", "1", "}"), ("match (1) { _ => ", "1", "}"),
]  # fmt: skip


@cache
def texts() -> list[str]:
    """Valid texts, short ones first."""
    golden = Path(__file__).resolve().parents[2].joinpath("golden", "text").glob("*.relay")
    short = [text for path in sorted(golden) if len(text := path.read_text(encoding="utf-8")) < 6000]
    return sorted([ONE, POLY, SIZED, *short, *(module(seed) for seed in range(40))], key=len)


def nested(draw: Choices) -> str:
    """Something that nests deeply."""
    depth = draw.choice((3, 50, 99, 101, 250, 1200, 5000))
    a, core, b = draw.choice(NESTS)
    return a * depth + core + b * draw.choice((depth, depth, depth - 1, 0))


@family("texts", "Relay texts, changed: a program that equals its own text, or an error with a place", limit=30.0)
class Texts:
    def case(self, draw: Choices) -> str:
        text = draw.choice(texts())
        if draw.chance(0.1):
            return "".join(draw.choice(WORDS) + " " for _ in range(draw.randrange(40)))
        parts = TOKEN.findall(text)
        if draw.chance(0.4):  # other numbers, types and variables: often a program again
            places = [k for k, part in enumerate(parts) if NUMBER.fullmatch(part)]
            for k in draw.sample(places, min(len(places), draw.choice((1, 1, 2)))):
                parts[k] = draw.choice(NUMBERS)
            return "".join(parts)
        for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
            at = draw.randrange(max(len(parts), 1))
            end = at + draw.choice((1, 1, 1, 2, 5, 20))
            match draw.randrange(9):
                case 0:
                    parts[at:end] = []
                case 1:
                    parts[at:end] = [draw.choice(WORDS)]
                case 2:
                    parts.insert(at, draw.choice(WORDS))
                case 3:
                    other = TOKEN.findall(draw.choice(texts()))
                    start = draw.randrange(len(other))
                    parts[at:end] = other[start : start + draw.choice((1, 5, 40))]
                case 4:
                    parts[at:at] = parts[at:end]
                case 5:
                    parts[at:end] = parts[at:end][::-1]
                case 6:
                    whole, odd = "".join(parts), chr(draw.choice((0, 10, 34, 37, 0x7F, 0xE9, 0xD800, 0x1F600)))
                    k = draw.randrange(max(len(whole), 1))
                    parts = TOKEN.findall(whole[:k] + odd + whole[k + 1 :])
                case 7:
                    parts.insert(at, nested(draw))
                case _:
                    parts.insert(at, draw.choice(("9", "0", "1e", "%x.", "%", "a", '"')) * draw.choice((10, 400, 5000)))
        return "".join(parts)

    def run(self, text: str) -> str:
        try:
            mod = relay.parse(text)
        except DiagnosticError as error:
            if not all(
                "-->" in d.place or "in @" in d.place or "  in" in d.place for d in error.diagnostics or (error,)
            ):
                raise Finding("an error without a place", f"{text}\n{error}") from error
            return f"refused {error.code.split('.')[0]}"
        printed = mod.astext()
        try:
            again = relay.parse(printed)
        except DiagnosticError as error:
            raise Finding(f"printed what is refused: {error.code}", f"{text}\n---\n{printed}\n{error}") from error
        wrong = get_first_structural_mismatch(mod, again)
        if wrong is not None:
            raise Finding("not equal to its own text", f"{text}\n---\n{printed}\n{wrong.why}")
        return "equal"

    def test(self, text: str) -> str:
        body = f"mod = relay.parse({text!r})\n    relay.assert_structural_equal(mod, relay.parse(mod.astext()))"
        return f"from relaylab import relay\n\n\ndef test_text():\n    {body}\n"
