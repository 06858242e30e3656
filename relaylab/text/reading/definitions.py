"""Modules: version line, functions, data types."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir.adt import Constructor
from relaylab.ir.attrs import DictAttrs
from relaylab.ir.expr import Function, FunctionWithFields, GlobalVar
from relaylab.ir.free import free_type_vars, free_vars
from relaylab.ir.module import IRModule
from relaylab.ir.types import GlobalTypeVar, TypeData
from relaylab.support.errors import RelayError
from relaylab.support.source import Span
from relaylab.support.table import did_you_mean
from relaylab.support.trampoline import run
from relaylab.text.reading.attributes import Written, attribute, global_name, values_of
from relaylab.text.reading.control import function
from relaylab.text.reading.expressions import sequence
from relaylab.text.reading.holes import Holes, close
from relaylab.text.reading.reader import DEFINES, Stop
from relaylab.text.reading.state import State
from relaylab.text.reading.types import type_, type_params, types
from relaylab.text.scalars import unquote

VERSION = "0.0.5"
_HEADER = f'#[version = "{VERSION}"]'
_BARE = frozenset(("fn", "free_var", "let", "graph", "if", "match", "match?", "(", "meta"))
"""The tokens at which an expression begins that is a module alone."""


def header(p: State) -> None:
    """`#[version = "0.0.5"]`, if it is there; what `str` prints has none, and that of TVM 0.6 is `v0.0.4`."""
    if p.texts[p.i] == "v0" and p.kinds[p.i + 1] == ".":
        p.i += 3
    if not p.at("#"):
        return
    opened = _hash(p)
    if p.texts[p.expect("name")] != "version":
        raise p.stop("parse.missing-version", "the first line must state the version", p.i - 1, f"write {_HEADER}")
    p.expect("=")
    token = p.expect("string", f'the version "{VERSION}"')
    if unquote(p.texts[token]) != VERSION:
        p.report("parse.version", f"this reads version {VERSION} of the text format", p.span(token), f"write {_HEADER}")
    p.expect("]", opened=opened)


def _hash(p: State) -> int:
    p.expect("#")
    return p.expect("[")


def module(p: State, mod: IRModule) -> tuple[IRModule, dict[GlobalVar, Holes]]:
    """Read everything that the text defines into `mod`; the parameters that stand for constants without data.

    An expression alone, as printing a function gives it, is `@main`.
    """
    try:
        if p.at("end"):
            raise p.stop("parse.unexpected-end", "there is no program in the text")
        header(p)
        mod.attrs = _module_attrs(p) or mod.attrs
    except Stop:
        _skip_to_definition(p)
    starts, bare = _definitions(p), p.i
    functions: dict[GlobalVar, Function] = {}
    own: dict[GlobalVar, Holes] = {}
    for start in starts:
        if p.kinds[start] != "def":
            _one(p, start, lambda p: _type(p, mod))
    if p.kinds[bare] in _BARE:
        _one(p, bare, lambda p: _main(p, functions, own))
    for start in starts:
        if p.kinds[start] == "def":
            _one(p, start, lambda p: _function(p, functions, own))
    _check_names(p, mod, functions)
    p.raise_errors()
    holes = close(p, functions, own) if any(own.values()) else {}
    for var, func in functions.items():
        _add(p, mod, var, func)
    p.raise_errors()
    return mod, holes


def _add(p: State, mod: IRModule, var: GlobalVar, func: Function) -> None:
    try:
        mod[var] = func
    except RelayError as error:
        assert isinstance(func.span, Span)  # it was read from this text
        p.report(error.code, error.message, func.span, error.help)


def _module_attrs(p: State) -> DictAttrs | None:
    """`#[attrs = {…}]`, if it is there."""
    if not p.at("#"):
        return None
    opened = _hash(p)
    written: Written = {}
    attribute(p, written)
    p.expect("]", opened=opened)
    value = values_of(written).get("attrs")
    return value if isinstance(value, DictAttrs) else None


def _skip_to_definition(p: State) -> None:
    while p.kinds[p.i] not in DEFINES:
        p.i += 1


def _definitions(p: State) -> list[int]:
    """The tokens at which definitions begin."""
    for i in range(p.i, len(p.kinds) - 2):
        if p.texts[i] == "data" and p.kinds[i : i + 2] == ["name", "name"] and p.kinds[i + 2] in ("{", "["):
            p.kinds[i] = "type"
    starts = [i for i in range(p.i, len(p.kinds)) if p.kinds[i] in DEFINES]
    if starts[0] != p.i and p.kinds[p.i] not in _BARE:
        meant = did_you_mean(p.texts[p.i], ("def", "type"))
        if p.kinds[p.i : p.i + 2] == ["name", "global"]:
            meant = "a function begins with `def`"
        help = meant or "a module consists of `def` and `type`"
        if p.at("global") and p.kinds[p.i + 1] == "=" or p.at("@"):
            help = "this is TIR, the level below Relay: print the program before it is lowered"
        p.report("parse.unexpected-token", f"expected a definition, found {p.found()}", p.span(p.i), help)
    return [i for k, i in enumerate(starts[:-1]) if k == 0 or p.kinds[starts[k - 1]] != "extern"]


def _one(p: State, start: int, read: Callable[[State], None]) -> None:
    """Read one definition; it must end where the next begins."""
    p.i = start
    p.names.begin_definition()
    try:
        read(p)
        if p.kinds[p.i] not in DEFINES:
            raise p.unexpected("`def`, `type` or the end of the text")
    except Stop:
        return


# ---- functions


def _main(p: State, functions: dict[GlobalVar, Function], own: dict[GlobalVar, Holes]) -> None:
    """`fn (…) {…}`, or `free_var %x; %0 = …; …`, as `@main`; its free variables are parameters."""
    var, first = p.names.define_global("main", p.span(p.i)), p.i
    expr = run(sequence(p, "end"))
    f = expr if isinstance(expr, Function) else Function((), expr, None, free_type_vars(expr), span=p.since(first))
    own[var], p.holes = p.holes, {}
    free = (v for v in free_vars(f) if v not in own[var].values())
    functions[var] = FunctionWithFields(f, params=(*f.params, *free))


def _function(p: State, functions: dict[GlobalVar, Function], own: dict[GlobalVar, Holes]) -> None:
    """`def @f…`"""
    first = p.expect("def")
    token = p.expect("global", "the name of the function, like @main")
    name = global_name(p.texts[token])
    var = p.names.define_global(name, p.span(token))
    if var in functions:
        help = "give one of them another name"
        p.report("parse.duplicate-function", f"@{name} is defined twice", p.span(token), help)
    functions[var] = run(function(p, first))
    own[var], p.holes = p.holes, {}


# ---- data types


def _type(p: State, mod: IRModule) -> None:
    """`type List[A] { … }` or `extern type Storage`."""
    p.accept("extern")
    first = p.expect("type")
    token = p.expect("name", "the name of the data type")
    name = p.texts[token]
    head = p.names.global_types.setdefault(name, GlobalTypeVar(name))
    if head in mod.type_definitions:
        p.report("parse.duplicate-type", f"the data type `{name}` is defined twice", p.span(token))
    params = type_params(p)
    if p.at("="):
        raise p.unexpected(
            "`{` and constructors", help=f"a data type lists its constructors: type {name} {{ A, B(int32), }}"
        )
    old = p.texts[first] == "data"
    found = _constructors(p, head, old)
    try:
        mod[head] = TypeData(head, params, found)
    except RelayError as error:
        p.report(error.code, error.message, p.span(token), error.help)
    if old:
        inside = ", ".join(c.name_hint + f"({', '.join(map(str, c.inputs))})" * bool(c.inputs) for c in found)
        written = f"type {name}{'[' + ', '.join(map(str, params)) + ']' if params else ''} {{ {inside} }}"
        p.report("parse.documentation", "`data` is not part of the text format", p.span(first), f"write `{written}`")


def _constructors(p: State, head: GlobalTypeVar, old: bool) -> list[Constructor]:
    found: list[Constructor] = []
    opened = p.i
    more = p.accept("{") and not p.accept("}")
    while more:
        found.append(_constructor(p, head, old))
        more = not p.accept("}") if old and p.at_new_line() else p.more("}", opened)
    return found


def _constructor(p: State, head: GlobalTypeVar, old: bool) -> Constructor:
    """`Cons(A, List[A])`; `old` documentation has it as `Cons : (A, List[A]) -> List`."""
    token = p.expect("name", "the name of a constructor")
    name = p.texts[token]
    typed = old and p.accept(":")
    opened = p.i
    inputs = types(p, ")", opened) if p.accept("(") else []
    if typed and p.accept("->"):
        type_(p)
    if name in p.names.constructors:
        text, other = f"there are two constructors named `{name}`", p.names.constructors[name].belong_to
        help = f"the other is of {other}, and text tells them by name alone: rename one, or keep the program as JSON"
        p.report("parse.duplicate-constructor", text, p.span(token), help)
    return p.names.constructors.setdefault(name, Constructor(name, inputs, head))


def _check_names(p: State, mod: IRModule, functions: dict[GlobalVar, Function]) -> None:
    """Report the functions and data types that are used and defined nowhere."""
    known = {gv.name_hint for gv in (*mod.functions, *functions)}
    for name, token in p.names.used_globals.items():
        if name not in known:
            help = p.near(name, known) or "define it: def @" + name + "(…) { … }"
            p.report("parse.unknown-function", f"there is no function named @{name}", p.span(token), help)
    headers = {header.name_hint for header in mod.type_definitions}
    for name, token in p.names.used_types.items():
        if name not in headers:
            help = p.near(name, headers) or f"define it: type {name} {{ … }}"
            p.report("parse.unknown-type", f"there is no data type named `{name}`", p.span(token), help)
