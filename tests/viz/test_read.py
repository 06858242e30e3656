"""Graphs of other tools as views: what Model Explorer is given comes back, and anything else is refused in words."""

from __future__ import annotations

import json

import pytest
from programs import SOURCES, program

from relaylab import viz
from relaylab.cli import main
from relaylab.support.errors import RelayValueError


@pytest.mark.parametrize("name", SOURCES)
def test_what_model_explorer_is_given_comes_back(name):
    made = viz.view(program(name))
    back = viz.from_json(viz.model_explorer(made))
    assert [(n.id, n.title, n.type) for n in back.nodes] == [(n.id, n.title, n.type) for n in made.nodes]
    ends = [
        (e.source, e.target) for n in made.nodes for e in made.incoming.get(n.id, ()) if e.source in made.node_by_id
    ]
    assert sorted(ends) == sorted((e.source, e.target) for e in back.edges if (e.source, e.target) in set(ends))
    titles = {n.id: made.group_by_id[n.group].title for n in made.nodes if n.group}
    for node in back.nodes:
        around = [g.title for g in back.around(node.group)]
        assert len(around) == len(list(made.around(made.node_by_id[node.id].group)))
        assert not around or around[0].startswith(titles[node.id].replace("/", "∕") or "")
    assert viz.from_json(made.to_json()) == made


ADAPTER = {
    "graphCollections": [
        {"label": "m", "graphs": [{"id": "g", "nodes": [
            {"id": "0", "label": "GraphInputs", "outputsMetadata": [{"id": "0", "attrs": [
                {"key": "tensor_shape", "value": "float32[1,4]"}]}]},
            {"id": "1", "label": "tanh", "namespace": "block/inner", "attrs": [{"key": "axis", "value": "1"}],
             "incomingEdges": [{"sourceNodeId": "0", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}]},
            {"id": "2", "label": "add", "namespace": "block", "incomingEdges": [
                {"sourceNodeId": "1", "targetNodeInputId": "1"}, {"sourceNodeId": "0", "targetNodeInputId": "0"}]},
        ]}]},
    ]
}  # fmt: skip


def test_a_graph_of_an_adapter(tmp_path, capsys):
    """The form that Model Explorer documents for adapters: operands by number, namespaces as boxes within boxes."""
    view = viz.from_json(json.dumps(ADAPTER))
    assert [g.title for g in view.groups] == ["block", "inner"] and view.group_by_id["namespace block/inner"].parent
    assert [(e.source, e.position) for e in view.incoming["2"]] == [("0", 0), ("1", 1)]
    assert view.node_by_id["0"].type == "float32[1,4]" and view.node_by_id["1"].attrs[0].value == "1"
    (tmp_path / "m.json").write_text(json.dumps(ADAPTER))
    with pytest.raises(SystemExit) as done:
        main(["viz", str(tmp_path / "m.json"), "-o", str(tmp_path / "m.svg")])
    assert done.value.code == 0 and "tanh" in (tmp_path / "m.svg").read_text()


@pytest.mark.parametrize(
    "text",
    ["", "3", "{}", "[]", '{"nodes": 3}', '{"nodes": [{}]}', '{"nodes": [{"id": 1}, {"id": "1"}]}', "[" * 100000,
     '{"graphs": ["x"]}', '{"nodes": [{"id": "a", "incomingEdges": [{"sourceNodeId": "b"}]}]}',
     '{"nodes": [{"id": "a", "outputsMetadata": [3]}]}', '{"format": "relaylab.view", "version": 99}'],
)  # fmt: skip
def test_what_is_no_graph_is_refused(text):
    with pytest.raises(RelayValueError):
        viz.from_json(text)
