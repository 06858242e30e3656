"""Folding: collapsed groups, repeated blocks, neighbourhoods."""

from __future__ import annotations

import pytest
from programs import SOURCES, chain, diamonds, program, random_view

from relaylab.support.errors import RelayValueError
from relaylab.viz import Edge, Group, Node, View, view
from relaylab.viz.selection.fold import closed_at, collapse, focus, group_costs, levels, of_kind, reveal, toggled
from relaylab.viz.selection.repeats import repeats

pytestmark = pytest.mark.slow


def layers(count: int, first: int = 0) -> View:
    """`count` layers of conv, norm and relu with a way around each; the channels grow."""
    from relaylab.viz import Attr

    nodes, edges, last = [Node("in", "var", "%x")], [], "in"
    for k in range(count):
        names = [f"{op}{k}" for op in ("conv", "norm", "relu", "add")]
        nodes += [
            Node(
                n,
                "call",
                n[: -len(str(k))],
                n[: -len(str(k))],
                attrs=(Attr("channels", str(k)),),
                cost=(("MACs", 10.0),),
            )
            for n in names
        ]
        for source, target in zip([last, *names], names):
            edges.append(Edge(source, target))
        edges.append(Edge(last, names[-1], 1))
        last = names[-1]
    return View("layers", tuple(nodes), tuple(edges)).check()


def folded(made: View) -> View:
    return collapse(made, of_kind(made, "repeat", "block")).check()


@pytest.mark.parametrize("seed", range(8))
def test_any_set_of_closed_groups_gives_a_whole_view(seed):
    made = random_view(seed)
    for level in range(levels(made) + 1):
        small = collapse(made, closed_at(made, level)).check()
        hidden = {g.id for g in made.groups} - {g.id for g in small.groups}
        assert {n.id for n in small.nodes} <= {n.id for n in made.nodes} | hidden
        ids = [e.id for e in small.edges]
        assert len(ids) == len(set(ids))
    assert collapse(made, closed_at(made, levels(made))) is made is collapse(made, {"unknown"})


@pytest.mark.parametrize("name", SOURCES)
def test_collapsing_all_leaves_one_card_a_function(name):
    made = view(program(name))
    small = collapse(made, closed_at(made, 0)).check()
    assert not small.groups and {n.kind for n in small.nodes} == {"folded"}


def test_a_kernel_becomes_a_card_in_its_place_with_its_cost():
    made = view(program("fused"))
    (kernel,) = of_kind(made, "primitive")
    small = collapse(made, {kernel})
    card = small.node_by_id[kernel]
    assert card.title == "nn.conv2d + add + nn.relu" and card.rows == ("3 nodes inside",)
    assert dict(card.cost)["MACs"] == group_costs(made)[kernel]["MACs"] == 1 * 4 * 8 * 8 * 4 * 9
    assert {small.node_by_id[e.source].title for e in small.incoming[kernel]} == {"%x", "%w"}
    assert collapse(made, toggled({kernel}, kernel)) is made


def test_layers_become_one_stacked_card_and_open_into_numbered_ones():
    made = repeats(layers(5))
    assert [(n.kind, n.title) for n in folded(made).nodes] == [("var", "%x"), ("stack", "×5")]
    closed = of_kind(made, "repeat", "block")
    card = folded(made).nodes[1]
    assert dict(card.cost) == {"MACs": 200.0} and set(card.rows[0].split(", ")) == {"conv", "norm", "relu"}
    opened = collapse(made, toggled(closed, card.id)).check()
    assert [n.title for n in opened.nodes if n.kind == "folded"] == [f"{k} of 5" for k in range(1, 6)]
    seen = collapse(made, reveal(made, closed, "norm2"))
    assert "norm2" in seen.node_by_id and "norm1" not in seen.node_by_id


def test_what_differs_in_more_than_size_is_not_folded():
    from dataclasses import replace

    made = layers(4)
    nodes = tuple(replace(n, title="tanh", operator="tanh") if n.id == "relu1" else n for n in made.nodes)
    found = repeats(replace(made, nodes=nodes))
    assert "relu1" in folded(found).node_by_id
    assert repeats(view(program("closure"))) == view(program("closure"))


def test_long_chains_and_shared_values_fold_in_linear_time():
    assert len(folded(repeats(view(chain(20_000)))).nodes) == 3
    made = folded(repeats(view(diamonds(2_000))))
    assert len(made.nodes) == 3 and [n.title for n in made.nodes if n.kind == "stack"] == ["×2000"]


@pytest.mark.parametrize("name, most", [("resnet152", 80), ("densenet201", 45), ("inception_v3", 160)])
def test_large_networks_become_small(name, most):
    from relaylab import study

    made = repeats(view(study.load(name).mod)).check()
    assert len(folded(made).nodes) <= most
    assert {n.id for n in made.nodes} == {n.id for n in view(study.load(name).mod).nodes}


def test_the_neighbourhood_of_a_node():
    made = layers(5)
    near = focus(made, "norm2", 1).check()
    assert {n.id for n in near.nodes} == {"conv2", "norm2", "relu2"}
    assert near.node_by_id["relu2"].rows == ("… 1 more user",)
    assert {n.id for n in focus(made, "norm2", 1, "in").nodes} == {"conv2", "norm2"}
    assert focus(made, ["norm2"], 0).nodes[0].rows == ("… 1 more input, 1 more user",)
    assert len(focus(made, "norm2", 99).nodes) == len(made.nodes)
    grouped = View("", made.nodes, made.edges, (Group("g", "let", "g"),))
    assert focus(grouped, "g", 1).nodes == ()


def test_a_neighbourhood_of_nothing_is_refused():
    with pytest.raises(RelayValueError, match="no node") as err:
        focus(layers(2), "nrm1")
    assert "norm1" in str(err.value)
    for hops, side in ((-1, "both"), (1, "up")):
        with pytest.raises(RelayValueError):
            focus(layers(2), "norm1", hops, side)


def test_cards_with_the_same_content_are_counted():
    made = view(program("fused"))
    twice = View(
        "twice",
        (*made.nodes, *(replace_id(n) for n in made.nodes)),
        (),
        (*made.groups, *(replace_id(g) for g in made.groups)),
    )
    rows = [n.rows[0] for n in collapse(twice, of_kind(twice, "primitive")).nodes if n.kind == "folded"]
    assert rows == ["3 nodes inside, ×2 alike"] * 2


def replace_id(part):
    from dataclasses import replace

    home = "parent" if isinstance(part, Group) else "group"
    return replace(part, id=f"{part.id}'", **{home: getattr(part, home) and f"{getattr(part, home)}'"})


def test_repeated_blocks_of_a_difference_say_what_changed_in_them():
    from relaylab.viz import Difference

    before = layers(4)
    after = View(
        before.title,
        tuple(n for n in before.nodes if not n.id.startswith("norm")),
        tuple(e for e in before.edges if not (e.source + e.target).count("norm")),
        before.groups,
    )
    card = next(n for n in folded(repeats(Difference(before, after).merged)).nodes if n.kind == "stack")
    assert card.role == "changed" and "4 removed" in card.note
