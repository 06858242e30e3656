"""The neutral view: JSON in and out, checks, stable ids, every kind of node."""

from __future__ import annotations

import json
import pkgutil

import pytest
from programs import SOURCES, chain, program, random_view

from relaylab import relay, viz
from relaylab.ir import Call, Constant, Function, GlobalVar, If, Match, Op, TensorType, Tuple, Var, const
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.viz import Edge, Group, Identities, Node, View, show, view
from relaylab.viz.draw.card import card
from relaylab.viz.draw.from_ir import ViewOptions


@pytest.mark.parametrize("seed", range(5))
def test_json_round_trip(seed):
    made = random_view(seed)
    assert View.from_json(made.to_json()) == made


@pytest.mark.parametrize("name", SOURCES)
def test_json_round_trip_of_programs(name):
    made = view(program(name))
    assert View.from_json(made.to_json(indent=1)) == made


@pytest.mark.parametrize(
    "text, code",
    [
        ("not json", "viz.view-json"),
        ("[]", "viz.view-version"),
        ('{"format": "relaylab.view", "version": 99}', "viz.view-version"),
        ('{"format": "relaylab.view", "version": 1, "nodes": [{"id": "a"}]}', "viz.view-json"),
        ('{"format": "relaylab.view", "version": 1, "nodes": [3]}', "viz.view-json"),
        ('{"format": "relaylab.view", "version": 1, "nodes": 3}', "viz.view-json"),
        ('{"format": "relaylab.view", "version": 1, "extra": 1}', "viz.view-json"),
        ('{"format": "relaylab.view", "version": 1, "edges": [{"source": "a", "target": "b"}]}', "viz.unknown-id"),
        ("[" * 100_000, "viz.view-json"),
    ],
)
def test_bad_json_is_refused(text, code):
    with pytest.raises(RelayValueError) as err:
        View.from_json(text)
    assert err.value.code == code


@pytest.mark.parametrize(
    "nodes, groups, code",
    [
        ({"role": "x"}, {}, "style"),
        ({"kind": 'x" onload="alert(1)'}, {}, "style"),
        ({"family": 'x"/><script>alert(1)</script>'}, {}, "style"),
        ({"paint": ['fill:"/><script>alert(1)</script>']}, {}, "style"),
        ({"paint": ["fill:red"]}, {}, "style"),
        ({"paint": ["width:x"]}, {}, "style"),
        ({}, {"kind": 'x"/><script>alert(1)</script>'}, "style"),
        ({}, {"role": "x"}, "style"),
        ({}, {"parent": "g"}, "nesting"),
        ({}, {"parent": "n"}, "nesting"),
        ({"group": "n"}, {}, "nesting"),
        ({"id": ""}, {}, "id"),
        ({"cost": [["MACs", 1.0, 2]]}, {}, "json"),
        ({"cost": [["MACs"]]}, {}, "json"),
    ],
)
def test_json_that_no_picture_could_hold_is_refused(nodes, groups, code):
    """Styles stand in pictures as they are, where they could be markup; groups in themselves had no outermost one."""
    data = {
        "format": "relaylab.view",
        "version": 1,
        "nodes": [{"id": "n", "kind": "call", "title": "x"} | nodes],
        "groups": [{"id": "g", "kind": "function", "title": "y"} | groups],
    }
    with pytest.raises(RelayValueError) as err:
        viz.from_json(json.dumps(data))
    assert err.value.code.endswith(code)


def test_half_of_a_character_is_written_as_a_question_mark():
    assert View.from_json(View(nodes=(Node("漢", "call", "\ud800"),)).to_json()).node_by_id["漢"].title == "?"


def test_repeated_ids_are_refused():
    with pytest.raises(RelayValueError, match="one id"):
        View(nodes=(Node("a", "call", "x"),), groups=(Group("a", "function", "y"),)).check()


def test_defaults_are_left_out_of_the_json():
    data = json.loads(View(nodes=(Node("a", "call", "x"),)).to_json())
    assert data["nodes"] == [{"id": "a", "kind": "call", "title": "x"}]


@pytest.mark.parametrize("name", SOURCES)
def test_two_renderings_agree(name):
    assert view(program(name)) == view(program(name))


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("params", ["rows", "nodes", "hide"])
def test_nothing_is_unknown_and_ids_are_whole(name, params):
    made = view(program(name), ViewOptions(params=params)).check()
    assert all(n.title and n.kind not in ("expression", "unknown") for n in made.nodes)


def test_a_kernel_is_a_box_around_its_body_in_the_flow_of_values():
    made = view(program("fused"))
    kernel = next(g for g in made.groups if g.kind == "primitive")
    assert kernel.title == "nn.conv2d + add + nn.relu"
    inside = {n.title for n in made.nodes if n.group == kernel.id}
    assert inside == {"nn.conv2d", "add", "nn.relu"}
    data = next(n for n in made.nodes if n.title == "%x")
    assert {made.node_by_id[e.target].title for e in made.outgoing[data.id]} >= {"nn.conv2d", "add"}


def test_a_function_used_twice_has_an_edge_to_each_call():
    made = view(program("closure"))
    func = next(n for n in made.nodes if n.names == ("%f",))
    calls = [e for e in made.outgoing[func.id] if e.kind == "callee"]
    assert len(calls) == 2 and all(made.node_by_id[e.target].title == "call %f" for e in calls)
    assert any(n.group == func.group and n.title == "nn.relu" for n in made.nodes)


def test_a_call_of_a_global_function_is_linked_to_its_box():
    made = view(program("adt"))
    kinds = {(made.node_by_id[e.target].title, e.kind) for e in made.edges if e.kind in ("callee", "recursion")}
    assert kinds == {("@length", "callee"), ("@length", "recursion")}


def test_branches_and_clauses_are_groups():
    assert {g.title for g in view(program("closure")).groups if g.kind == "branch"} == {"then", "else"}
    assert {g.title for g in view(program("adt")).groups if g.kind == "clause"} == {"Cons(%h, %t) =>", "Nil =>"}


def test_effects_are_kept_in_order():
    made = view(program("closure"))
    write = next(n for n in made.nodes if n.title == "ref_write")
    assert [e.kind for e in made.outgoing[write.id]] == ["order"]


def test_dynamic_shapes_are_shown():
    relu = next(n for n in view(program("dynamic")).nodes if n.operator == "nn.relu")
    assert relu.type == "Tensor[(?, 16), float32]"


def test_operands_keep_their_positions_and_names():
    dense = next(n for n in view(program("closure")).nodes if n.operator == "nn.dense")
    assert [(o.position, o.name) for o in dense.operands] == [(0, "data"), (1, "weight")]
    minus = next(n for n in view(program("closure")).nodes if n.operator == "subtract")
    assert [(o.text, o.kind) for o in minus.operands] == [("", "edge"), ("1", "scalar")]


def test_text_and_cost_of_nodes():
    dense = next(n for n in view(program("closure")).nodes if n.operator == "nn.dense")
    assert dense.text.endswith("nn.dense(%x, %w, units=8)")
    assert dict(dense.cost)["MACs"] == 128


def test_parameters_as_nodes_rows_or_not_at_all():
    x = [Var(f"x{i}") for i in range(6)]
    func = Function(x, Tuple(x))
    count = {
        p: sum(n.kind == "var" for n in view(func, ViewOptions(params=p)).nodes) for p in ("rows", "nodes", "hide")
    }
    assert count == {"rows": 1, "nodes": 6, "hide": 0}
    assert sum(n.kind == "var" for n in view(func, ViewOptions(inputs={"x2", "x3"})).nodes) == 2


def test_every_class_of_expression_can_be_the_whole_picture():
    x, y = Var("x"), Var("y")
    wholes = [
        x,
        const(1.0),
        GlobalVar("f"),
        Tuple([]),
        Tuple([x, y]),
        If(x, y, y),
        Match(x, []),
        Function([x], x),
        Call(x, [y]),
    ]
    for expr in wholes:
        made = view(expr).check()
        assert show(made).scene.width > 0
        assert bool(made.nodes) == (not isinstance(expr, (Constant, GlobalVar))), expr


def test_ids_survive_a_pass_that_rebuilds():
    from relaylab.ir.trail import Trail, recording
    from relaylab.ir.visit import rewrite

    mod, identities = program("fused"), Identities()
    before = view(mod, identities=identities)
    trail = Trail()
    with recording(trail):
        other = mod.with_functions(
            {
                gv: rewrite(
                    f, lambda new, old: new if not isinstance(new, Var) else Var(new.name_hint, new.type_annotation)
                )
                for gv, f in mod.functions.items()
            }
        )
    identities.follow(trail)
    after = view(other, identities=identities)
    assert {n.id for n in before.nodes} == {n.id for n in after.nodes}
    assert {g.id for g in before.groups} == {g.id for g in after.groups}


def test_the_order_of_ids_does_not_depend_on_what_is_inserted():
    x = Var("x")
    relu = view(Function([x], Call(x, [x])))
    assert [n.id for n in relu.nodes] == ["%x", "call %x", "function"]


@pytest.mark.parametrize("bad", [3, "text", [1], None])
def test_what_is_not_a_program_is_refused(bad):
    with pytest.raises(RelayTypeError) as err:
        view(bad)
    assert err.value.code == "viz.not-a-program"


def test_edges_of_a_view_are_found_from_both_ends():
    made = View(nodes=(Node("a", "call", "x"), Node("b", "call", "y")), edges=(Edge("a", "b", 1), Edge("a", "b", 0)))
    assert [e.position for e in made.incoming["b"]] == [0, 1] == [e.position for e in made.outgoing["a"]]


def test_no_function_hides_the_module_of_its_name():
    modules = {m.name for m in pkgutil.iter_modules(viz.__path__)}
    assert not modules & set(viz.__all__)


def test_programs_built_in_python_are_drawn_with_types():
    """The types are those of `InferType`; where there are none to be found, the picture says so."""
    mod = chain(2)
    (func,) = mod.functions.values()
    assert func.body.inferred is None
    for built in (mod, func, func.body):
        relus = [n for n in show(built).view.nodes if n.operator == "nn.relu"]
        assert [n.type for n in relus] == ["Tensor[(4), float32]"] * 2
    assert func.body.inferred is None
    wrong = Call(Op.get("nn.dense"), [Var("a", TensorType((2, 3))), Var("b", TensorType((5, 7)))])
    assert show(wrong).view.notes == ("types are not known: InferType says why",)
    assert show(mod).view.notes == ()


def test_a_card_says_nothing_of_what_is_left_to_the_operator() -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    view = viz.view(relay.IRModule.from_expr(relay.nn.dense(x, w)))
    node = next(n for n in view.nodes if n.operator == "nn.dense")
    assert ("units", "None") in [(a.name, a.value) for a in node.attrs], "queries find it"
    assert not any("None" in line.text for line in card(node).lines)
    assert any("units=None" in line.text for line in card(node, attrs="all").lines)


def test_a_field_of_a_field_is_called_after_what_makes_the_tuple():
    """It was called `.1.0`, after nothing."""
    x = relay.var("x", shape=(2, 4))
    pair = relay.TupleGetItem(relay.Tuple([x, relay.split(x, 2, axis=1).astuple()]), 1)
    view = viz.view(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.TupleGetItem(pair, 0)))))
    assert [n.title for n in view.nodes if n.kind == "projection"][-1] == "tuple.1.0"


def test_a_view_in_a_cell_is_its_picture():
    """A notebook printed every field of every node: nine thousand letters of a network of ten."""
    made = view(relay.testing.mlp.get_workload(1)[0])
    assert repr(made) == "<view of 12 nodes, 11 edges, 1 group>"
    assert repr(show(made)) == "<picture of 12 nodes, 11 edges, 1 group>"
    assert made._repr_mimebundle_() == show(made)._repr_mimebundle_()
