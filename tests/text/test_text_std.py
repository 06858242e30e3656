"""The standard library: it reads, it is typed, it computes what its comments say; files are taken in once."""

from __future__ import annotations

from pathlib import Path

import pytest

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.analysis import infer_module
from relaylab.interp import Interpreter
from relaylab.ir import IRModule, TypeData, structural_equal
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.text import Prelude, check_spans, missing_spans, parse_expr, read_module

V = '#[version = "0.0.5"]\n'
FILES = ("prelude.rly", "nat.rly", "gradient.rly", "core.rly")
FUNCTIONS = (
    "id compose flip hd tl nth length update map foldl foldr foldr1 sum concat filter zip rev "
    "map_accumr map_accuml unfoldr unfoldl tmap size iterate "
    "nat_double nat_add nat_nth nat_update nat_iterate FromGradCell MultiplyGradCell AddGradCell"
).split()


@pytest.fixture(scope="module")
def std() -> IRModule:
    mod = IRModule()
    for file in FILES:
        mod.import_from_std(file)
    return mod


def test_everything_is_there(std: IRModule) -> None:
    assert sorted(gv.name_hint for gv in std.functions) == sorted(FUNCTIONS)
    types = {h.name_hint: [c.name_hint for c in d.constructors] for h, d in std.type_definitions.items()}
    assert types == {
        "List": ["Cons", "Nil"], "Option": ["Some", "None"], "Tree": ["Rose"], "nat": ["Z", "S"],
        "GradCell": ["Raw", "One", "Zero"], "Storage": [],
    }  # fmt: skip


def test_it_is_typed_has_places_and_survives(std: IRModule) -> None:
    assert not missing_spans(std) and check_spans(std) is std
    typed = infer_module(std)
    again = infer_module(read_module(typed.astext()))
    assert structural_equal(typed, again, map_free_vars=True) and again.astext() == typed.astext()


def test_files_are_taken_in_once_and_definitions_stay(std: IRModule) -> None:
    mod = IRModule()
    mod.import_from_std("prelude.rly")
    before = dict(mod.functions)
    mod.import_from_std("prelude.rly")
    assert mod.functions == before and isinstance(mod.type_definitions[mod.get_global_type_var("List")], TypeData)


def test_files_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.rly"
    file.write_text(V + "def @mine() { 1 }")
    mod = IRModule()
    mod._import(str(file))
    mod._import(str(file))
    assert "mine" in mod and str(file) in mod.source_map
    with pytest.raises(RelayError, match="cannot read"):
        mod._import(str(tmp_path / "nothing.rly"))
    with pytest.raises(RelayError, match=r"did you mean `nat\.rly`"):
        mod.import_from_std("nut.rly")
    with pytest.raises(RelayError, match="has no file"):
        mod.import_from_std("../hooks.py")


def test_an_import_with_errors_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "wrong.rly"
    file.write_text(V + "def @wrong() { %x }")
    mod = IRModule()
    with pytest.raises(DiagnosticError, match=r"wrong\.rly:2:16"):
        mod._import(str(file))
    assert not mod.functions and not mod.imports


def test_the_prelude_by_name() -> None:
    p = Prelude()
    assert p.map is p.mod.get_global_var("map") is p.get_global_var("map")
    assert p.get_ctor("List", "Cons").name_hint == "Cons" and p.get_type("Tree").name_hint == "Tree"
    with pytest.raises(RelayError, match="did you mean `foldl`"):
        _ = p.fold_l
    with pytest.raises(RelayError, match="did you mean `Cons`"):
        p.get_ctor("List", "Con")


def test_nodes_without_span_are_shown() -> None:
    expr = parse_expr("log(1f)")
    bare = type(expr)(expr.op, [expr])
    object.__setattr__(bare, "span", None)
    with pytest.raises(DiagnosticError, match="a node has no span|no span"):
        check_spans(bare)


# ---- what the functions compute; lists and numbers as Python's

LIST = "Cons(1, Cons(2, Cons(3, Nil)))"
PLUS, MINUS = "fn (%a: int32, %b: int32) { %a + %b }", "fn (%a: int32, %b: int32) { %a - %b }"
DOWN = "fn (%n: int32) -> Option[(int32, int32)] { if (%n == 0) { None } else { Some((%n - 1, %n)) } }"
KEEP = "fn (%s: int32, %x: int32) { (%s + %x, %s * 10 + %x) }"
TREE = "Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil)))"
ONE, ZERO, RAW = "One(fn () { 1 })", "Zero(fn () { 0 })", "Raw(5)"

MEANINGS = [
    ("@id(3)", 3), ("@compose(fn (%x: int32) { %x * 2 }, fn (%x: int32) { %x + 1 })(5)", 12),
    (f"@flip({MINUS})(1, 5)", 4),
    ("@iterate(fn (%x: int32) { %x * 2 }, 5)(1)", 32), (f"@hd({LIST})", 1), (f"@tl({LIST})", [2, 3]),
    (f"@nth({LIST}, 2)", 3),
    (f"@length({LIST})", 3), ("@length(@tl(Cons(1, Nil)))", 0), (f"@update({LIST}, 1, 9)", [1, 9, 3]),
    (f"@map(fn (%x: int32) {{ %x * %x }}, {LIST})", [1, 4, 9]),
    (f"@filter(fn (%x: int32) {{ %x != 2 }}, {LIST})", [1, 3]), (f"@concat({LIST}, {LIST})", [1, 2, 3, 1, 2, 3]),
    (f"@zip({LIST}, Cons(7, Cons(8, Nil)))", [(1, 7), (2, 8)]), (f"@rev({LIST})", [3, 2, 1]),
    (f"@foldl({MINUS}, 10, {LIST})", 4),
    (f"@foldr({MINUS}, 10, {LIST})", -8), (f"@foldr1({MINUS}, {LIST})", 2), (f"@sum({LIST})", 6),
    (f"@map_accuml({KEEP}, 0, {LIST})", (6, [1, 12, 33])), (f"@map_accumr({KEEP}, 0, {LIST})", (6, [51, 32, 3])),
    (f"@unfoldr({DOWN}, 3)", [3, 2, 1]), (f"@unfoldl({DOWN}, 3)", [1, 2, 3]), (f"@size({TREE})", 4),
    (f"@size(@tmap(fn (%x: int32) {{ (%x, %x) }}, {TREE}))", 4),
    ("@nat_iterate(fn (%x: int32) { %x + 1 }, @nat_double(S(S(Z))))(0)", 4),
    ("@nat_iterate(fn (%x: int32) { %x + 1 }, @nat_add(S(Z), S(S(Z))))(0)", 3),
    (f"@nat_nth({LIST}, S(Z))", 2), (f"@nat_update({LIST}, S(S(Z)), 7)", [1, 2, 7]),
    (f"@FromGradCell(@AddGradCell({PLUS}, {RAW}, {ONE}))", 6),
    (f"@FromGradCell(@AddGradCell({PLUS}, {ZERO}, {RAW}))", 5),
    (f"@FromGradCell(@MultiplyGradCell({PLUS}, {RAW}, {ONE}))", 5),
    (f"@FromGradCell(@MultiplyGradCell({PLUS}, {RAW}, {ZERO}))", 0),
    (f"@FromGradCell(@MultiplyGradCell({PLUS}, {RAW}, {RAW}))", 10),
]  # fmt: skip


def _python(value: object) -> object:
    """Lists of the program as Python's lists, scalars as ints."""
    constructor = getattr(value, "constructor", None)
    if constructor is not None:
        return [] if constructor.name_hint == "Nil" else [_python(value.fields[0]), *_python(value.fields[1])]
    if isinstance(value, (tuple, list)):
        return tuple(map(_python, value))
    return int(value)


@pytest.mark.parametrize(("expr", "meaning"), MEANINGS)
def test_what_the_functions_compute(std: IRModule, expr: str, meaning: object) -> None:
    mod = infer_module(read_module(V + f"def @main() {{ {expr} }}", init_module=std))
    assert _python(Interpreter(mod).evaluate()()) == meaning
