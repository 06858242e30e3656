"""Repetitions begin where the layers of the program begin, and one copy opens alone."""

from __future__ import annotations

import re

import pytest

from relaylab import relay, study, viz
from relaylab.ir import IRModule
from relaylab.viz.selection.copies import folded_copies
from relaylab.viz.selection.fold import collapse
from relaylab.viz.selection.parts import Parts
from relaylab.viz.selection.repeats import repeats

TINY = {"layers": 12, "hidden": 8, "heads": 2, "length": 4, "vocabulary": 10}


def network(name: str, bound: bool) -> IRModule:
    """Twelve layers; with `bound` the parameters are constants without names."""
    mod, params = getattr(relay.testing.attention, name).get_workload(**TINY)
    if bound:
        mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    return relay.transform.InferType()(mod)


def blocks(view: viz.View) -> list[list[viz.Node]]:
    """What is in each copy of the longest repetition."""
    parts = Parts(view)
    longest = max((g for g in view.groups if g.kind == "repeat"), key=lambda g: int(g.title[1:]) * len(g.rows))
    copies = [p for p in parts.items[longest.id] if p in view.group_by_id]
    return [[view.node_by_id[n] for n in parts.items[c] if n in view.node_by_id] for c in copies]


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize(
    ("name", "first", "last"), [("bert", "nn.dense", "nn.layer_norm"), ("gpt2", "nn.layer_norm", "add")]
)
def test_a_copy_is_a_layer(name: str, first: str, last: str, bound: bool) -> None:
    """BERT normalises at the end of a layer, GPT-2 at its beginning (Devlin et al. 2018, Radford et al. 2019)."""
    found = blocks(repeats(viz.view(network(name, bound))))
    assert len(found) == 12
    assert all((b[0].title, b[-1].title) == (first, last) for b in found)
    if not bound:
        for k, block in enumerate(found):
            names = {m[0] for n in block for o in n.operands if (m := re.match(r"%[a-z]+\d+", o.text))}
            assert names == {f"%layer{k}"}, k


def test_shapes_that_differ_between_copies_are_said() -> None:
    made = repeats(viz.view(study.load("resnet18").mod))
    stages = [g for g in made.groups if g.kind == "repeat" and g.title == "×3"]
    assert [g.rows[-1] for g in stages] == ["1×128×28×28 … 1×512×7×7"]


def test_one_copy_opens_and_the_others_stay_a_card() -> None:
    made = repeats(viz.view(network("gpt2", True)))
    outer = next(g.id for g in made.groups if g.title == "×12")
    folded = collapse(*folded_copies(made, ())).check()
    opened = collapse(*folded_copies(made, {outer})).check()
    assert [n.title for n in folded.nodes if n.kind == "stack"] == ["×12"]
    assert [n.title for n in opened.nodes if n.kind == "stack"] == ["×11"]
    assert {g.title for g in opened.groups} >= {"×12", "1 of 12"}
    assert len(opened.nodes) - len(folded.nodes) == len(blocks(made)[0])
    rest = next(n.id for n in opened.nodes if n.kind == "stack")
    further = collapse(*folded_copies(made, {outer, rest})).check()
    assert [n.title for n in further.nodes if n.kind == "stack"] == ["×10"]
    assert len(further.nodes) - len(opened.nodes) == len(blocks(made)[0])
    assert collapse(*folded_copies(made, {"repeat:unknown"})).nodes == folded.nodes
