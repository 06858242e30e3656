"""Facts about single nodes of a program as text: titles, types, attributes, previews, patterns."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from relaylab import ir
from relaylab.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, pattern_parts
from relaylab.support.source import shown
from relaylab.viz.graph.view import Attr, Operand

_FAMILIES = {0: "elementwise", 1: "broadcast", 2: "injective", 3: "reduce", 4: "fusable"}
_KINDS: dict[type, tuple[str, str]] = {
    ir.Var: ("var", "input"),
    ir.Constant: ("constant", "value"),
    ir.Tuple: ("tuple", "value"),
    ir.TupleGetItem: ("projection", "value"),
    ir.If: ("if", "control"),
    Match: ("match", "control"),
    ir.Let: ("let", "value"),
    ir.Function: ("function", "function"),
    ir.RefCreate: ("reference", "reference"),
    ir.RefRead: ("reference", "reference"),
    ir.RefWrite: ("reference", "reference"),
    ir.GlobalVar: ("global", "value"),
    ir.Op: ("operator", "value"),
    Constructor: ("constructor", "value"),
}
MOST_READ = 1 << 18
"""Elements of a constant up to which its smallest, mean and largest value are said."""
_DETAILS: WeakKeyDictionary[ir.Constant, str] = WeakKeyDictionary()
COMMUTATIVE = frozenset(
    "add multiply maximum minimum equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or".split()
)


def kind_family(expr: ir.Expr) -> tuple[str, str]:
    """The kind of a node and its colour class; calls of operators are coloured by their fusion pattern."""
    if isinstance(expr, ir.Call):
        return "call", _FAMILIES.get(int(expr.op.pattern), "opaque") if isinstance(expr.op, ir.Op) else "call"
    return _KINDS.get(type(expr), ("expression", "value"))


def title(expr: ir.Expr) -> str:
    """The one line by which people know the node."""
    match expr:
        case ir.Call():
            return _call_title(expr.op)
        case ir.Var():
            return f"%{expr.name_hint}"
        case ir.GlobalVar():
            return f"@{expr.name_hint}"
        case Constructor():
            return expr.name_hint
        case ir.Op():
            return expr.name
        case ir.Constant():
            return constant_text(expr)
        case ir.TupleGetItem():
            return f".{expr.index}"
        case ir.Tuple():
            return "tuple" if expr.fields else "()"
        case ir.Function():
            return function_title(expr)
        case Match():
            return "match" if expr.complete else "match?"
        case ir.Let():
            return f"let %{expr.var.name_hint}"
    names = {ir.If: "if", ir.RefCreate: "ref", ir.RefRead: "ref_read", ir.RefWrite: "ref_write"}
    return names.get(type(expr), type(expr).__name__)


def _call_title(op: ir.Expr) -> str:
    if isinstance(op, (ir.Op, ir.GlobalVar, Constructor)):
        return title(op)
    return f"call %{op.name_hint}" if isinstance(op, ir.Var) else "call"


def function_title(func: ir.Function) -> str:
    """`fn (%x, %y)`, or the composite or kernel name that the function carries."""
    for name in ("Composite", "global_symbol"):
        if func.attr(name):
            return str(func.attr(name))
    names = [f"%{p.name_hint}" for p in func.params]
    shown = ", ".join(names if len(names) <= 4 else [*names[:3], f"… {len(names) - 3} more"])
    return f"fn ({shown})"


def place_of(expr: ir.Expr) -> str:
    """Where a node was written, without the folders of whoever wrote it: pictures and pages are sent to others."""
    return shown(expr.span)


def type_of(expr: ir.Expr) -> str:
    """The type as Relay text; empty while it is not known."""
    known = expr.inferred
    if known is None and isinstance(expr, ir.Var):
        known = expr.type_annotation
    if known is None and isinstance(expr, ir.Constant):
        known = expr.type
    return ir.type_text(known) if known is not None else ""


def attrs_of(expr: ir.Expr) -> tuple[Attr, ...]:
    """The attributes of a call or a function, with those that are just the default marked."""
    attrs = getattr(expr, "attrs", None)
    if attrs is None:
        return ()
    defaults: Mapping = getattr(attrs, "fields", {}) if isinstance(expr, ir.Call) else {}
    told = ((k, v, value_text(v)) for k, v in attrs.items())
    return tuple(Attr(k, text, k in defaults and _same(defaults[k].default, v, text)) for k, v, text in told)


def _same(default: object, value: object, text: str) -> bool:
    return default is value or value_text(default) == text


def value_text(value: object) -> str:
    """An attribute's value as the text format writes it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(value_text, value))})"
    return str(value)


def constant_text(constant: ir.Constant) -> str:
    """A scalar's value; the word "constant" for a tensor (its type stands beside it)."""
    data = constant.data
    if data.ndim:
        return "constant"
    value = data.item()
    return f"{value:g}" if isinstance(value, float) else str(value)


def constant_detail(constant: ir.Constant) -> str:
    """Smallest, mean and largest value of a tensor, and its first ones; read once, however many stages have it."""
    if (known := _DETAILS.get(constant)) is None:
        known = _DETAILS[constant] = _detail(constant.data.numpy())
    return known


def _detail(data: np.ndarray) -> str:
    if data.ndim == 0 or data.size == 0:
        return ""
    first = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in data.flat[:4].tolist())
    more = ", …" if data.size > 4 else ""
    if data.dtype.name == "bool" or data.size > MOST_READ:
        return f"[{first}{more}]"
    data = data if data.dtype.kind in "fiu" else data.astype("float32")  # a bfloat16
    with np.errstate(invalid="ignore", over="ignore"):  # of both infinities there is no mean
        return f"min {data.min():g}, mean {data.mean(dtype=np.float64):g}, max {data.max():g}; [{first}{more}]"


def operand_row(position: int, name: str, atom: ir.Expr, called: str) -> Operand:
    """A variable, constant or name folded into its user; `called` is how people know it."""
    kind, _ = kind_family(atom)
    detail = ""
    if isinstance(atom, ir.Constant):
        kind, detail = ("scalar" if not atom.data.ndim else kind), constant_detail(atom)
    return Operand(position, name, kind, called, type_of(atom), detail)


def operand_names(call: ir.Call, callee: ir.Expr) -> list[str]:
    """What the arguments of a call are called: by the operator, or by the parameters of the `callee` it resolves to."""
    if isinstance(callee, ir.Op):
        names = list(callee.arguments)
    else:
        names = [p.name_hint for p in callee.params] if isinstance(callee, ir.Function) else []
    return (names + [""] * len(call.args))[: len(call.args)]


def pattern_text(pattern: Pattern) -> str:
    """A pattern as the text format writes it."""
    text: dict[int, str] = {}
    stack: list[tuple[Pattern, bool]] = [(pattern, False)]
    while stack:
        at, done = stack.pop()
        if done:
            text[id(at)] = _pattern_line(at, [text[id(p)] for p in pattern_parts(at)])
        else:
            stack.append((at, True))
            stack.extend((p, False) for p in pattern_parts(at))
    return text[id(pattern)]


def _pattern_line(pattern: Pattern, parts: list[str]) -> str:
    if isinstance(pattern, PatternConstructor):
        return pattern.constructor.name_hint + (f"({', '.join(parts)})" if parts else "")
    if isinstance(pattern, PatternTuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"%{pattern.var.name_hint}" if isinstance(pattern, PatternVar) else "_"


def kernel_title(func: ir.Function, most: int = 4) -> str:
    """What a fused function is called: its own name, else its operators in order."""
    for name in ("Composite", "global_symbol"):
        if func.attr(name):
            return str(func.attr(name))
    ops = [ir.op_name(e) for e in ir.post_order(func.body) if ir.op_name(e)]
    more = f" + {len(ops) - most} more" if len(ops) > most else ""
    return " + ".join(ops[:most]) + more or function_title(func)


def signature(func: ir.Function, most: int = 3) -> str:
    """The parameters of a function in short: the first ones and how many more."""
    names = ", ".join(f"%{p.name_hint}" for p in func.params[:most])
    more = len(func.params) - most
    return f"({names}{f', and {more} more' if more > 0 else ''})"
