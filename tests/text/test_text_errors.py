"""What wrong texts answer: a stable code, the place, a sentence in the reader's words; never another exception."""

from __future__ import annotations

import random
import re

import pytest
from support.gen_text import module, mutated

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.support.errors import DiagnosticError
from relaylab.support.table import did_you_mean
from relaylab.text import parse_expr, read_module

pytestmark = pytest.mark.slow

V = '#[version = "0.0.5"]\n'

# code, line:column, part of the message or the help, expression
EXPRESSIONS = [
    ("parse.unexpected-end", "1:1", "expected an expression, found the end of the text", ""),
    ("parse.unbound-variable", "1:1", "%x is not bound here", "%x"),
    ("parse.unbound-variable", "1:22", "did you mean `%data`?", "fn (%data: int32) {  %dat }"),
    ("parse.unbound-graph-variable", "1:1", "%0 is not bound before this place", "%0"),
    ("parse.unbound-graph-variable", "1:5", "%1 is not bound before", "log(%1)"),
    ("parse.unknown-operator", "1:1", "did you mean `log`", "logg(1f)"),
    ("parse.unknown-operator", "1:1", "no operator or constructor named `nn.rel`", "nn.rel(1f)"),
    ("parse.unknown-operator", "1:1", "variables begin with `%`", "x_y_z"),
    ("parse.unknown-operator", "1:5", "the last expression of a body is its result", "1f; return"),
    ("parse.unbound-variable", "1:23", "a division has spaces, %data / …", "fn (%data: float32) { %data/%data }"),
    ("parse.unexpected-token", "1:8", "the `(` at 1:4 is still open", "fn (%x { %x }"),
    ("parse.unexpected-token", "1:10", "expected a variable like %x, found `x`", "let      x = 1; x"),
    ("parse.unexpected-token", "1:5", "found `@x`", "let @x = 1; ()"),
    ("parse.unexpected-token", "1:8", "expected `=` and a value", "let %x 1; %x"),
    ("parse.unexpected-token", "1:10", "expected an expression, found `;`", "let %x = ; %x"),
    ("parse.unexpected-end", "1:11", "expected `;`", "let %x = 1"),
    ("parse.unexpected-end", "1:12", "expected an expression", "let %x = 1;"),
    ("parse.unexpected-end", "1:7", "expected `;`", "%0 = 1"),
    ("parse.unexpected-token", "1:8", "every binding ends with `;`", "%0 = 1 %0"),
    ("parse.unexpected-end", "1:6", "the `(` at 1:1 is still open", "(1, 2"),
    ("parse.unexpected-token", "1:4", "expected `,` or `)`", "(1 2)"),
    ("parse.unexpected-token", "1:7", "expected `,` or `)`, found `1`", "log(1 1)"),
    ("parse.unexpected-token", "1:3", "expected the end of the text", "1 2"),
    ("parse.unexpected-token", "1:3", "expected the end of the text, found `)`", "())"),
    ("parse.float-suffix", "1:1", "write 3.0f for a float32", "3.0"),
    ("parse.float-suffix", "1:1", "write 1e5f", "1e5"),
    ("parse.bad-number", "1:1", "`1.2.3f` is not a number", "1.2.3f"),
    ("parse.bad-number", "1:1", "`12abc` is not a number", "12abc"),
    ("parse.number-width", "1:1", "there is no float8", "3f8"),
    ("parse.number-width", "1:1", "no literal of type int8", "3i8"),
    ("parse.number-range", "1:1", "99999999999999999999 does not fit into int64", "99999999999999999999"),
    ("parse.number-range", "1:5", "does not fit into int16", "log(70000i16)"),
    ("parse.number-range", "1:1", "does not fit into float16", "1e9f16"),
    ("parse.unexpected-token", "1:2", "negative of an expression is negative(…)", "-()"),
    ("parse.unexpected-token", "1:5", "expected an expression, found `*`", "1 + * 2"),
    ("parse.unexpected-end", "1:4", "expected an expression", "1 +"),
    ("parse.unexpected-token", "1:4", "expected the number of a field", "().x"),
    ("parse.bad-projection", "1:4", "`1f` is not the number of a field", "().1f"),
    ("parse.unterminated-string", "1:9", "this string has no closing quote", 'sum(1f, "axis'),
    ("parse.unterminated-comment", "1:3", "this comment is not closed", "1 /* 2"),
    ("parse.unexpected-character", "1:3", "`$$` is not part of Relay's text format", "1 $$"),
    ("parse.unexpected-character", "1:2", "carriage return", "1\r"),
    ("parse.unexpected-end", "1:14", "expected `else` and the other branch", "if (True) {1}"),
    ("parse.unexpected-token", "1:4", "expected `(` and the condition", "if True {1} else {2}"),
    ("parse.unexpected-token", "1:7", "the `(` at 1:4 is still open", "if (1 {1} else {2}"),
    ("parse.unexpected-token", "1:4", "expected `(` and the parameters", "fn {1}"),
    ("parse.unexpected-token", "1:5", "expected a parameter like %x: T", "fn (x) { 1 }"),
    ("parse.unexpected-end", "1:6", "expected `{`", "fn ()"),
    ("parse.unexpected-token", "1:10", "expected a type, found `{`", "fn () -> { 1 }"),
    ("parse.unexpected-token", "1:9", "types are written", "fn (%x: 3) { 1 }"),
    ("parse.unknown-type", "1:9", "did you mean `Tensor`?", "fn (%x: Tensr[(1), float32]) { 1 }"),
    ("parse.unknown-dtype", "1:21", "did you mean `float32`", "fn (%x: Tensor[(1), floot32]) { 1 }"),
    ("parse.unknown-dtype", "1:9", "`float33` is not a data type", "fn (%x: float33) { 1 }"),
    ("parse.unexpected-token", "1:17", "a dimension is a number that is not negative",
     "fn (%x: Tensor[(-1), float32]) { 1 }"),
    ("parse.bad-dimension", "1:17", "a dimension cannot be float32", "fn (%x: Tensor[(1f), float32]) { 1 }"),
    ("parse.unexpected-token", "1:19", "a tensor type is Tensor[(1, 3), float32]", "fn (%x: Tensor[(1)]) { 1 }"),
    ("parse.unexpected-token", "1:16", "expected `(` and the dimensions", "fn (%x: Tensor[1, float32]) { 1 }"),
    ("parse.unknown-attribute", "1:9", "did you mean `axis`", "sum(1f, axs=1)"),
    ("parse.unknown-attribute", "1:9", "log has no attribute `base`", "log(1f, base=2)"),
    ("parse.missing-attribute", "1:1", "split needs the attribute `indices_or_sections`", "split(1f)"),
    ("parse.duplicate-attribute", "1:17", "the attribute `axis` is given twice", "sum(1f, axis=1, axis=2)"),
    ("parse.attribute-kind", "1:9", "the attribute `keepdims` cannot be the text", 'sum(1f, keepdims="yes")'),
    ("parse.attribute-kind", "1:10", "`dtype` cannot be a list", 'cast(1f, dtype=["(4,8)i4,)"])'),
    ("parse.unexpected-token", "1:17", "arguments come before attributes", "sum(1f, axis=1, 2f)"),
    ("parse.unexpected-token", "1:14", "values are numbers, True, False", "sum(1f, axis=;)"),
    ("parse.unexpected-token", "1:14", "values are numbers", "sum(1f, axis=%x)"),
    ("parse.unknown-attrs-type", "1:13", "no attribute record named `relay.attrs.Nope`",
     'free_var %f;%f(1, attrs_type_key="relay.attrs.Nope")'),
    ("parse.unknown-metadata", "1:1", "print the program with its meta data", "meta[relay.attrs.ReduceAttrs][0]"),
    ("parse.unknown-constructor", "1:13", "there is no constructor named `Foo`", "match (1) { Foo => { 1 } }"),
    ("parse.unexpected-token", "1:15", "expected `=>` and the value of the clause", "match (1) { _ -> { 1 } }"),
    ("parse.unexpected-token", "1:13", "patterns are _, %x", "match (1) { 3 => { 1 } }"),
    ("parse.unexpected-token", "1:15", "expected an expression, found `)`", "ref_write(ref())"),
    ("parse.unexpected-token", "1:17", "expected `,` and the new content", "ref_write(ref(1))"),
    ("parse.too-deep", "1:110", "types may nest 100 levels deep",
     "fn (%x: " + "(" * 200 + "int32" + ",)" * 200 + ") { 1 }"),
    ("parse.too-deep", "1:116", "attribute values may nest", "sum(1f, axis=" + "[" * 200 + "]" * 200 + ")"),
    ("parse.too-deep", "1:114", "patterns may nest", "match (1) { " + "(" * 200 + "_" + ",)" * 200 + " => { 1 } }"),
    ("parse.unknown-operator", "1:1", "write `nn.relu` for `nn.ReLU`", "nn.ReLU(1f)"),
    ("parse.unknown-operator", "1:1", "write `nn.conv2d` for `Conv2d`", "Conv2d(1f, 2f)"),
    ("parse.unknown-operator", "1:1", "write `nn.batch_norm` for `nn.BatchNorm2d`", "nn.BatchNorm2d(1f)"),
    ("parse.unknown-operator", "1:1", "write `nn.relu` for `torch.relu`", "torch.relu(1f)"),
    ("parse.unknown-operator", "1:1", "write `logical_not` for `not`", "not(1f)"),
    ("parse.unknown-operator", "1:17", "write `%x`: variables begin", "fn (%x: int32) {x}"),
    ("parse.unexpected-token", "1:20", "write nn.matmul(a, b)", "fn (%x: int32) {%x @ %x}"),
    ("parse.unexpected-token", "1:20", "write mod(a, b)", "fn (%x: int32) {%x % 2}"),
    ("parse.unexpected-token", "1:4", "write power(a, b)", "2 ** 3"),
    ("parse.unexpected-token", "1:6", "write logical_and(a, b)", "True and False"),
    ("parse.unexpected-token", "1:3", "where(a, b, c)", "1 ? 2"),
    ("parse.unexpected-token", "1:1", "write logical_not(a)", "!True"),
    ("parse.unexpected-token", "1:3", "let %x = …;", "1 = 2"),
    ("parse.unexpected-token", "1:19", "take(a, 0, axis=0)", "fn (%x: int32) {%x[0]}"),
    ("parse.bad-projection", "1:17", "shape_of(%x)", "fn (%x: int32) {%x.shape}"),
    ("parse.unexpected-token", "1:4", "def @name(…)", "fn @f() {1}"),
    ("parse.unexpected-character", "1:6", "write `logical_and(a, b)`", "True && True"),
    ("parse.unexpected-character", "1:3", "write `<=`", "1 ≤ 2"),
    ("parse.unexpected-character", "1:2", "write a space", "1\u00a0"),
    ("parse.unexpected-character", "1:1", "names have the letters A to Z", "änge"),
    ("parse.unbound-variable", "1:10", "%x is not bound", "let %x = %x; %x"),
    ("parse.unbound-variable", "1:23", "%x is not bound", "let %x: int32 = (1, ( %x, 2)); %x"),
    ("parse.duplicate-variable", "1:16", "two variables named %x", "fn (%x: int32, %x: int32) { %x }"),
    ("parse.duplicate-variable", "1:22", "two variables named %a", "match ((1, 2)) {(%a, %a) => { 1 }}"),
    ("parse.duplicate-variable", "1:8", "two type parameters named A", "fn [A, A](%x: A) { %x }"),
    ("parse.unexpected-token", "1:15", "written -> float32", "fn (%x: int32): int32 { %x }"),
    ("parse.unknown-type", "1:9", "a tensor type is", "fn (%x: Tensor((1,), float32)) { %x }"),
    ("parse.unexpected-token", "1:16", "lists are written in [ ]", "sum(1f, axis=(0, 1))"),
    ("parse.unexpected-token", "1:18", "write True", "sum(1f, keepdims=true)"),
    ("parse.unexpected-token", "1:14", "write None", "sum(1f, axis=none)"),
    ("parse.unknown-operator", "1:9", "an attribute is written axis=…", "sum(1f, axis: [0])"),
    ("parse.unknown-operator", "1:1", "write True", "true"),
    ("parse.unknown-operator", "1:1", "write nanf", "NaN"),
    ("parse.unexpected-token", "1:20", "ref_write(r, a)", "fn (%r: int32) {%r := 2}"),
    ("parse.unexpected-token", "1:1", "no texts as values", '"abc"'),
    ("parse.unexpected-token", "1:8", "() for nothing", "fn () {}"),
    ("parse.version", "1:13", "this reads version 0.0.5", '#[version = "0.0.4"] 1'),
    ("parse.missing-version", "1:3", "the first line must state the version", "#[metadat] 1"),
]  # fmt: skip

MODULES = [
    ("parse.unexpected-token", "2:8", "a data type lists its constructors", V + "type A = B;"),
    ("parse.unexpected-token", "2:14", "let %f = fn", V + "def @main() {def @f() {1} }"),
    ("parse.unexpected-token", "2:1", "a function begins with `def`", V + "deff @main() { 1 }"),
    ("parse.unexpected-token", "2:1", "did you mean `type`?", V + "tpye A { B, }"),
    ("parse.unexpected-end", "1:1", "there is no program in the text", ""),
    ("parse.unexpected-token", "2:1", "a module consists of `def` and `type`", V + "func () { 1 }"),
    ("parse.unexpected-token", "2:5", "expected the name of the function, like @main", V + "def main() { 1 }"),
    ("parse.unexpected-token", "2:19", "expected `def`, `type` or the end", V + "def @main() { 1 } }"),
    ("parse.unexpected-end", "3:1", "the `{` at 2:13 is still open", V + "def @main() { 1\n"),
    ("parse.duplicate-function", "3:5", "@f is defined twice", V + "def @f() { 1 }\ndef @f() { 2 }"),
    ("parse.unknown-function", "2:15", "did you mean `main`?", V + "def @main() { @mian() }"),
    ("parse.unknown-type", "2:16", "define it: type Foo { … }", V + "def @main(%x:  Foo) { 1 }"),
    ("parse.duplicate-type", "3:6", "the data type `A` is defined twice", V + "type A { B, }\ntype A { C, }"),
    ("parse.duplicate-constructor", "3:10", "the other is of A, and text tells them by name",
     V + "type A { B, }\ntype C { B, }"),
    ("parse.constructor-arity", "3:28", "P holds 1 values, the pattern has 2",
     V + "type A { P(int32), }\ndef @f(%x: A) { match(%x) {P(_, _) => { 1 } } }"),
    ("parse.unexpected-token", "2:10", "expected the name of a constructor", V + "type A { 3 }"),
    ("parse.unexpected-token", "2:6", "expected the name of the data type", V + "type { A }"),
    ("parse.unexpected-character", "2:11", "the character U+0000 is not part", V + "def @f() {\0 1 }"),
    ("parse.unexpected-character", "2:11", "the character U+200B is not part", V + "def @f() {\u200b 1 }"),
    ("parse.bad-metadata", "3:1", "the metadata section is not JSON", V + "def @f() { 1 }\n#[metadata]\n{nope}"),
    ("parse.bad-metadata", "3:1", "not of version 1", V + 'def @f() { 1 }\n#[metadata]\n{"version": 9}'),
    ("parse.bad-metadata", "2:12", "is damaged",
     V + 'def @f() { meta[relay.Constant][0] }\n#[metadata]\n'
     '{"version": 1, "relay.Constant": [{"dtype": "float32", "shape": [2], "data": "AAAA"}]}'),
    ("parse.bad-metadata", "2:12", "is damaged",
     V + 'def @f() { meta[relay.Constant][0] }\n#[metadata]\n'
     '{"version": 1, "relay.Constant": [{"dtype": "(4,8)i4,)", "shape": [2], "data": "AAAA"}]}'),
]  # fmt: skip


def _errors(read, text: str) -> list[DiagnosticError]:
    with pytest.raises(DiagnosticError) as caught:
        read(text)
    return list(caught.value.diagnostics) or [caught.value]


def _place(error: DiagnosticError) -> str:
    return re.search(r"--> from_string:(\d+:\d+)", error.place)[1]


def _check(error: DiagnosticError, code: str, place: str, says: str) -> None:
    assert (error.code, _place(error)) == (code, place)
    assert says in str(error)


@pytest.mark.parametrize(("code", "place", "says", "text"), EXPRESSIONS)
def test_wrong_expressions(code: str, place: str, says: str, text: str) -> None:
    _check(_errors(parse_expr, text)[0], code, place, says)


@pytest.mark.parametrize(("code", "place", "says", "text"), MODULES)
def test_wrong_modules(code: str, place: str, says: str, text: str) -> None:
    _check(_errors(read_module, text)[0], code, place, says)


LOOK_ALIKES = [
    ("log（1f）", ["1:4", "1:7"], "`（` (U+FF08) only looks like `(`"),
    ("add(1f，2f)", ["1:7"], "write `,`"),
    ("fn (%x: int32) {%х}", ["1:17"], "write `%x`"),
    ("fn (%data: int32) {%dаta}", ["1:20"], "`%dаta` has the character U+0430, which only looks like `a`"),
    ("1 − 2", ["1:3"], "write `-`"),
    ("1 × ２", ["1:3", "1:5"], "write `*`"),
    ("fn (%x: int32) {％x}", ["1:17"], "write `%x`"),
    ("cast(1f, dtype=“int32”)", ["1:16"], 'write `"`'),
    ("1 ／／ comment", ["1:3"], "write `/`"),
    ("1 ★；", ["1:3", "1:4"], "`★` is not part of"),
]


@pytest.mark.parametrize(("text", "places", "says"), LOOK_ALIKES)
def test_characters_that_look_like_relay_s_are_read_so_and_are_the_only_errors(text, places, says) -> None:
    errors = _errors(parse_expr, text)
    assert says in str(errors[0])
    found = [_place(error) for error in errors if error.code == "parse.unexpected-character"]
    assert found == places
    assert len(found) == len(errors) or "；" in text


def test_the_place_is_quoted_with_carets() -> None:
    error = _errors(parse_expr, "let %x = 1f;\n  logg(%x)")[0]
    assert error.place == "  --> from_string:2:3\n   |\n 2 |   logg(%x)\n   |   ^^^^"


def test_all_errors_are_reported_together_in_the_order_of_the_text() -> None:
    text = V + (
        "def @f(%x: int32) {\n  let %a = logg(%x);\n  let %b = (%a;\n  let %c = add(%y, %b);\n  %0 = ];\n  %c\n}\n"
        "def @g() { if (1) { 2 } }\ndef @h() { 3.5 }\n"
    )
    errors = _errors(read_module, text)
    assert [(e.code, _place(e)) for e in errors] == [
        ("parse.unknown-operator", "3:12"),
        ("parse.unexpected-token", "4:15"),
        ("parse.unbound-variable", "5:16"),
        ("parse.unexpected-token", "6:8"),
        ("parse.unexpected-token", "9:25"),
        ("parse.float-suffix", "10:12"),
    ]


def test_a_failed_binding_does_not_cause_more_errors() -> None:
    assert len(_errors(parse_expr, "let %x = (1, ; %0 = [; let %y = add(%x, %0); (%x, %y, %0)")) == 2


def test_a_source_name_is_part_of_the_place() -> None:
    with pytest.raises(DiagnosticError, match=r"--> cell 3:2:4"):
        read_module(V + "def", source_name="cell 3")


@pytest.mark.filterwarnings("ignore::relaylab.text.ParseWarning")
@pytest.mark.parametrize("seed", range(60))
def test_mutated_programs_parse_or_give_a_diagnostic(seed: int) -> None:
    rng, text = random.Random(seed), module(seed, size=4)
    for _ in range(8):
        wrong = mutated(text, rng)
        try:
            assert str(read_module(wrong)) is not None
        except DiagnosticError as error:
            assert error.code.split(".")[0] in ("parse", "module", "attrs")
            assert "Traceback" not in str(error)


@pytest.mark.parametrize("seed", range(10))
def test_prefixes_of_programs_parse_or_give_a_diagnostic(seed: int) -> None:
    text, rng = module(seed, size=3), random.Random(seed)
    for _ in range(20):
        cut = text[: rng.randrange(len(text))]
        try:
            read_module(cut)
        except DiagnosticError as error:
            assert error.place


@pytest.mark.parametrize("opening", ["(", "{", "log(", "if (", "fn () {", "let %x = (", "ref(", "match (", "1 + ("])
def test_thousands_of_open_brackets_are_one_clean_error(opening: str) -> None:
    (error,) = _errors(parse_expr, opening * 20_000)
    assert error.code in ("parse.unexpected-end", "parse.unexpected-token")


def test_a_long_text_of_unknown_names_is_read_to_its_end() -> None:
    """Only for the errors that are shown is a likely name looked for."""
    text = "".join(f"let %a{k} = %q{k}; " for k in range(4_000))
    assert len(_errors(parse_expr, f"{text}1")) == 50


def test_likely_names_are_found_whatever_their_capitals() -> None:
    assert did_you_mean("nn.ReLU", ["nn.relu", "nn.prelu"]) == "did you mean `nn.relu`?"
    assert did_you_mean("foldconstnat", ["FoldConstant", "FuseOps"]) == "did you mean `FoldConstant`?"


@pytest.mark.parametrize("value", ["fn () { %f() }", "if (True) { fn () { %f() } } else { fn () { 1 } }"])
def test_functions_within_the_value_of_a_variable_may_refer_to_it(value: str) -> None:
    assert str(parse_expr(f"let %f = {value}; %f()")).count("%f") == 3
