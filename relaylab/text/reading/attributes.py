"""Attributes as text writes them: `axis=-1, layout="NCHW", strides=[2, 2]`."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.ir.attrs import REQUIRED, Attrs, DictAttrs, Field
from relaylab.ir.base import VirtualDevice
from relaylab.ir.expr import Expr
from relaylab.ir.names import KEYWORDS
from relaylab.ir.op import OPERATORS, Definition, Op
from relaylab.ir.types import AnyDim
from relaylab.support.errors import RelayError, kind_of
from relaylab.text.reading.devices import DEVICE, device_from
from relaylab.text.reading.metadata import CONSTANT, slot_of
from relaylab.text.reading.sizes import at_size, size
from relaylab.text.reading.state import State
from relaylab.text.scalars import BadNumber, parse_number, quote, special_number, unquote, whole

Written = dict[str, tuple[object, int]]
"""Attributes as they stand in the text: name to value and the token of the name."""
TYPE_KEY = "attrs_type_key"
_NULL = ("None", "nullptr")
_UNSIGNED = range(1 << 63, 1 << 64)


def at_attribute(p: State) -> bool:
    """Whether `name =` comes next."""
    i, kinds = p.i, p.kinds
    if kinds[i] == "string":
        return kinds[i + 1] == "="
    if kinds[i] != "name":
        return False
    while kinds[i + 1] == "." and _is_word(p, i + 2):
        i += 2
    return kinds[i + 1] == "="


def _is_word(p: State, i: int) -> bool:
    return p.kinds[i] in ("name", "bool") or p.kinds[i] in KEYWORDS


def attribute(p: State, into: Written, depth: int = 0) -> None:
    """One `name=value`."""
    token = p.i
    name = _name(p)
    p.expect("=", "`=` and a value")
    if name in into:
        message = f"the attribute `{name}` is given twice"
        p.report("parse.duplicate-attribute", message, p.span(token), "keep one of them")
    into[name] = (value_(p, depth), token)


def _name(p: State) -> str:
    if p.at("string"):
        p.i += 1
        return unquote(p.texts[p.i - 1])
    words = [p.texts[p.expect("name", "the name of an attribute")]]
    while p.at(".") and _is_word(p, p.i + 1):
        words.append(p.texts[p.i + 1])
        p.i += 2
    return ".".join(words)


# ---- values


_VALUES = 'values are numbers, True, False, None, "text" and lists of them in [ ]'


def value_(p: State, depth: int = 0) -> object:
    """The value of an attribute."""
    token, kind, text = p.i, p.kinds[p.i], p.texts[p.i]
    if at_size(p, known=True):
        return size(p)
    if kind in ("number", "-") or (kind == "name" and special_number(text, plain=True)):
        return number(p, attribute=True)[0]
    if kind == "name" and p.kinds[token + 1] == "(":
        return _printed(p)
    p.i += 1
    match kind:
        case "string":
            return unquote(text)
        case "bool":
            return text == "True"
        case "name" if text in _NULL:
            return None
        case "?":
            return AnyDim()
        case "meta":
            return _meta(p, token)
        case "global":
            return p.names.global_var(global_name(text), token, p.span(token))
        case "[" | "(" | "{":
            p.check_depth(depth, "attribute values")
            return _nested(p, token, depth)
        case _:
            p.i = token
            help = f"write {text.title()}" if text in ("true", "false", "none", "null") else _VALUES
            raise p.unexpected("the value of an attribute", help=help)


def _nested(p: State, opened: int, depth: int) -> object:
    """A list, a mapping or a value in parentheses."""
    if p.kinds[opened] == "[":
        return _list(p, opened, depth)
    if p.kinds[opened] == "{":
        return _mapping(p, opened, depth)
    value = value_(p, depth + 1)
    p.expect(")", opened=opened, help="lists are written in [ ]" if p.at(",") else "")
    return value


def _meta(p: State, token: int) -> object:
    """`meta[key][i]`; for what is not read the reference itself, for missing data None, or any device."""
    key, _ = slot_of(p.texts[token])
    if "." not in key and key != DEVICE:
        return p.texts[token]
    if key == DEVICE and not p.meta.holds(key):
        return VirtualDevice()
    return None if key == CONSTANT and not p.meta.holds(key) else p.meta.lookup(p, token)


def _printed(p: State) -> str | VirtualDevice:
    """An object that text has no syntax for, as TVM prints it: a device, or the text of another."""
    first, depth = p.i, 0
    while True:
        p.i += 1
        depth += (p.kinds[p.i] in ("(", "{", "[")) - (p.kinds[p.i] in (")", "}", "]"))
        if p.at("end"):
            raise p.unexpected("`)`", opened=first + 1)
        if depth == 0:
            p.i += 1
            text = p.text[p.starts[first] : p.starts[p.i - 1] + 1]
            return device_from(text) if p.texts[first] == DEVICE else text


def _list(p: State, opened: int, depth: int) -> tuple[object, ...]:
    found: list[object] = []
    more = not p.accept("]")
    while more:
        found.append(value_(p, depth + 1))
        more = p.more("]", opened)
    return tuple(found)


def _mapping(p: State, opened: int, depth: int) -> DictAttrs:
    written: Written = {}
    more = not p.accept("}")
    while more:
        attribute(p, written, depth + 1)
        more = p.more("}", opened)
    return DictAttrs(values_of(written))


def number(p: State, attribute: bool = False) -> tuple[int | float, str]:
    """A number with its signs, and its data type; floats of attributes are doubles, whatever their suffix."""
    first, negative = p.i, False
    while p.accept("-"):
        negative = not negative
    text = p.texts[p.i]
    special = special_number(text, negative, plain=attribute) if p.at("name") else None
    if special is None and not p.at("number"):
        raise p.unexpected("a number", help="`-` stands before a number; the negative of an expression is negative(…)")
    p.i += 1
    if special is not None:
        return special
    try:
        if attribute and not negative and len(text) > 18 and text.isdigit() and whole(text) in _UNSIGNED:
            return whole(text), "uint64"
        return parse_number(f"{text}64" if attribute and text[-1] == "f" else text, negative)
    except BadNumber as bad:
        p.report(bad.args[0], bad.args[1], p.since(first), bad.args[2])
        return 0, "int32"


def global_name(text: str) -> str:
    """`f` of `@f` and of `@"f"`."""
    return unquote(text[1:]) if text[1] == '"' else text[1:]


def values_of(written: Written) -> dict[str, object]:
    """The values alone."""
    return {name: value for name, (value, _) in written.items()}


def device_of(written: Written) -> VirtualDevice | None:
    """The device among the attributes of a function or at a variable, taken out of them; an attribute of that name
    that is none stays.
    """
    device, _ = written.get("virtual_device", (None, 0))
    if not isinstance(device, VirtualDevice):
        return None
    del written["virtual_device"]
    return device


# ---- the record of a call


def call_attrs(p: State, callee: Expr, written: Written, stored: Attrs | None, token: int) -> Attrs | DictAttrs | None:
    """The record of a call of `callee` at `token`, from what was written, with defaults filled in."""
    if stored is not None:
        return stored
    if isinstance(callee, Op):
        return _op_attrs(p, callee, written, token)
    if not written:
        return None
    key, _ = written.pop(TYPE_KEY, (None, token))
    return DictAttrs(values_of(written)) if key is None else _keyed_attrs(p, str(key), written, token)


def _op_attrs(p: State, op: Op, written: Written, token: int) -> Attrs | DictAttrs | None:
    if op.definition.takes_any:
        return DictAttrs(values_of(written)) if written else None
    if not op.definition.fields and not written:
        return None
    if not written:
        try:
            return op.facets(None)
        except RelayError:
            pass  # a required attribute is missing: said below, with the place
    return record(p, op.definition, op.name, written, token)


def _keyed_attrs(p: State, key: str, written: Written, token: int) -> Attrs | None:
    for op in OPERATORS.values():
        if op.attrs_type_key == key:
            return record(p, op.definition, key, written, token)
    p.report("parse.unknown-attrs-type", f"there is no attribute record named `{key}`", p.span(token))
    return None


def record(p: State, definition: Definition, name: str, written: Written, token: int) -> Attrs | None:
    """An attribute record; unknown, missing and ill-typed attributes are reported where they stand."""
    fields, count = definition.fields, p.error_count
    for key, (_, at) in written.items():
        if key not in fields:
            _report_unknown(p, name, fields, key, at)
    values: dict[str, object] = {}
    for key, field in fields.items():
        if key in written:
            values[key] = _fitting(p, field, *written[key])
        elif field.default is REQUIRED and written and field.optional:
            values[key] = None  # releases before it was declared do not print it
        elif field.default is REQUIRED:
            message = f"{name} needs the attribute `{key}`"
            p.report("parse.missing-attribute", message, p.span(token), f"add {key}=…, {field.words}")
    if p.error_count > count:
        return None
    try:
        return definition(**values)
    except RelayError as error:
        p.report(error.code, error.message, p.span(token), error.help)
        return None


def _report_unknown(p: State, name: str, fields: Mapping[str, Field], key: str, at: int) -> None:
    known = "it has: " + ", ".join(fields) if fields else "it takes none"
    help = p.near(key, fields) or known
    p.report("parse.unknown-attribute", f"{name} has no attribute `{key}`", p.span(at), help)


def _fitting(p: State, field: Field, value: object, at: int) -> object:
    """`value` as the field holds it: a whole number becomes a float, 0 and 1 truth values, where these are wanted."""
    try:
        return field.convert(value)
    except RelayError:
        help = f"it is {field.words}"
        message = f"the attribute `{field.name}` cannot be {_in_words(value)}"
        p.report("parse.attribute-kind", message, p.span(at), help)
        return None


def _in_words(value: object) -> str:
    match value:
        case str():
            return f"the text {quote(value)}"
        case tuple():
            return "a list"
        case None | bool() | int() | float():
            return str(value)
        case _:
            return kind_of(value)
