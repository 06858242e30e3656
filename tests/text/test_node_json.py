"""Programs as JSON of nodes, both ways: `save_json` and `load_json`, and what older versions wrote."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import assert_structural_equal
from relaylab.support.errors import RelayError
from relaylab.text.node_json import load_json, save_json
from relaylab.text.node_json_versions import upgrade_json


def programs() -> dict[str, object]:
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    conv = relay.nn.conv2d(x, w, channels=4, kernel_size=(3, 3), padding=(1, 1))
    part = relay.split(conv, 2, axis=1)[0] + relay.const(np.float32([1.5]))
    prelude = relay.prelude.Prelude(relay.IRModule())
    return {
        "a function": relay.Function([x, w], relay.Tuple([part, part])),
        "a typed module": relay.transform.InferType()(relay.IRModule.from_expr(part)),
        "the prelude": prelude.mod,
        "fused": relay.transform.FuseOps(2)(relay.transform.InferType()(relay.IRModule.from_expr(part))),
        "a type": relay.FuncType([relay.TensorType((relay.Any(), 3))], relay.TupleType([relay.scalar_type("bool")])),
        "attributes": conv.attrs,
    }


@pytest.mark.parametrize("name", programs())
def test_a_program_comes_back(name: str) -> None:
    before = programs()[name]
    after = load_json(save_json(before))
    assert_structural_equal(before, after, map_free_vars=True)
    assert json.loads(save_json(after))["attrs"]["tvm_version"] == "0.10.0"


def test_types_places_and_sharing_come_back() -> None:
    mod = programs()["a typed module"]
    loaded = load_json(save_json(mod))
    assert loaded["main"].checked_type == mod["main"].checked_type and loaded["main"].span == mod["main"].span
    x = relay.var("x", shape=(2,))
    twice = load_json(save_json({"a": relay.Tuple([x, x]), "b": [1, 2.5, "t", None]}))
    assert twice["a"].fields[0] is twice["a"].fields[1] and twice["b"] == (1, 2.5, "t", None)


def test_depth_is_no_matter() -> None:
    x = relay.var("x", shape=(2,))
    body = x
    for _ in range(3000):
        body = relay.nn.relu(body)
    assert_structural_equal(relay.Function([x], body), load_json(save_json(relay.Function([x], body))))


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "3", '{"root": 5, "nodes": []}', '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "x"}]}',
        '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Tuple", "attrs": {"fields": "1"}}]}',
        '{"root": 0, "nodes": [], "x": ',
        '{"root": 1, "attrs": {"relaylab": "1"}, "nodes": [{"type_key": ""}, {"type_key": "relay.attrs.No"}]}',
        '{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "relay.Constant", "attrs": {"data": "7"}}]}',
        '{"root": 1e999, "nodes": []}',
        '{"root": 2, "nodes": [{"type_key": ""}, {"type_key": "IntImm", "attrs": {"value": "0"}}, '
        '{"type_key": "tir.FloorDiv", "attrs": {"a": "1", "b": "1"}}]}',
    ],
)  # fmt: skip
def test_damaged_json_is_an_error(text: str) -> None:
    if text.startswith('{"root": 0'):
        text = text + "1}"
        assert load_json(text) is None
        return
    with pytest.raises(RelayError) as caught:
        load_json(text)
    assert caught.value.code in ("json.damaged", "json.unknown-kind")


def test_what_has_no_json_is_said() -> None:
    with pytest.raises(RelayError, match="no form in JSON"):
        save_json(object())


def test_attributes_that_tvm_wrote_are_refused_and_the_rest_is_read() -> None:
    foreign = lambda node: save_json(node).replace('"relaylab": "1"', '"other": "1"')
    assert load_json(foreign(relay.var("x", shape=(2,)))).checked_type == relay.TensorType((2,))
    with pytest.raises(RelayError, match="fromtext") as caught:
        load_json(foreign(relay.nn.softmax(relay.var("x", shape=(2,)))))
    assert caught.value.code == "json.foreign"


def test_json_of_older_versions() -> None:
    nodes = [
        {"type_key": ""},
        {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "a"}},
        {"type_key": "relay.TypeVar", "attrs": {"var": "1", "kind": "0", "span": "0"}},
        {"type_key": "Op", "global_key": "add"},
        {"type_key": "Array", "data": [2, 3]},
    ]
    old = json.dumps({"root": 4, "nodes": nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.6.0"}})
    var, op = load_json(upgrade_json(old))
    assert var.name_hint == "a" and isinstance(var, relay.TypeVar) and op is relay.op.get("add")
    with pytest.raises(RelayError, match="0.5"):
        upgrade_json(old.replace("0.6.0", "0.5.0"))


@pytest.mark.parametrize("node", ["{}", "5", '{"type_key": "relay.TypeVar", "attrs": {"var": "9"}}', "[" * 100_000])
def test_damaged_json_of_older_versions_is_an_error(node: str) -> None:
    with pytest.raises(RelayError) as caught:
        upgrade_json(f'{{"root": 1, "attrs": {{"tvm_version": "0.6"}}, "nodes": [{node}]}}')
    assert caught.value.code == "json.damaged"


def test_lists_that_stand_in_themselves_many_times_are_refused() -> None:
    nodes = [{"type_key": ""}, {"type_key": "Array", "data": []}]
    nodes += [{"type_key": "Array", "data": [k, k]} for k in range(1, 60)]
    nodes.append({"type_key": "Map", "keys": ["a"], "data": [60]})
    nodes.append({"type_key": "DictAttrs", "attrs": {"__dict__": "61"}})
    with pytest.raises(RelayError, match="more than 1000000 values"):
        load_json(json.dumps({"root": 62, "nodes": nodes}))
