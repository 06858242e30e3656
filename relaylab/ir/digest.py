"""Structural hashes: one number for programs that are equal up to names.

Floats, which agree within a tolerance, are left out: equal hashes are not equality (`equal.StructuralTable`).

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

from relaylab.ir import types as ty
from relaylab.ir.adt import Constructor
from relaylab.ir.attrs import fields_label, value_label
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from relaylab.ir.free import unbound
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import children, post_order

_BY_CONTENT = frozenset((TupleGetItem, Constant, Constructor, Op, Var, GlobalVar))


def sharing_counts(kind: type, parts: Sized) -> bool:
    """Whether it makes a difference that two users of a node of these parts share it: projections, constants, the empty
    tuple and names are what they hold.
    """
    return kind not in _BY_CONTENT and (kind is not Tuple or len(parts) > 0)


def structural_hash(node: object, map_free_vars: bool = False) -> int:
    """A 64-bit number that is equal for structurally equal programs."""
    if isinstance(node, IRModule):
        parts = [f"{gv.name_hint}={structural_hash(f, map_free_vars)}" for gv, f in node.functions.items()]
        return _digest("module", *sorted(parts))
    if isinstance(node, ty.Type):
        return _digest("type", _type_label(node))
    if not isinstance(node, Expr):
        return _digest("value", value_label(node))
    if type(node) is not Function or map_free_vars:
        return _hash_of(node, map_free_vars)
    known = _hashes.get(node)
    if known is None:
        known = _hashes[node] = _hash_of(node, False)
    return known


_hashes: WeakKeyDictionary[Function, int] = WeakKeyDictionary()
"""Asked of a kernel for its name, its digest and its table."""


def _hash_of(node: Expr, map_free_vars: bool) -> int:
    order = post_order(node)
    free = set[Expr]() if map_free_vars else {*unbound(order)}
    place: dict[Expr, int] = {}
    rows: list[_Row] = []
    for n in order:
        held = id(n) if n in free else _CONTENT[type(n)](n) if type(n) in _CONTENT else None
        rows.append((type(n), held, tuple([place[c] for c in children(n)])))
        place[n] = len(place)
    return (_digest_of_rows if len(rows) <= _KERNEL else _digest_of_rows.__wrapped__)(tuple(rows))


_Row = tuple[type, Any, tuple[int, ...]]
"""A node: its kind, what it holds beside its parts, and where they stand in the order. A free variable is a number."""
_KERNEL = 100  # nodes; of what is larger there are few alike


def _data_label(n: Constant) -> str:
    from hashlib import sha256

    return f"{n.data.dtype}{n.data.shape}{sha256(n.data.numpy().tobytes()).hexdigest()}"


_CONTENT: dict[type[Expr], Callable[[Any], object]] = {
    Var: lambda n: n.type_annotation,
    GlobalVar: lambda n: f"@{n.name_hint}",
    Op: lambda n: n.name,
    Constant: _data_label,
    Constructor: lambda n: f"{n.name_hint}/{len(n.inputs)}",
    TupleGetItem: lambda n: f".{n.index}",
    Call: lambda n: f"Call {fields_label(n.attrs)}",
    Function: lambda n: (n.ret_type, fields_label(n.attrs)),
}
"""What a node holds beside its parts, equal for equal nodes: of other kinds nothing."""


@lru_cache(4096)
def _digest_of_rows(rows: tuple[_Row, ...]) -> int:
    value: list[int] = []
    numbers: list[list[int]] = []  # the visit number of a node whose sharing counts, as what uses it writes it
    count = 0
    for kind, content, parts in rows:
        if kind is Var and not isinstance(content, int):
            content = f"Var{count}:{_type_label(content)}"
        elif kind is Function:
            result, attrs = cast("tuple[ty.Type | None, str]", content)
            content = f"Function {_type_label(result)} {attrs}"
        label = kind.__name__ if content is None else content
        value.append(_digest(label, *[value[p] for p in parts], *[n for p in parts for n in numbers[p]]))
        counts = sharing_counts(kind, parts)
        numbers.append([count] if counts else [])
        count += counts or kind is Var
    return value[-1]


def _type_label(t: ty.Type | None) -> str:
    """A type's text without the names of type variables: equal types have equal labels. What is too long is left
    out.
    """
    if t is None or type(t) is ty.TensorType:
        return str(t)
    out: list[str] = []
    stack: list[ty.Type | None] = [t]
    while stack and len(out) < ty.LONGEST:
        part = stack.pop()
        parts = ty.type_parts(part) if isinstance(part, ty.Type) else ()
        if parts or isinstance(part, (ty.TypeVar, ty.IncompleteType)):
            out.append(f"{type(part).__name__}{len(parts)}")
            stack.extend(reversed(parts))
        else:
            out.append(str(part))
    return " ".join(out)


def _digest(*parts: object) -> int:
    from hashlib import blake2b  # OpenSSL behind it loads longer than this whole room

    text = "\x00".join(map(str, parts)).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little", signed=True)
