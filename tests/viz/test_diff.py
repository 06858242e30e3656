"""The difference of two stages: five roles from provenance or structure, and text that renumbering does not fool."""

from __future__ import annotations

from collections import Counter

import pytest
from programs import SOURCES, add, program, relu

from relaylab import relay
from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, Var, const, is_call_to
from relaylab.ir.trail import Trail, recording
from relaylab.ir.visit import rewrite
from relaylab.support.errors import RelayError
from relaylab.transform import PASSES, Pass, PassContext, run_pipeline
from relaylab.transform.engine.infer_type import InferType
from relaylab.viz import View, diff, view
from relaylab.viz.diffs.difference import BY_STRUCTURE, BY_TRAIL
from relaylab.viz.graph.view import ROLES
from relaylab.viz.diffs.textdiff import diff_lines, tally, unified

T = TensorType((1, 4))


def network(front: bool, length: int = 5) -> IRModule:
    x = Var("x", T)
    y: Expr = add(x, const(1.0)) if front else x
    for i in range(length):
        y = relu(y) if i % 2 else Call(Op.get("tanh"), [y])
    return InferType()(IRModule.from_expr(Function([x], y)))


def run(mod: IRModule, rule) -> tuple[IRModule, Trail]:
    """A hand-made pass, recorded."""
    trail = Trail()
    with recording(trail):
        after = mod.with_functions({gv: rewrite(f, rule) for gv, f in mod.functions.items()})
    return after, trail


def roles(d) -> dict[str, str]:
    return {n.title: n.role for n in d.merged.nodes if n.role}


@pytest.mark.parametrize("name", SOURCES)
def test_no_difference_between_a_program_and_itself(name):
    for d in (diff(program(name), program(name)), diff(mod := program(name), mod, Trail())):
        assert d.counts == {} and d.changed_edges == 0 and d.text == ""


def test_what_is_not_drawn_may_differ():
    data = relay.parse('#[version = "0.0.5"] type L[A] { Nil, Cons(A, L[A]) }')
    found = diff(data, IRModule())
    assert "nothing that is drawn changed" in repr(found) and "Cons" in str(found)
    assert "<difference: nothing changed;" in repr(diff(data, data))


def test_one_operator_in_front_is_one_added_node_and_one_added_line():
    d = diff(network(False), network(True))
    assert d.counts == {"added": 1} and d.how == BY_STRUCTURE
    lines = diff_lines(*d.texts)
    assert tally(lines) == {"added": 1, "removed": 0, "changed": 1}  # the new line; its user reads another value


def test_changed_by_a_trail():
    after, trail = run(
        network(False), lambda new, old: Call(Op.get("sigmoid"), new.args) if is_call_to(new, "tanh") else new
    )
    d = diff(network(False), after, trail)
    mod = network(False)
    after, trail = run(mod, lambda new, old: Call(Op.get("sigmoid"), new.args) if is_call_to(new, "tanh") else new)
    d = diff(mod, after, trail)
    assert d.how == BY_TRAIL and d.counts == {"changed": 3} and d.changed_edges == 0
    assert {n.note for n in d.merged.nodes if n.role} == {"was tanh"}


def test_merged_by_a_trail():
    mod = network(False, 2)

    def rule(new: Expr, old: Expr) -> Expr:
        return Call(Op.get("sigmoid"), new.args[0].args) if is_call_to(new, "nn.relu") else new

    trail = Trail()
    with recording(trail):

        def fused(new: Expr, old: Expr) -> Expr:
            made = rule(new, old)
            if made is not new:
                trail.derive(made, [old, old.args[0]])
            return made

        after = mod.with_functions({gv: rewrite(f, fused) for gv, f in mod.functions.items()})
    d = diff(mod, after, trail)
    assert roles(d) == {"sigmoid": "merged"}
    assert next(n for n in d.merged.nodes if n.role).note == "from nn.relu, tanh"
    assert {n.title: n.role for n in d.sides[0].nodes if n.role} == {"tanh": "merged", "nn.relu": "merged"}


def test_one_node_for_two_leaves_no_id_to_what_was_made_beside_it():
    """The sum of variance and epsilon was said to be what the normalization had become, with another type."""
    mod = relay.parse("""#[version = "0.0.5"]
    def @main(%x: Tensor[(1, 4, 2, 2), float32], %g: Tensor[(4), float32], %m: Tensor[(4), float32]) {
      %0 = nn.batch_norm(%x, %g, %g, %m, %m);
      %1 = nn.dropout(%0.0);
      nn.relu(%1.0)
    }""")
    history = run_pipeline(mod, [relay.transform.SimplifyInference()])
    found = diff(history.source, history.mod, history).merged.nodes
    assert not [n for n in found if n.role == "changed"]
    (merged,) = [n for n in found if n.role == "merged"]
    assert merged.title == "add" and {"nn.batch_norm.0", "nn.dropout.0"} <= {*merged.note[5:].split(", ")}


def without_options(name: str) -> bool:
    """Whether a pass can be made without being told anything, and prints nothing."""
    try:
        return "Print" not in name and isinstance(PASSES[name].factory(), Pass)
    except (RelayError, TypeError):
        return False


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.filterwarnings("ignore:.*has no category")
def test_counts_add_up_to_both_programs(name):
    """Each part of both has one role, and what is in both has the same one on both sides."""
    mod, changed = program(name), 0
    for made in filter(without_options, PASSES):
        history = run_pipeline(mod, [made], PassContext(opt_level=4))
        d = diff(mod, history.mod, history)
        before, after = (Counter(p.role for p in (*side.nodes, *side.groups)) for side in d.sides)
        assert all(before[role] == after[role] for role in ("", "changed", "moved")), made
        assert before["added"] == after["removed"] == 0
        assert d.counts == {role: n for role in ROLES if (n := (before if role == "removed" else after)[role])}, made
        drawn = Counter(p.role for p in (*d.merged.nodes, *d.merged.groups))
        told = [int(note.split()[0]) for note in d.merged.notes if note.endswith("dissolved")]
        assert d.counts.get("removed", 0) == drawn["removed"] + sum(told)
        assert all(d.counts.get(role, 0) == drawn[role] for role in ("added", "changed", "moved", "merged"))
        changed += bool(d.counts)
    assert changed > 3


def test_kernels_that_dissolve_are_counted():
    mod = program("fused")
    history = run_pipeline(mod, ["DefuseOps"], PassContext(opt_level=3))
    d = diff(mod, history.mod, history)
    assert d.counts == {"removed": 1, "moved": 3} and d.merged.notes[0] == "1 group dissolved"


def test_removed_is_a_ghost_in_its_place():
    mod = network(False, 3)
    after, trail = run(mod, lambda new, old: new.args[0] if is_call_to(new, "nn.relu") else new)
    d = diff(mod, after, trail)
    assert roles(d) == {"nn.relu": "removed"}
    ghost = next(n for n in d.merged.nodes if n.role == "removed")
    assert ghost.group == next(n for n in d.merged.nodes if n.title == "tanh").group
    assert sorted(e.role for e in d.merged.edges if e.role) == ["added", "removed", "removed"]


def test_moved_into_another_box():
    def branchy(inside: bool) -> View:
        from dataclasses import replace

        made = view(program("closure"))
        target = next(g for g in made.groups if g.title == ("then" if inside else "else"))
        nodes = tuple(replace(n, group=target.id) if n.operator == "subtract" else n for n in made.nodes)
        return View(made.title, nodes, made.edges, made.groups)

    d = diff(branchy(False), branchy(True))
    assert roles(d) == {"subtract": "moved"}
    assert next(n for n in d.merged.nodes if n.role).note == "from else"


def test_a_kernel_is_a_merged_group():
    x = Var("x", T)
    before = InferType()(IRModule.from_expr(Function([x], relu(relu(x)))))
    p, y = Var("p", T), Var("x", T)
    after = InferType()(
        IRModule.from_expr(Function([y], Call(Function([p], relu(relu(p)), attrs={"Primitive": 1}), [y])))
    )
    d = diff(before, after)
    assert roles(d) == {}
    assert {g.title: (g.role, g.note) for g in d.merged.groups if g.role} == {
        "nn.relu + nn.relu": ("merged", "2 nodes of before in one kernel")
    }


def test_the_kept_stays_where_it_was():
    before, after = network(False), network(True)
    d = diff(before, after)
    from relaylab.viz.draw.draw import draw

    old = {f.id: f.box[0] + f.box[2] / 2 for f in draw(d.before).elements if f.kind == "node"}
    new = {f.id: f.box[0] + f.box[2] / 2 for f in d.scene.elements if f.kind == "node"}
    moves = [new[n] - old[n] for n in old]
    assert max(moves) - min(moves) < 1


def test_both_ways_of_showing(tmp_path):
    d = diff(network(False), network(True), title="a pass")
    for form in ("svg", "pdf", "html", "txt", "json", "dot"):
        assert d.save(tmp_path / f"x.{form}").stat().st_size
        assert d.side_by_side().save(tmp_path / f"y.{form}").stat().st_size
    assert "1 added" in d._repr_mimebundle_()["text/plain"]
    assert d.side_by_side().scene.width > d.scene.width


BEFORE = """def @main(%data) {
  %0 = nn.conv2d(%data, %w0);
  %1 = nn.relu(%0);
  %2 = nn.conv2d(%1, %w1);
  nn.relu(%2)
}"""


def test_text_is_not_fooled_by_renumbering():
    after = BEFORE.replace("%2", "%3").replace("%1", "%2").replace("%0", "%1").replace("%w2", "%w1")
    after = after.replace("  %1 = nn.conv2d(%data", "  %0 = add(%data, 1f);\n  %1 = nn.conv2d(%0")
    lines = unified(BEFORE, after, 0).splitlines()
    assert [line for line in lines if line[0] in "+-"] == [
        "+   %3 = add(%data, 1f);",
        "-   %0 = nn.conv2d(%data, %w0);",
        "+   %0 = nn.conv2d(%3, %w0);",
    ]


def test_a_removed_line_is_one_removed_line():
    after = "\n".join(BEFORE.splitlines()[:3] + ["  %2 = nn.conv2d(%0, %w1);", *BEFORE.splitlines()[4:]]).replace(
        "  %1 = nn.relu(%0);\n", ""
    )
    marks = [line.mark for line in diff_lines(BEFORE, after) if line.mark != " "]
    assert marks.count("-") - marks.count("+") == 1


def test_equal_texts_have_no_difference_and_all_lines_are_there():
    assert unified(BEFORE, BEFORE) == ""
    assert [line.text for line in diff_lines(BEFORE, BEFORE)] == BEFORE.splitlines()


def test_thirty_stages_leave_everything_where_it_was():
    """Each stage adds one operator; nodes that two stages share keep their distance from the selected one."""
    from dataclasses import replace

    from relaylab.viz import Edge, Node
    from relaylab.viz.draw.draw import draw

    made, seed, last = view(network(False, 40)), None, None
    for stage in range(30):
        edge = made.edges[(7 * stage) % len(made.edges)]
        node = Node(f"new{stage}", "call", "sigmoid", "sigmoid", group=made.groups[0].id)
        edges = [e for e in made.edges if e is not edge]
        edges += [replace(edge, target=node.id, position=0), replace(edge, source=node.id)] + [
            Edge(node.id, edge.target, 9)
        ]
        made = replace(made, nodes=(*made.nodes, node), edges=tuple(edges))
        scene = draw(made, seed=seed)
        places = {f.id: f.box[0] + f.box[2] / 2 for f in scene.elements if f.kind == "node"}
        if last is not None:
            moves = [places[n] - last[n] for n in last]
            assert max(moves) - min(moves) < 12.0, stage
        seed, last = scene.seed, places


def _typed(func: Function) -> IRModule:
    return InferType()(IRModule.from_expr(func))


def _layer() -> Function:
    x, w, b = (relay.var(name, shape=shape) for name, shape in (("x", (1, 8)), ("w", (4, 8)), ("b", (4,))))
    return relay.Function([x, w, b], relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))


def _bound(func: Function) -> Function:
    x = func.params[0]
    return relay.Function(func.params, relay.bind(func.body, {x: relay.add(x, relay.const(1.0))}))


def _new_parameter(func: Function) -> Function:
    x, z = func.params[0], relay.var("x", shape=(1, 8))
    return relay.Function([z, *func.params[1:]], relay.bind(func.body, {x: relay.add(z, relay.const(1.0))}))


def _by_hand(func: Function) -> Function:
    return _bound(_layer())


def _read_again(func: Function) -> Function:
    return relay.parse('#[version = "0.0.5"]\n' + str(_typed(_bound(func))))["main"]


@pytest.mark.parametrize("rebuilt", [_bound, _new_parameter, _by_hand, _read_again])
@pytest.mark.parametrize("tracked", [False, True])
def test_one_operator_in_front_is_one_node_and_one_line_however_it_was_built(rebuilt, tracked):
    before = _typed(_layer())
    if tracked:
        history = run_pipeline(
            before, [relay.transform.function_pass(lambda f, m, c: rebuilt(f), opt_level=1, name="Front")]
        )
        found = diff(before, history.mod, history)
    else:
        found = diff(before, IRModule.from_expr(rebuilt(before["main"])))
    assert found.counts == {"added": 1}
    assert tally(diff_lines(*found.texts))["added"] == 1


def test_another_parameter_in_the_place_of_one_is_a_change():
    func = _layer()
    z = relay.var("z", shape=(1, 8))
    other = relay.Function([z, *func.params[1:]], relay.bind(func.body, {func.params[0]: z}))
    found = diff(_typed(func), _typed(other))
    assert found.counts == {"changed": 1}
    assert [n.note for n in found.merged.nodes if n.role] == ["was %x"]


def test_an_operator_in_the_place_of_another_is_a_change():
    x = relay.var("x", shape=(1, 8))
    pair = [_typed(relay.Function([x], relay.exp(f(relay.tanh(x))))) for f in (relay.nn.relu, relay.sigmoid)]
    assert diff(*pair).counts == {"changed": 1}


def test_branches_of_one_title_have_counterparts() -> None:
    text = """#[version = "0.0.5"]
def @main(%c: bool, %d: bool, %x: Tensor[(4), float32]) {
  let %y = if (%c) { tanh(%x) } else { exp(%x) };
  if (%d) { nn.relu(%y) } else { sqrt(%y) }
}"""
    mod = relay.transform.InferType()(relay.parse(text))
    assert diff(mod, mod).counts == {}
    changed = relay.transform.InferType()(relay.parse(text.replace("nn.relu", "rsqrt")))
    assert diff(mod, changed).counts == {"changed": 1}
