"""The public functions that print: programs, and anything that is part of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaylab.ir.adt import Clause, Pattern
from relaylab.ir.attrs import DictAttrs
from relaylab.ir.dims import SizeVar
from relaylab.ir.expr import Constant, Expr, TupleWrapper
from relaylab.ir.module import IRModule
from relaylab.ir.types import Type, TypeData
from relaylab.support.trampoline import Task, run
from relaylab.text.reading.definitions import VERSION
from relaylab.text.reading.metadata import SIZE_VAR, Storable
from relaylab.text.writing.attribute_text import dict_attributes
from relaylab.text.writing.doc import NL, Doc, Range, TextLayout, braces, joined
from relaylab.text.writing.naming import global_text
from relaylab.text.writing.nodes import clause, pattern
from relaylab.text.writing.printer import Annotate, Printer

_OMITTED = "/* The metadata is not shown: `astext()` prints it, and only with it the text can be read back. */\n"


def text(
    node: object, header: bool = False, meta: bool = False, annotate: Annotate | None = None, spans: bool = False
) -> str:
    """The text of a module, an expression, a type or any other part of a program.

    `header` adds the version line, `meta` the section with large constants; only with both the
    text can be read back. `annotate(expr)` gives the comment behind each expression instead of
    the type; `spans` adds to the comments where expressions come from.
    """
    printer = Printer(meta, annotate, spans)
    body = TextLayout(document(printer, node)).text
    if not header:
        return body
    attrs = _module_attrs(printer, node)
    return f'#[version = "{VERSION}"]\n{attrs}{body}{_section(printer, node, meta)}'


def print_with_map(
    node: object, annotate: Annotate | None = None, name: Callable[[Constant], str] | None = None
) -> tuple[str, list[Range]]:
    """The text of a program, and which characters belong to which node.

    `name` says what constants are called that stand in the section of meta data.
    A range `(start, end, node)` covers the definition of a node (`%0 = add(%x, %y)`, without the
    comment), the name of a variable, or one use (`%0`). Ranges nest; outer ones come first.
    """
    layout = TextLayout(document(Printer(annotate=annotate), node), name)
    return layout.text, layout.ranges


def text_to_edit(mod: IRModule, known: Mapping[str, Sequence[Storable]]) -> tuple[str, dict[str, list[Storable]]]:
    """The text of a module without comments, and what its `meta[…]` stand for: `parse` takes both.

    What is `known` of an earlier text keeps its number.
    """
    printer = Printer(annotate=lambda node: "")
    for key, entries in known.items():
        for entry in entries:
            if isinstance(entry, SizeVar):
                printer.meta.sizes.name(entry)
            else:
                printer.meta.reference(key, entry)
    text = TextLayout(document(printer, mod)).text
    if printer.meta.sizes.known:
        printer.meta.entries[SIZE_VAR] = [*printer.meta.sizes.known]
    return text, printer.meta.entries


def document(p: Printer, node: object) -> Doc:
    """The document of anything that is part of a program."""
    match node:
        case IRModule():
            return _module(p, node)
        case Expr():
            return run(_expression(p, node))
        case TupleWrapper():
            return run(_expression(p, node.astuple()))
        case TypeData():
            return _type_data(p, node)
        case Type():
            return p.types.text(node)
        case Clause():
            p.start(node.rhs)
            return run(clause(p, node))
        case Pattern():
            return pattern(p, node)
        case DictAttrs():
            return ", ".join(dict_attributes(node, p.meta))
        case _:
            return repr(node)


def _section(p: Printer, node: object, meta: bool) -> str:
    """What follows the program: its meta data, or the remark that it has some."""
    if not p.meta.entries and not meta:
        return ""
    section = p.meta.section()
    gap = "\n" if isinstance(node, IRModule) else "\n\n"
    return gap + (section if meta else _OMITTED) if section else ""


def _module_attrs(p: Printer, node: object) -> str:
    if not isinstance(node, IRModule) or not node.attrs:
        return ""
    return f"#[attrs = {{{', '.join(dict_attributes(node.attrs, p.meta))}}}]\n"


def _expression(p: Printer, expr: Expr) -> Task[Doc]:
    p.start(expr)
    return (yield p.scope(expr))


def _module(p: Printer, mod: IRModule) -> Doc:
    """Types, then functions, each sorted by name."""
    p.types.reserve(header.name_hint for header in mod.type_definitions)
    parts = [_type_data(p, mod.type_definitions[h]) for h in sorted(mod.type_definitions, key=lambda h: h.name_hint)]
    for var in sorted(mod.functions, key=lambda v: v.name_hint):
        func = mod.functions[var]
        p.start(func, mod)
        head: Doc = ["def ", (var, global_text(var.name_hint))]
        parts.append((func, run(p.function(func, head))))
    return [*joined(parts, [NL, NL]), NL] if parts else []


def _type_data(p: Printer, data: TypeData) -> Doc:
    """`type List[A] { Cons(A, List[A]), Nil, }` on lines of their own."""
    declared = p.types.declare(data.type_vars)
    head = f"{data.header.name_hint}{p.types.params(data.type_vars)}"
    lines: list[Doc] = []
    for ctor in data.constructors:
        inputs = f"({', '.join(map(p.types.text, ctor.inputs))})" if ctor.inputs else ""
        lines.append(f"{ctor.name_hint}{inputs},")
    p.types.forget(declared)
    return [f"type {head} ", braces(joined(lines, NL))] if lines else f"extern type {head}"
