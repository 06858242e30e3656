"""Attributes to text: what differs from the defaults, in the order of declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from relaylab.ir.attrs import REQUIRED, Attrs, DictAttrs, Field
from relaylab.ir.base import VirtualDevice
from relaylab.ir.converters import Value
from relaylab.ir.dims import AnyDim
from relaylab.ir.expr import Constant, Expr, GlobalVar
from relaylab.ir.names import IDENT, KEYWORDS
from relaylab.ir.op import Op
from relaylab.text.reading.attributes import TYPE_KEY
from relaylab.text.reading.metadata import CONSTANT, MetaWriter, is_storable, listed
from relaylab.text.scalars import attribute_float, quote
from relaylab.text.writing.naming import RESERVED, global_text

_NAME = re.compile(rf"{IDENT}(?:\.{IDENT})*")
_NO_FIELD = Field("", Value)


def call_attributes(attrs: Attrs | DictAttrs | None, callee: Expr, meta: MetaWriter, stored: bool) -> list[str]:
    """The attributes of a call, each as `name=value`; with `stored` they may stand in the meta data."""
    if attrs is None:
        return []
    if isinstance(attrs, DictAttrs):
        return dict_attributes(attrs, meta)
    if stored and getattr(attrs, "meta_attrs", False) and is_storable(attrs):
        return [meta.reference(attrs.type_key, attrs)]
    fields: Mapping[str, Field] = callee.definition.fields if isinstance(callee, Op) else {}
    out = [_pair(k, v, meta) for k, v in attrs.items() if not _is_default(fields.get(k, _NO_FIELD), v)]
    return out if isinstance(callee, Op) else [*out, f"{TYPE_KEY}={quote(attrs.type_key)}"]


def dict_attributes(attrs: DictAttrs | None, meta: MetaWriter) -> list[str]:
    """The attributes of a function, each as `name=value`."""
    return [] if attrs is None else [_pair(k, v, meta) for k, v in attrs.items()]


def _is_default(field: Field, value: object) -> bool:
    default = field.default
    return default is value or (default is not REQUIRED and type(default) is type(value) and default == value)


def _pair(name: str, value: object, meta: MetaWriter) -> str:
    plain = name in KEYWORDS or (_NAME.fullmatch(name) and name.partition(".")[0] not in RESERVED)
    return f"{name if plain else quote(name)}={value_text(value, meta)}"


def value_text(value: object, meta: MetaWriter) -> str:
    """An attribute value."""
    if type(value) is int:  # as most are
        return str(value)
    values = listed(value)
    if values is not None:
        return f"[{', '.join(value_text(v, meta) for v in values)}]"
    match value:
        case None | bool():
            return str(value)
        case str():
            return quote(value)
        case int():
            return str(int(value))
        case AnyDim():
            return meta.sizes.text(value)
        case float():
            return attribute_float(value)
        case DictAttrs():
            return f"{{{', '.join(dict_attributes(value, meta))}}}"
        case GlobalVar():
            return global_text(value.name_hint)
        case Constant():
            return meta.reference(CONSTANT, value)
        case VirtualDevice():
            return meta.device(value)
        case np.ndarray():
            return value_text(value.tolist(), meta)
        case _:
            return quote(repr(value))
