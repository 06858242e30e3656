"""Programs and parts of them as JSON, in the form of TVM's `save_json`: nodes that refer to each other by number.

    {"root": 3, "nodes": [{"type_key": ""}, {"type_key": "relay.Id", "attrs": {"name_hint": "x"}}, …],
     "b64ndarrays": […], "attrs": {"tvm_version": "0.10.0", "relaylab": "1"}}

Node 0 is None. Attributes of operators are written as their classes here declare them, which is not how TVM's C++ does:
those of TVM's own files are refused, the rest of such files is read. Loading builds nodes and runs nothing. Sharing is
kept, also where text would lose it.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from relaylab.ir import adt, dims, types
from relaylab.ir import expr as ex
from relaylab.ir.attrs import Attrs, DictAttrs, Field
from relaylab.ir.base import Expr, VirtualDevice, placed, set_type
from relaylab.ir.module import IRModule
from relaylab.ir.node import Node
from relaylab.ir.op import OPERATORS, Definition, Op
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.support.source import MergedSpan, SourceName, Span
from relaylab.text.node_json_sizes import LEAVES, SIZES, size_entry, size_of
from relaylab.text.reading.devices import DEVICE, decoded, encoded
from relaylab.text.reading.tvm_metadata import device_entry, dump, tensor

VERSION = "0.10.0"
LONGEST = 1_000_000
"""How many values a list may have with the lists in it, which may stand in several places."""
Entry = dict[str, Any]
Loaded = Any
"""A node, a number, a text, a list or a map: what was saved."""

KEYS: dict[type[Node], str] = {
    ex.Constant: "relay.Constant", ex.Var: "relay.Var", ex.Call: "relay.Call", ex.Let: "relay.Let", ex.If: "relay.If",
    ex.Tuple: "relay.Tuple", ex.TupleGetItem: "relay.TupleGetItem", ex.RefCreate: "relay.RefCreate",
    ex.RefRead: "relay.RefRead", ex.RefWrite: "relay.RefWrite", ex.Function: "relay.Function",
    ex.GlobalVar: "GlobalVar", adt.Constructor: "relay.Constructor", adt.Match: "relay.Match",
    adt.Clause: "relay.Clause", adt.PatternWildcard: "relay.PatternWildcard", adt.PatternVar: "relay.PatternVar",
    adt.PatternConstructor: "relay.PatternConstructor", adt.PatternTuple: "relay.PatternTuple",
    types.TensorType: "relay.TensorType", types.TupleType: "TupleType", types.FuncType: "FuncType",
    types.TypeVar: "TypeVar", types.GlobalTypeVar: "GlobalTypeVar", types.IncompleteType: "IncompleteType",
    types.TypeCall: "TypeCall", types.RefType: "relay.RefType", types.TypeData: "relay.TypeData",
}  # fmt: skip
KINDS = {key: kind for kind, key in KEYS.items()}
RENAMED = {"tuple_value": "tuple"}
PLAIN: dict[str, Callable[[str], object]] = {
    "name_hint": str, "dtype": str, "index": int, "tag": int, "kind": int, "complete": lambda text: text == "1",
    "name": str,
}  # fmt: skip
"""Fields that are written in place, and how they are read."""


def save_json(node: object) -> str:
    """The JSON of an expression, a type, attributes, a module, or lists and maps of them; `RelayTypeError`
    (`json.value`) for a value that has no such form.
    """
    return _Saver().text(node)


def load_json(json_str: str) -> Loaded:
    """What `save_json` wrote; `RelayValueError` for another text (`json.damaged`), and for attributes of operators that
    TVM wrote (`json.foreign`).
    """
    try:
        graph = json.loads(json_str)
        return _Loader(graph).value(int(graph["root"]))
    except RelayError:
        raise
    except (
        ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error,
    ) as error:  # fmt: skip
        why = f"{type(error).__name__}: {error}"
        raise RelayValueError(
            f"this is no JSON of a program: {why}", code="json.damaged", help="give the text that save_json returned"
        ) from None


class _Saver:
    """Numbers nodes in the order in which they are complete; no recursion, so that depth is no matter."""

    def __init__(self) -> None:
        self.nodes: list[Entry] = [{"type_key": ""}]
        self.tensors: list[str] = []
        self.number: dict[object, int] = {}
        self.kept: list[object] = []  # so that the ids of what is numbered stay theirs

    def text(self, root: object) -> str:
        self._run(root)
        graph = {
            "root": self._at(root),
            "nodes": self.nodes,
            "b64ndarrays": self.tensors,
            "attrs": {"tvm_version": VERSION, "relaylab": "1"},
        }
        return json.dumps(graph, indent=2)

    def _run(self, root: object) -> None:
        stack: list[tuple[object, bool]] = [(root, False)]
        while stack:
            value, ready = stack.pop()
            if value is None or _key(value) in self.number:
                continue
            if not ready:
                stack.append((value, True))
                stack.extend((part, False) for part in reversed(_parts(value)))
            else:
                entry = self._entry(value)
                self.number[_key(value)] = len(self.nodes)
                self.nodes.append(entry)
                self.kept.append(value)

    def _at(self, value: object) -> int:
        return 0 if value is None else self.number[_key(value)]

    def _entry(self, value: object) -> Entry:
        match value:
            case Op():
                return {"type_key": "Op", "repr_str": value.name}
            case SourceName():
                return {"type_key": "SourceName", "repr_str": value.name}
            case Span():
                places = ("line", "end_line", "column", "end_column")
                attrs = {"source_name": str(self._at(value.source_name))}
                return {"type_key": "Span", "attrs": attrs | {n: str(getattr(value, n)) for n in places}}
            case IRModule():
                return {"type_key": "IRModule", "attrs": {n: str(self._at(v)) for n, v in _module_parts(value).items()}}
            case DictAttrs():
                return {"type_key": "DictAttrs", "attrs": {"__dict__": str(self._at(_Items(value)))}}
            case _Items():
                return self._plain(dict(value.attrs.items()))
            case Attrs():
                return {"type_key": value.type_key, "attrs": {n: self._field(value, n) for n, _ in value.items()}}
            case _Id():
                return {"type_key": "relay.Id", "attrs": {"name_hint": value.var.name_hint}}
            case VirtualDevice():
                return {"type_key": DEVICE, "attrs": encoded(value)}
            case Node():
                return {"type_key": KEYS[type(value)], "attrs": self._attrs(value)}
            case _:
                return self._plain(value)

    def _attrs(self, node: Node) -> dict[str, str]:
        out: dict[str, str] = {}
        for name in names_of(type(node)):
            value = getattr(node, name)
            shown = RENAMED.get(name, name)
            if isinstance(node, ex.Constant) and name == "data":
                out[shown] = str(len(self.tensors))
                self.tensors.append(base64.b64encode(dump(node.data.numpy())).decode())
            elif name in PLAIN:
                out[shown] = str(int(value)) if isinstance(value, (bool, int)) else str(value)
            else:
                out[shown] = str(self._at(_listed(value)))
        if isinstance(node, ex.Var):
            out = {"vid": str(self._at(_Id(node))), "type_annotation": out["type_annotation"]}
        if isinstance(node, Expr):
            rest = {"virtual_device_": node.device, "span": _span(node), "_checked_type_": node.inferred}
            out |= {name: str(self._at(value)) for name, value in rest.items()}
        return out

    def _field(self, record: Attrs, name: str) -> str:
        value = record[name]
        if _in_place(record.fields[name]):
            return str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)
        return str(self._at(_listed(value)))

    def _plain(self, value: object) -> Entry:
        match value:
            case str():
                return {"type_key": "runtime.String", "repr_str": value}
            case bool() | int():
                dtype = "bool" if isinstance(value, bool) else getattr(value, "dtype", "int32")
                return {"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": str(int(value))}}
            case float():
                return {"type_key": "FloatImm", "attrs": {"dtype": "float32", "span": "0", "value": repr(value)}}
            case dims.AnyDim():
                return size_entry(value, self._at)
            case list() | tuple():
                return {"type_key": "Array", "data": [self._at(_listed(v)) for v in cast("list[object]", value)]}
            case Mapping():
                items = cast("Mapping[object, object]", value)
                if all(isinstance(k, str) for k in items):
                    keys, data = list(items), [self._at(_listed(v)) for v in items.values()]
                    return {"type_key": "Map", "keys": keys, "data": data}
                return {"type_key": "Map", "data": [self._at(_listed(part)) for item in items.items() for part in item]}
            case _:
                raise RelayTypeError(
                    f"{kind_of(value)} has no form in JSON",
                    code="json.value",
                    help="save expressions, types, attributes, modules, numbers, texts, lists and maps of them",
                )


class _Id:
    """What identifies a variable, which is a node of its own in TVM."""

    def __init__(self, var: ex.Var):
        self.var = var


class _Items:
    """What a DictAttrs holds, which is a map of its own in TVM."""

    def __init__(self, attrs: DictAttrs):
        self.attrs = attrs


def _key(value: object) -> object:
    """Under what a value is numbered: small values by what they are, all others by which object they are."""
    match value:
        case _Id():
            return "id", id(value.var)
        case _Items():
            return "items", id(value.attrs)
        case str() | bool() | int() | float():
            return type(value).__name__, repr(value), getattr(value, "dtype", "")
        case tuple():
            return "tuple", tuple(map(_key, cast("tuple[object, ...]", value)))
        case Span() | SourceName():
            return value
        case _:
            return id(value)


def _listed(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


def _span(node: Expr) -> Span | None:
    return node.span.spans[0] if isinstance(node.span, MergedSpan) else node.span


def names_of(kind: type[Node]) -> tuple[str, ...]:
    """The fields that a kind of nodes consists of."""
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    return tuple(n for n in names if n[0] != "_")


def _in_place(field: Field) -> bool:
    """Whether an attribute is written as text: numbers, texts and data types, which are always there."""
    return field.converter.name in ("int", "float", "bool", "str", "Dtype") and not field.optional


def _module_parts(mod: IRModule) -> dict[str, object]:
    return {
        "functions": mod.functions, "type_definitions": mod.type_definitions, "attrs": mod.attrs,
    }  # fmt: skip


def _parts(value: object) -> Sequence[object]:
    """What must be numbered before a value is."""
    match value:
        case dims.SizeExpr():
            return value.operation[1:]
        case Op() | _Id() | str() | bool() | int() | float() | dims.AnyDim() | SourceName():
            return ()
        case Span():
            return (value.source_name,)
        case IRModule():
            return list(_module_parts(value).values())
        case DictAttrs():
            return (_Items(value),)
        case _Items():
            return [_listed(v) for v in value.attrs.values()]
        case Attrs():
            return [_listed(v) for n, v in value.items() if not _in_place(value.fields[n])]
        case Node() if type(value) in KEYS:
            parts = [_listed(getattr(value, n)) for n in names_of(type(value)) if n not in PLAIN]
            if isinstance(value, ex.Constant):
                parts = []
            if isinstance(value, ex.Var):
                parts = [_Id(value), value.type_annotation]
            return [*parts, value.device, _span(value), value.inferred] if isinstance(value, Expr) else parts
        case list() | tuple():
            return [_listed(v) for v in cast("list[object]", value)]
        case Mapping():
            items = cast("Mapping[object, object]", value)
            keys = [] if all(isinstance(k, str) for k in items) else list(items)
            return [*keys, *map(_listed, items.values())]
        case _:
            return ()


class _Loader:
    """Builds the nodes of a graph, parts first."""

    def __init__(self, graph: Mapping[str, Any]):
        self.nodes: list[Entry] = graph["nodes"]
        self.tensors: list[str] = graph.get("b64ndarrays", [])
        self.own = "relaylab" in graph.get("attrs", {})
        self.made: dict[int, Any] = {0: None}
        self.length: dict[int, int] = {}  # of lists and maps, with those within them

    def record(self, key: str) -> Definition:
        """The class of attribute records with a type key."""
        if not self.own:
            raise RelayValueError(
                f"{key} in this JSON was written by TVM, whose form of attributes is not read",
                code="json.foreign",
                help="print the program there, `mod.astext()`, and read the text: relay.fromtext(text)",
            )
        for op in OPERATORS.values():
            if op.attrs_type_key == key:
                return op.definition
        raise RelayValueError(f"the JSON has attributes {key!r}, which no operator has", code="json.unknown-kind")

    def value(self, root: int) -> Loaded:
        stack, open_ = [(root, False)], set[int]()
        while stack:
            at, ready = stack.pop()
            if at in self.made:
                continue
            if ready:
                entry = self.nodes[at]
                if entry["type_key"] in ("Array", "Map"):
                    self.length[at] = 1 + sum(self.length.get(int(i), 1) for i in entry.get("data", ()))
                    if self.length[at] > LONGEST:
                        raise ValueError(f"node {at} is a list of lists of more than {LONGEST} values")
                self.made[at] = self._build(entry)
                open_.discard(at)
                continue
            if at in open_:
                raise ValueError(f"node {at} contains itself")
            open_.add(at)
            stack.append((at, True))
            stack.extend((part, False) for part in reversed(self._references(self.nodes[at])))
        return self.made[root]

    def _references(self, entry: Entry) -> list[int]:
        data = [int(i) for i in entry.get("data", ())]
        attrs = entry.get("attrs", {})
        if entry["type_key"] in ("IntImm", "FloatImm", *LEAVES, "relay.Id", DEVICE):
            return data
        return data + [int(attrs[n]) for n in attrs if self._is_reference(entry["type_key"], n)]

    def _is_reference(self, key: str, name: str) -> bool:
        if key.startswith("relay.attrs."):
            field = self.record(key).fields.get(name)
            return field is not None and not _in_place(field)
        places = key == "Span" and name != "source_name"
        return not (name in PLAIN or places or (key == "relay.Constant" and name == "data"))

    def _at(self, entry: Entry, name: str) -> Loaded:
        return self.made[int(entry["attrs"].get(name, 0))]

    def _build(self, entry: Entry) -> object:
        key: str = entry["type_key"]
        if key in KINDS:
            return self._node(key, entry)
        if key.startswith("relay.attrs."):
            return self._record(key, entry["attrs"])
        if key in ("Array", "Map"):
            return self._list(entry)
        attrs: dict[str, str] = entry.get("attrs", {})
        match key:
            case "runtime.String" | "SourceName" | "Op" | "StringImm":
                text = str(entry["repr_str"])
                return {"SourceName": SourceName, "Op": Op.get}.get(key, str)(text)
            case "relay.Id":
                return []  # the variable that it identifies, once there is one
            case "IntImm" | "FloatImm":
                number = float(attrs["value"]) if key == "FloatImm" else int(attrs["value"])
                return bool(number) if attrs.get("dtype") == "bool" else number
            case _ if key in SIZES:
                return size_of(key, attrs, lambda name: self._at(entry, name))
            case "Span":
                lines = (int(attrs[n]) for n in ("line", "end_line", "column", "end_column"))
                return Span(self._at(entry, "source_name"), *lines)
            case _ if key == DEVICE:
                return decoded(attrs if self.own else device_entry(attrs, cast(Any, self.nodes)))
            case "DictAttrs":
                return DictAttrs(self._at(entry, "__dict__") or {})
            case "IRModule":
                return self._module(entry)
            case _:
                raise RelayValueError(
                    f"the JSON has a node of the kind {key!r}, which is not known", code="json.unknown-kind"
                )

    def _list(self, entry: Entry) -> object:
        values = [self.made[int(i)] for i in entry.get("data", ())]
        if entry["type_key"] == "Array":
            return tuple(values)
        return dict(zip(entry["keys"], values)) if "keys" in entry else dict(zip(values[::2], values[1::2]))

    def _module(self, entry: Entry) -> IRModule:
        attrs = self._at(entry, "attrs")
        return IRModule(self._at(entry, "functions"), self._at(entry, "type_definitions"), attrs)

    def _record(self, key: str, attrs: Mapping[str, str]) -> Attrs:
        record = self.record(key)
        values: dict[str, Any] = {}
        for name, text in attrs.items():
            field = record.fields.get(name)
            if field is not None:
                values[name] = _read_plain(field, text) if _in_place(field) else self.made[int(text)]
        return record(**values)

    def _node(self, key: str, entry: Entry) -> Node:
        kind = KINDS[key]
        if kind is ex.Var:
            return self._var(entry)
        values: list[Any] = []
        for name in names_of(kind):
            shown = RENAMED.get(name, name)
            text = entry["attrs"].get(shown)
            if kind is ex.Constant:
                values.append(tensor(base64.b64decode(self.tensors[int(text)], validate=True)))
            elif name in PLAIN:
                values.append(PLAIN[name](text) if text is not None else None)
            else:
                values.append(self.made[int(text or 0)])
        return self._placed(cast(Any, kind)(*values, **self._span(kind, entry)), entry)

    def _span(self, kind: type[Node], entry: Entry) -> dict[str, Any]:
        return {"span": self._at(entry, "span")} if issubclass(kind, Expr) else {}

    def _placed(self, node: Node, entry: Entry) -> Node:
        found = self._at(entry, "_checked_type_") if isinstance(node, Expr) else None
        if isinstance(node, Expr) and found is not None:
            set_type(node, found)
        return placed(node, self._at(entry, "virtual_device_")) if isinstance(node, Expr) else node

    def _var(self, entry: Entry) -> Node:
        vid = int(entry["attrs"]["vid"])
        known: list[Node] = self.made[vid]
        if not known:
            name = self.nodes[vid]["attrs"]["name_hint"]
            var = ex.Var(name, self._at(entry, "type_annotation"), span=self._at(entry, "span"))
            known.append(self._placed(var, entry))
        return known[0]


def _read_plain(field: Field, text: str) -> object:
    match field.converter.name:
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "bool":
            return text == "1"
        case _:
            return text
