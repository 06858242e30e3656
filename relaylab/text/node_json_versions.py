"""JSON of programs that older versions of TVM saved, brought to the form of 0.9 and later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from relaylab.support.errors import RelayValueError
from relaylab.support.schema import read_json

__all__ = [
    "create_updater", "create_updater_06_to_07", "create_updater_07_to_08", "create_updater_08_to_09", "upgrade_json",
]  # fmt: skip
Item = dict[str, Any]
Change = Callable[[Item, list[Item]], Item]
Updater = Callable[[Item], Item]

NAMES_06 = {
    "StrMap": "Map", "Variable": "tir.Var", "SizeVar": "tir.SizeVar", "relay.Any": "tir.Any", "relay.Id": "relay.Id",
    "relay.Module": "IRModule", "relay.Op": "Op", "relay.SourceName": "SourceName", "relay.Span": "Span",
    "relay.GlobalVar": "GlobalVar", "relay.GlobalTypeVar": "GlobalTypeVar", "relay.TypeVar": "TypeVar",
    "relay.TupleType": "TupleType", "relay.FuncType": "FuncType", "relay.TypeCall": "TypeCall",
    "relay.IncompleteType": "IncompleteType", "relay.TypeRelation": "TypeRelation",
    "relay.TypeConstraint": "TypeConstraint", "relay.PassContext": "transform.PassContext",
}  # fmt: skip
"""Kinds of nodes that got another name after 0.6."""
WITH_DEVICE = (
    "GlobalVar", "relay.Var", "relay.Function", "relay.Tuple", "relay.Call", "relay.Let", "relay.If",
    "relay.TupleGetItem", "relay.RefCreate", "relay.RefRead", "relay.RefWrite", "relay.Match", "relay.Constant",
)  # fmt: skip
"""Expressions, which have a device since 0.9."""


def create_updater(node_map: Mapping[str, Change | list[Change]], from_ver: str, to_ver: str) -> Updater:
    """A function that brings the JSON of one version to the next: what `node_map` says for a kind of node is applied
    to each such node, `change(item, nodes)`. RelayValueError (`json.version`) for JSON of another version.
    """

    def update(data: Item) -> Item:
        version = str(data["attrs"]["tvm_version"])
        if not version.startswith(from_ver):
            raise RelayValueError(f"this is JSON of TVM {version}, not {from_ver}", code="json.version")
        nodes: list[Item] = data["nodes"]
        for at, item in enumerate(nodes):
            given = node_map.get(item["type_key"], [])
            for change in cast("list[Change]", given if isinstance(given, list) else [given]):
                item = change(item, nodes)
            nodes[at] = item
        data["attrs"]["tvm_version"] = to_ver
        return data

    return update


def _renamed(new: str) -> Change:
    return lambda item, nodes: {**item, "type_key": new}


def _named_by_variable(item: Item, nodes: list[Item]) -> Item:
    """A type variable had its name in a variable of its own."""
    attrs = dict(item["attrs"])
    attrs["name_hint"] = nodes[int(attrs.pop("var"))]["attrs"]["name"]
    return {**item, "attrs": attrs}


def _own_text(item: Item, nodes: list[Item]) -> Item:
    """Operators and sources were named in a field of another name."""
    rest = {k: v for k, v in item.items() if k != "global_key"}
    return {**rest, "repr_str": item["global_key"]} if "global_key" in item else item


def _string_node(item: Item, nodes: list[Item]) -> Item:
    """Texts were kept in their attributes."""
    return {"type_key": "runtime.String", "repr_str": item["attrs"]["value"]} if "attrs" in item else item


def _with(**defaults: str) -> Change:
    return lambda item, nodes: {**item, "attrs": {**defaults, **item.get("attrs", {})}}


def create_updater_06_to_07() -> Updater:
    """From 0.6 to 0.7."""
    changes: dict[str, list[Change]] = {old: [_renamed(new)] for old, new in NAMES_06.items()}
    for key in ("relay.TypeVar", "relay.GlobalTypeVar"):
        changes[key].insert(0, _named_by_variable)
    for key in ("Op", "relay.Op", "relay.SourceName", "SourceName", "EnvFunc"):
        changes.setdefault(key, []).append(_own_text)
    for key in ("Variable", "SizeVar"):
        changes[key].append(_with(type_annotation="0"))
    changes["StringImm"] = [_string_node]
    return create_updater(changes, "0.6", "0.7")


def create_updater_07_to_08() -> Updater:
    """From 0.7 to 0.8: modules have attributes."""
    return create_updater({"IRModule": _with(attrs="0")}, "0.7", "0.8")


def create_updater_08_to_09() -> Updater:
    """From 0.8 to 0.9: expressions have a device."""
    return create_updater(dict.fromkeys(WITH_DEVICE, _with(virtual_device_="0")), "0.8", "0.9")


STEPS = (("0.6", create_updater_06_to_07), ("0.7", create_updater_07_to_08), ("0.8", create_updater_08_to_09))


def upgrade_json(json_str: str) -> str:
    """JSON of TVM 0.6, 0.7 or 0.8 as 0.9 writes it; RelayValueError (`json.version`) for other versions."""
    try:
        data = cast(Item, read_json(json_str))
        version = str(data["attrs"]["tvm_version"])
        steps = STEPS[next((k for k, (old, _) in enumerate(STEPS) if version.startswith(old)), len(STEPS)) :]
        for _, step in steps:
            data = step()(data)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise RelayValueError("this is no JSON of a program", code="json.damaged") from None
    if not steps:
        raise RelayValueError(
            f"JSON of TVM {version} is not upgraded", code="json.version", help="load_json reads that of 0.9 and later"
        )
    return json.dumps(data, indent=2)
