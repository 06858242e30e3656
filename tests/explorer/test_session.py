"""The explorer's answers: pictures with roles, texts, stories, checks, kernels; what stays, stays where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relaylab import relay, study
from relaylab.ir import Call, rewrite
from relaylab.explorer import Session
from relaylab.support import progress


GOLDEN = Path(__file__).parents[1] / "golden"


def session(what, passes=None) -> Session:
    return Session(study.explore(what, passes=passes), passes)


@pytest.fixture(scope="module")
def resnet():
    return session("resnet8")


@pytest.fixture(scope="module")
def mlp():
    return session("mlp")


def test_every_answer_is_plain_data(resnet):
    last = len(resnet.frames) - 1
    node = next(n.id for n in resnet.frames.views[0].nodes if n.operator == "nn.conv2d")
    questions = [
        ("rows",),
        ("picture", 0, last),
        ("picture", 4, 5, "both"),
        ("text", 0, last),
        ("node", 0, node),
        ("kernel", 0, node),
        ("steps", 0),
        ("check", 4),
        ("suggest", 0),
        ("bisect",),
        ("copy",),
        ("overlay", "MACs", 0),
        ("overlay", "time", last),
        ("memory",),
    ]
    for question in questions:
        answer = json.loads(json.dumps(resnet.ask(*question)))
        assert answer and "error" not in answer, (question, answer.get("error"))


@pytest.mark.parametrize(
    "question, words",
    [
        (("pictures",), "did you mean `picture`"),
        (("picture", 0, 99), "there is no frame 99"),
        (("node", 0, "nobody"), "there is no node"),
        (("overlay", "MAC", 0), "did you mean `MACs`"),
        (("edit", "togle", 0), "did you mean `toggle`"),
        (("edit", "toggle", 99), "passes, not one at 99"),
        (("edit", "insert", 0, "FusOps"), "did you mean `FuseOps`"),
    ],
)
def test_mistakes_are_answers(mlp, question, words):
    assert words in mlp.ask(*question)["error"]


def test_an_operator_in_front_is_one_node_and_one_line():
    mod = relay.parse(
        '#[version = "0.0.5"] def @main(%x: Tensor[(4), float32]) { %0 = exp(%x); %1 = tanh(%0); add(%1, %0) }'
    )

    @relay.transform.function_pass(opt_level=0)
    def InFront(func, mod, ctx):
        first = lambda n: isinstance(n, Call) and n.args == func.params
        return rewrite(func, lambda new, old: Call(new.op, [relay.nn.relu(new.args[0])]) if first(new) else new)

    found = session(mod, [InFront])
    picture, text = found.ask("picture", 0, 1), found.ask("text", 0, 1)
    assert picture["roles"].get("added") == 1 and "removed" not in picture["roles"]
    changed = [row for row in text["rows"] if row[0] in "+-"]
    assert sum(row[0] == "+" and "nn.relu" in row[1] for row in changed) == 1
    assert all("relu" in row[1] or "exp" in row[1] for row in changed), changed


def test_roles_of_fusion_and_the_life_of_a_node(mlp):
    fuse = next(k for k, item in enumerate(mlp.pipeline.items) if item.name == "FuseOps")
    assert mlp.ask("picture", fuse, fuse + 1)["roles"] == {"merged": 5}
    story = mlp.ask("node", 0, "main/nn.bias_add")["story"]
    assert [e["pass"] for e in story] == ["source", "CanonicalizeOps", "FuseOps"]
    assert "was nn.bias_add" in story[1]["what"] and "one kernel: nn.dense, add, nn.relu" in story[2]["what"]
    assert mlp.ask("node", len(mlp.frames) - 1, "main/nn.bias_add")["story"] == story, (
        "the life is the same from each end"
    )


def test_machine_code_is_linked_to_operators(resnet):
    node = next(n.id for n in resnet.frames.views[0].nodes if n.operator == "nn.dense")
    found = resnet.ask("kernel", 0, node)
    names = [name for name, _ in found["parts"]]
    assert "nn.dense" in names and all(part < len(names) for _, part in found["asm"]) and len(found["asm"]) > 10
    assert "define " in "\n".join(line for line, _ in found["llvm"])
    products = {names[part] for line, part in found["asm"] if "fmadd" in line and part >= 0}
    assert products == {"nn.dense"} and "know their Relay nodes" in found["coverage"] and "cycles" in found["why"]


def test_checks_name_the_wrong_stage():
    wrong = swap("tanh", "sigmoid")
    mod = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(3), float32]) { tanh(add(%x, %x)) }')
    found = session(mod, [relay.transform.FoldConstant(), wrong, relay.transform.FuseOps()])
    assert [found.ask("check", i)["ok"] for i in range(3)] == [True, False, False]
    assert found.ask("bisect")["index"] == 1 and "tanh" in found.ask("bisect")["text"]


def swap(old: str, new: str):
    @relay.transform.function_pass(opt_level=0, name=f"Swap_{old}")
    def made(func, mod, ctx):
        return rewrite(
            func,
            lambda n, o: (
                Call(relay.op.get(new), n.args) if isinstance(n, Call) and getattr(n.op, "name", "") == old else n
            ),
        )

    return made


def test_thirty_stages_keep_what_is_common_in_its_place():
    unary = ["exp", "tanh", "sigmoid", "nn.relu", "sqrt", "abs", "negative", "ceil", "floor", "round"]
    body = "".join(f"%{i} = {unary[i % 10]}(%{'x' if i == 0 else i - 1});\n" for i in range(30))
    mod = relay.parse(f'#[version = "0.0.5"] def @main(%x: Tensor[(4), float32]) {{ {body} add(%29, %3) }}')
    others = ["erf", "sin", "cos"]
    passes = [swap(a, b) for k in range(10) for a, b in zip([unary[k], *others], others)][:30]
    found = session(mod, passes)
    places: dict[str, tuple] = {}
    moves = 0
    for k in found.frames.changing():
        picture = found.ask("picture", k - 1, k)
        now = {f["id"]: f["box"] for f in picture["scenes"][0]["figures"] if f["kind"] == "node"}
        for name in places.keys() & now.keys():
            (x0, _, w0, _), (x1, _, w1, _) = places[name], now[name]
            assert abs(x0 + w0 / 2 - x1 - w1 / 2) < 40, (k, name)
            moves += 1
        places = now
    assert len(found.frames.changing()) >= 10 and moves > 200


def test_folded_kernels_say_what_fusion_did(mlp):
    """What is folded is compared before: a node that went into a kernel is not removed, its kernel's card is merged."""
    after = next(k for k in mlp.frames.changing() if mlp.pipeline.items[k - 1].name == "FuseOps")
    closed = "\n".join(g.id for g in mlp.frames.views[after].groups if g.kind == "primitive")
    opened, folded = (mlp.ask("picture", after - 1, after, "merged", c) for c in ("", closed))
    assert folded["roles"] == opened["roles"] and "removed" not in folded["roles"]
    cards = [f for f in folded["scenes"][0]["figures"] if f["kind"] == "node" and f["id"] in closed.split("\n")]
    assert len(cards) == len(closed.split("\n")) and {f["role"] for f in cards} == {"merged"}
    left, right = mlp.ask("picture", after - 1, after, "both", closed)["scenes"]
    assert len(left["nodes"]) == len(mlp.frames.views[after - 1].nodes) > len(right["nodes"])


def test_overlays_sum_over_groups(mlp):
    mlp.overlays["mine"] = {"main/nn.dense": 2.0, "main/nn.dense.2": 3.0}
    values = mlp.ask("overlay", "mine", len(mlp.frames) - 1)["values"]
    roots = [g.id for g in mlp.frames.views[-1].groups if not g.parent]
    assert sum(values.get(r, 0.0) for r in roots) == 5.0


def test_what_was_explored_is_not_run_again():
    found = study.explore("mlp")
    made = Session(found)
    assert made.ask("rows") and made.pipeline.runs == 0
    last = len(made.pipeline.items) - 1
    made.ask("edit", "toggle", last)
    made.ask("edit", "undo", 0)
    assert made.ask("rows")["rows"][last]["enabled"] and found.pipeline.items == made.pipeline.items


def test_branches_that_do_the_same_do_not_differ():
    made = session("resnet8")
    made.ask("branch", "keep", "a")
    fuse = next(k for k, item in enumerate(made.pipeline.items) if item.name == "FuseOps")
    made.ask("edit", "set", fuse, "FuseOps(fuse_opt_level=3)")  # the same by other words, run by itself
    last = len(made.frames) - 1
    found = made.ask("versus", "a", last, "current", last)
    assert made.pipeline.modules[-1] is not made.branches.kept["a"].modules[-1]
    assert found["roles"] == {} and not [row for row in found["rows"] if row[0] in "+-"]
    assert made.ask("branch", "drop", "a")["names"] == ["current"]
    assert "did you mean `current`" in made.ask("compare", "curent", "current")["error"]
    assert "a name of its own" in made.ask("branch", "keep", " ")["error"]


def test_counterparts_in_other_stages(mlp):
    fuse = next(k for k, item in enumerate(mlp.pipeline.items) if item.name == "FuseOps")
    found = mlp.ask("counterparts", 0, "main/nn.bias_add", [0, fuse, fuse + 1])["ids"]
    assert found["0"] == ["main/nn.bias_add"] and all(found.values())
    back = mlp.ask("counterparts", fuse + 1, found[str(fuse + 1)][0], [0])["ids"]
    assert back["0"] == ["main/nn.bias_add"]


def test_a_life_goes_on_where_a_pass_tells_nothing_of_its_nodes(mlp):
    """A program read again from its text has other nodes, which pictures know as the same by their places."""

    @relay.transform.module_pass(opt_level=0)
    def ReadAgain(mod, ctx):
        return relay.parse(mod.astext())

    found = session("mlp", [ReadAgain, "FuseOps"])
    for node in found.frames.views[0].nodes:
        assert found.ask("counterparts", 0, node.id, [1])["ids"]["1"] == [node.id]
        assert found.ask("counterparts", 1, node.id, [0])["ids"]["0"] == [node.id]
        story = found.ask("node", 1, node.id)["story"]
        assert story[0]["frame"] == 0 and not any(c["frame"] == 1 for c in story)
        assert not any(c["what"].startswith("gone") for c in story)


@pytest.mark.parametrize("how", ["partial_evaluate/closure", "fuse_ops/order_of_effects"])
def test_what_a_pass_added_was_not_built_with_the_program(how):
    text = (GOLDEN / f"transform/{how}.relay").read_text().split("// ---- ")[0]
    found = session(relay.parse(text[text.index("#[") :]), ["PartialEvaluate", "ToANormalForm", "FuseOps"])
    stories = [found.story.of(k, n.id) for k in found.frames.changing() for n in found.frames.views[k].nodes]
    lives = [(s, c) for s in stories for c in s if c["what"].startswith("added")]
    assert stories and not any(s[0]["frame"] == 0 and s[0]["ids"] == c["ids"] for s, c in lives)


def test_a_pass_that_stopped_keeps_no_numbers():
    """It left the program as it was; the figures of that are no answer."""

    @relay.transform.module_pass(opt_level=0)
    def Fails(mod, ctx):
        raise StopIteration

    found = session("mlp", [Fails])
    assert "Fails stopped" in found.ask("check", 0)["error"]
    assert found.ask("words", 1)["sentences"] == ["Fails stopped: StopIteration"]


def test_whoever_ends_python_is_answered():
    @relay.transform.module_pass(opt_level=0)
    def Ends(mod, ctx):
        raise SystemExit(3)

    found = session("mlp", [])
    found.pipeline.insert(0, Ends)
    assert found.reply({"id": 1, "what": "rows"})["answer"]["error"] == "SystemExit: 3"


def test_nothing_is_a_part_of_an_empty_program():
    @relay.transform.module_pass(opt_level=0)
    def Empties(mod, ctx):
        return relay.IRModule()

    assert session("mlp", [Empties]).ask("extract", 1, [])["error"].startswith("error[")


def test_why_asks_the_program_that_the_pass_gets(mlp):
    fuse = next(k for k, item in enumerate(mlp.pipeline.items) if item.name == "FuseOps")
    found = mlp.ask("why", 0, "main/nn.dense", fuse)
    assert found["pass"] == "FuseOps" and ("nn.dense into add", "they are one kernel") in [
        (r["rule"], r["words"]) for r in found["reasons"]
    ]
    assert [name for _, name in found["passes"]] == ["SimplifyExpr", "FuseOps"]
    simplify = next(k for k, item in enumerate(mlp.pipeline.items) if item.name == "SimplifyExpr")
    found = mlp.ask("why", fuse, "main/add", simplify)
    assert "is not in the program that SimplifyExpr gets" in found["note"] and found["others"] == []


def test_why_not_begins_with_the_pass_of_the_stage_and_names_no_stranger(mlp):
    items = [item.name for item in mlp.pipeline.items]
    found = mlp.ask("why", items.index("CanonicalizeOps") + 1, "main/nn.dense")
    assert found["pass"] == "CanonicalizeOps" and "not made of rules" in found["note"]
    assert {r["pass"] for r in found["others"]} == {"FuseOps"}, "no rule of SimplifyExpr begins with nn.dense"
    steps = found["others"][0]["steps"]
    assert steps[0][0].startswith("`nn.dense` at ") and steps[0][1:] == (True, "main/nn.dense")
    assert "OpPattern" not in str(found)


def test_rows_say_which_functions_a_pass_changed():
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { add(@sum(%x), @other(%x)) }
def @sum(%x: Tensor[(2, 3), float32]) { add(%x, add(1f, 2f)) }
def @other(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }""")
    found = session(mod, ["FoldConstant", "FuseOps"])
    rows = found.ask("rows")
    touched = {r["name"]: r["functions"] for r in rows["rows"]}
    assert touched == {"FoldConstant": ["sum"], "FuseOps": ["main", "other", "sum"]} and rows["functions"] == 3
    assert found.ask("changes") == {"roles": [{"removed": 1}, {"merged": 3}]}
    mlp = session("mlp").ask("rows")
    assert {tuple(r["functions"]) for r in mlp["rows"] if r["changed"]} == {("main",)} and mlp["functions"] == 1


def test_paths_between_nodes_in_either_direction(resnet):
    view = resnet.frames.views[0]
    first, last = (next(n.id for n in nodes if n.operator) for nodes in (view.nodes, reversed(view.nodes)))
    there, back = resnet.ask("path", 0, first, last), resnet.ask("path", 0, last, first)
    assert there["ids"] == back["ids"] and there["ids"][0] == first and there["ids"][-1] == last
    assert f"{len(there['ids']) - 1} edges" in there["text"] and [n[0] for n in there["nodes"]] == there["ids"]
    assert "did you mean" in resnet.ask("path", 0, first[:-1], last)["error"]
    fork = session(relay.parse('#[version = "0.0.5"] def @main(%x: float32) { (exp(%x), log(%x)) }'))
    assert fork.ask("path", 0, "main/exp", "main/log") == {
        "ids": [],
        "text": "no way leads from main/exp to main/log or back",
        "nodes": [],
    }


@pytest.mark.parametrize("figure", ["MACs", "bytes", "time"])
def test_the_critical_path(resnet, figure):
    found = resnet.ask("critical", 0, figure)
    frame = found["frame"]
    assert frame == (len(resnet.frames) - 1 if figure == "time" else 0) and len(found["ids"]) > 10
    edges = {(e.source, e.target) for e in resnet.frames.views[frame].edges}
    assert all(pair in edges for pair in zip(found["ids"], found["ids"][1:])) and "%)" in found["text"]


def test_a_part_becomes_a_module_with_a_name(mlp):
    given = {}
    mlp.bind = lambda name, mod: given.update({name: mod}) or name
    found = mlp.ask("extract", 0, ["main/nn.dense", "main/nn.bias_add"], "piece")
    assert (
        list(study.operators(given["piece"])) == ["nn.dense", "nn.bias_add"]
        and mlp.extracted["piece"] is given["piece"]
    )
    assert found["code"] == "", "its weights are too long to be shown"
    small = session(relay.parse('#[version = "0.0.5"] def @main(%x: float32) { log(exp(%x)) }')).ask(
        "extract", 0, ["main/exp"]
    )
    namespace: dict = {}
    exec(small["code"], namespace)
    assert relay.analysis.list_op_freqs(namespace["part"]) == {"exp": 1} and small["inputs"] == ["x"]
    last = len(mlp.frames) - 1
    kernel = next(g.id for g in mlp.frames.views[last].groups if g.kind == "primitive")
    assert mlp.ask("extract", last, [kernel], "k")["inputs"]
    assert "is not a name" in mlp.ask("extract", 0, ["main/nn.dense"], "1x")["error"]


def test_the_table_of_operators(resnet):
    frame = len(resnet.frames) - 1
    plain, timed = resnet.ask("operators", 0), resnet.ask("operators", 0, True)
    rows = {row[0]: row[1:] for row in plain["rows"]}
    assert (
        rows["nn.conv2d"][0] == 10
        and rows["nn.conv2d"][1] == max(r[1] for r in rows.values())
        and rows["nn.relu"][3] is None
    )
    assert timed["frame"] == frame and timed["rows"][0][4] > 0
    assert sum(r[4] for r in timed["rows"]) == pytest.approx(sum(resnet.kernels.times().values()), rel=3)


def test_what_llvms_passes_would_do(resnet):
    node = next(n.id for n in resnet.frames.views[0].nodes if n.operator == "nn.conv2d")
    steps = resnet.ask("llvm", 0, node)["steps"]
    assert [s[0] for s in steps][:2] == ["sroa", "simplify_cfg"] and any(
        changed and diff[0][1].startswith("@@") for _, _, changed, _, diff in steps
    )
    assert resnet.ask("llvm", 0, "nobody")["steps"] == []


@pytest.mark.parametrize(
    "content",
    [None, [], "x", 3, True, 1.5, b"x", object(), {}, {"what": "steps"}, {"id": 1, "what": None, "args": None},
     {"id": 2, "what": "steps", "args": "0"}, {"id": 3, "what": "steps", "args": {"a": 0}}, {"id": 4, "args": [0]},
     {"id": 5, "what": ["steps"], "args": [0]}, {"id": 6, "what": "steps", "args": [1, 2, 3, 4]},
     {"id": 7, "what": "steps", "args": [{}]}, {"id": 8, "what": "steps", "args": [10**400]}],
)  # fmt: skip
def test_any_message_is_answered_in_our_words(mlp, content):
    reply = mlp.reply(content)
    assert set(reply) == {"id", "answer"} and reply["answer"]["error"].startswith("error[explorer.")
    assert reply["id"] == (content.get("id") if isinstance(content, dict) else None)


def test_a_constant_has_one_name_everywhere_that_of_its_parameter_if_it_was_one(resnet):
    """The panel, the text, the picture and the values: no `meta[…]`, no word `constant`."""
    conv = next(n for n in resnet.frames.views[0].nodes if n.operator == "nn.conv2d")
    node = resnet.ask("node", 0, conv.id)
    (weight,) = (text for name, text, _ in node["operands"] if name == "weight")
    assert weight in resnet.program.params and f", {weight}," in node["text"]
    assert [v["name"] for v in node["values"]] == [f"weight {weight}"]
    lines = [text for _, text, id, _ in resnet.ask("text", 0, 0)["rows"] if id == conv.id]
    assert len(lines) == 1 and f", {weight} " in lines[0]
    (scene,) = resnet.ask("picture", 0, 0)["scenes"]
    (figure,) = (f for f in scene["figures"] if f["id"] == conv.id)
    assert any(shape[0] == "t" and str(shape[3]).startswith(weight) for shape in figure["shapes"])

    folded = next(k for k in resnet.frames.changing() if resnet.pipeline.items[k - 1].name == "FoldConstant")
    made = [o.text for n in resnet.frames.views[folded].nodes for o in n.operands if o.text.startswith("const")]
    text = "\n".join(str(row[1]) for row in resnet.ask("text", folded, folded)["rows"])
    assert made and all(f"{name} " in text for name in made) and "constant" not in made


def test_the_life_of_a_node_is_its_own(resnet):
    """Multiplications that FoldScaleAxis merged into a convolution have lives of their own."""
    last = len(resnet.frames) - 1
    conv = next(n.id for n in resnet.frames.views[0].nodes if n.operator == "nn.conv2d")
    told = resnet.ask("node", last, conv)["story"]
    assert all(chapter["ids"] == [conv] for chapter in told) and told == resnet.ask("node", 0, conv)["story"]
    assert [c["pass"] for c in told] == ["source", "FoldScaleAxis", "AlterOpLayout", "FuseOps"]


def test_the_program_is_typed_anew():
    made = session("mlp")
    text = made.ask("source")["text"]
    other = text.replace("nn.relu(", "tanh(", 1)
    found = made.ask("live", other)
    assert found["roles"] == {"changed": 1} and found["faults"] == [] and len(found["scenes"]) == 1
    bad = made.ask("live", other.replace("softmax", "sofmax"))
    assert bad["scenes"] == [] and bad["faults"][0]["line"] == 11 and "nn.softmax" in bad["faults"][0]["help"]
    assert "not good" in made.ask("begin_with", "def @main(")["error"], "nothing changes"
    assert made.ask("rows")["title"] == "mlp"
    rows = made.ask("begin_with", other)
    assert rows["title"] == "mlp (edited)" and "tanh" in str(made.frames.modules[-1])
    assert "tanh(" in made.ask("source")["text"] and made.small is made.pipeline.source
    assert made.ask("check", len(rows["rows"]) - 1)["ok"]
    assert made.ask("edit", "undo", 0)["title"] == "mlp" and made.ask("source")["text"] == text


def test_measured_times_are_carried_back_to_any_stage(resnet):
    """What a kernel takes is shared out among the nodes that became it; what became a constant took no time."""
    last = len(resnet.frames) - 1
    kernels = sum(resnet.times().values())
    fused = next(k for k in resnet.frames.changing() if resnet.pipeline.items[k - 1].name == "FuseOps")
    for frame, share in ((0, 0.5), (fused - 1, 1)):  # layout transforms are no nodes of the source
        found = resnet.ask("overlay", "time", frame)
        nodes = {n.id: n for n in resnet.frames.views[frame].nodes}
        spent = {k: v for k, v in found["values"].items() if k in nodes}
        assert (
            share * kernels <= sum(spent.values()) * 1.001 <= kernels * 1.002 and "shared out by MACs" in found["note"]
        )
        assert {n.id for n in nodes.values() if n.operator == "nn.conv2d"} <= spent.keys()
    assert resnet.ask("overlay", "time", last)["note"] == ""
    simple = resnet.frames.changing()[0]
    folded = [n.id for n in resnet.frames.views[simple].nodes if n.operator == "sqrt"]
    assert folded and not set(folded) & resnet.ask("overlay", "time", simple)["values"].keys()


def test_an_operator_is_told_with_its_numpy_code_and_where_the_pointer_rests(resnet):
    conv = next(n for n in resnet.frames.views[0].nodes if n.operator == "nn.relu")
    assert resnet.ask("node", 0, conv.id)["reference"].endswith("return np.where(data < 0, data.dtype.type(0), data)")
    (scene,) = resnet.ask("picture", 0, 0)["scenes"]
    (figure,) = (f for f in scene["figures"] if f["id"] == conv.id)
    assert figure["label"] == "nn.relu\nRectified linear unit: max(x, 0)."


@pytest.mark.parametrize(
    "what, args, words",
    [
        ("check", [3], "operator 2 of "),
        ("bisect", [], "stage 1 of "),
        ("kernel", [-1, "main/nn.dense"], "kernel 2 of "),
    ],
)
def test_long_work_says_its_parts_and_stops_in_the_middle(what, args, words, monkeypatch):
    """Each part is heard, a stop at any of them is an answer, and the same question is answered afterwards."""
    monkeypatch.setattr(progress, "EVERY", 0.0)
    session = Session(study.explore("mlp"))
    args = [len(session.frames) - 1 if a == -1 else a for a in args]
    told: list[str] = []

    def hear(part: str) -> None:
        told.append(part)
        if part.startswith(words) or f", {words}" in part:
            raise KeyboardInterrupt

    session.pipeline.doing = hear
    message = {"id": 1, "what": what, "args": args}
    assert session.reply(message)["answer"] == {"error": "stopped"} and len(told) > 0
    session.pipeline.doing = told.append
    assert "error" not in session.reply(message)["answer"] and any(words in part for part in told)


def test_loops_of_a_kernel_under_steps_of_ones_own(mlp):
    """Without steps nothing changes; with some the loops do and the numbers stay; wrong ones are refused."""
    last = len(mlp.frames) - 1
    plain = mlp.ask("loops", last, "main/nn.dense", "")
    assert {row[0] for row in plain["rows"]} == {" "} and min(plain["times"]) > 0
    assert any(usage.startswith("split ") and says for usage, says in plain["known"])
    found = mlp.ask("loops", last, "main/nn.dense", "split i1 8\nvectorize i1i")
    changed = [text for mark, text, _, _ in found["rows"] if mark == "+"]
    assert any("for i1i in 8 vectorized" in text for text in changed) and found["error_size"] < 1e-5
    wrong = mlp.ask("loops", last, "main/nn.dense", "split i1 8\nreorder k nowhere")
    assert "there is no loop `nowhere`" in wrong["error"] and "step 2" in wrong["error"]
    assert "error" in mlp.ask("loops", last, "main/%data", "")


def test_a_picture_runs_from_left_to_right_if_wished(mlp):
    """The same boxes, one beside the other where they stood one below the other."""
    down, right = (mlp.ask("picture", 0, 0, "merged", closed)["scenes"][0] for closed in ("", "→"))
    assert down["height"] > down["width"] and right["width"] > right["height"]
    assert {f["id"] for f in down["figures"]} == {f["id"] for f in right["figures"]}


def test_the_memory_plan_is_a_picture_with_names(resnet):
    figures = resnet.ask("memory")["scene"]["figures"]
    assert any("conv2d" in f["label"] for f in figures if f["kind"] == "node")
    assert any(str(shape[3]).startswith("step 0") for f in figures for shape in f["shapes"] if shape[0] == "t")
