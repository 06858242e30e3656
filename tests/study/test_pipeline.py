"""A pipeline that is edited runs only what follows the edit, and says itself as text that makes it again."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.support.errors import RelayError
from relaylab.study.pipeline import Pipeline, options_of, pass_of, text_of
from relaylab.study.suggest import suggestions
from relaylab.transform import PassContext, default_passes

TEXT = '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, add(1f, 2f))) }'


@pytest.fixture
def mod():
    return relay.parse(TEXT)


def test_the_same_as_a_sequential(mod):
    pipeline = Pipeline(mod, default_passes(3), 3)
    with PassContext(opt_level=3):
        expected = relay.transform.Sequential(default_passes(3))(mod)
    assert str(pipeline.history.mod) == str(expected)
    assert len(pipeline.modules) == len(pipeline.items) + 1


def test_only_the_tail_runs_again(mod):
    pipeline = Pipeline(mod, ["FoldConstant", "SimplifyExpr", "FuseOps", "InferType"])
    before = str(pipeline.history.mod)
    assert pipeline.runs == 4
    pipeline.toggle(2)
    assert "Primitive" not in str(pipeline.history.mod)
    assert pipeline.runs == 5, "the pass behind the one that was switched off sees another program"
    pipeline.toggle(2)
    assert str(pipeline.history.mod) == before and pipeline.runs == 5
    pipeline.move(2, 0)
    assert pipeline.segments[0].main.name == "FuseOps" and pipeline.runs > 5


def test_items_are_added_set_and_removed(mod):
    pipeline = Pipeline(mod, ["FoldConstant"])
    pipeline.insert(1, "FuseOps(fuse_opt_level=0)")
    assert [i.text for i in pipeline.items] == ["FoldConstant()", "FuseOps(fuse_opt_level=0)"]
    pipeline.set(1, "FuseOps(fuse_opt_level=2)")
    assert "Primitive" in str(pipeline.history.mod)
    pipeline.remove(1)
    assert "Primitive" not in str(pipeline.history.mod)


@pytest.mark.parametrize(
    "text, words",
    [
        ("FusOps", "did you mean `FuseOps`"),
        ("FuseOps(", "is not a pass"),
        ("FuseOps(x)", "is not a pass"),
        ("FuseOps(nonsense=1)", "FuseOps("),
        ("__import__('os')", "there is no pass named `__import__`"),
        ("(lambda: 1)()", "is not a pass"),
    ],
)
def test_wrong_text_is_refused_and_nothing_is_evaluated(text, words):
    with pytest.raises(RelayError) as error:
        pass_of(text)
    assert words in str(error.value)


@pytest.mark.parametrize("vm", [False, True])
def test_default_passes_say_themselves(vm):
    for made in default_passes(4, vm):
        assert pass_of(text_of(made)).info.name == made.info.name


def test_a_pass_that_raises_keeps_what_was_before(mod):
    @relay.transform.module_pass(opt_level=0)
    def Fails(mod, ctx):
        raise ValueError("on purpose")

    pipeline = Pipeline(mod, ["FoldConstant", Fails, "FuseOps"])
    assert str(pipeline.history.error) == "on purpose"
    assert [s.ran for s in pipeline.segments] == [True, True, False]
    assert pipeline.segments[0].changed and str(pipeline.history.mod) == str(pipeline.segments[0].after)
    pipeline.toggle(1)
    assert pipeline.history.error is None and "Primitive" in str(pipeline.history.mod)


def test_the_python_of_a_pipeline_makes_it(mod):
    pipeline = Pipeline(mod, default_passes(3), 3)
    namespace = {"mod": mod}
    exec(pipeline.python(), namespace)
    assert str(namespace["mod"]) == str(pipeline.history.mod)


def test_suggestions_change_the_program(mod):
    found = suggestions(mod)
    names = {s.name for s in found}
    assert not {"AnnotateSpans", "CapturePostDfsIndexInSpans"} & {*names, *found.quiet}, "they change places alone"
    assert {"FoldConstant", "FuseOps"} <= names and not {"FlattenAtrousConv", "PrintIR", "InferType"} & names


def test_edits_are_undone_and_done_again(mod):
    pipeline = Pipeline(mod, ["FoldConstant", "FuseOps"])
    names = [[i.name for i in pipeline.items]]
    for edit in (lambda: pipeline.move(1, 0), lambda: pipeline.insert(2, "FastMath"), lambda: pipeline.remove(0)):
        edit()
        names.append([i.name for i in pipeline.items])
    for expected in reversed(names[:-1]):
        pipeline.undo()
        assert [i.name for i in pipeline.items] == expected
    with pytest.raises(RelayError, match="no edit to undo"):
        pipeline.undo()
    for expected in names[1:]:
        pipeline.redo()
        assert [i.name for i in pipeline.items] == expected
    pipeline.undo()
    pipeline.toggle(0)
    with pytest.raises(RelayError, match="no edit to redo"):
        pipeline.redo()


def test_a_branch_is_edited_by_itself_and_knows_what_is_known(mod):
    pipeline = Pipeline(mod, ["FoldConstant", "FuseOps"])
    assert pipeline.segments and pipeline.runs == 2
    branch = pipeline.branch()
    assert branch.segments[0] is pipeline.segments[0] and branch.runs == 0
    branch.toggle(1)
    assert "Primitive" in str(pipeline.history.mod) and "Primitive" not in str(branch.history.mod)


def test_options_of_a_pass():
    assert [(o.name, o.value, o.default) for o in options_of(pass_of("FuseOps(fuse_opt_level=2)"))] == [
        ("fuse_opt_level", "2", "-1")
    ]
    layouts = options_of(pass_of('ConvertLayout({"nn.conv2d": ["NHWC", "default"]})'))
    assert layouts[0].default == "" and "NHWC" in layouts[0].value
    assert options_of(pass_of("InferType")) == []


def bind_twice(func):
    var = relay.var("a", shape=(2, 3))
    return relay.Tuple([relay.Let(var, func.body, var), relay.Let(var, func.body, var)])


def out_of_scope(func):
    var = relay.var("a", shape=(2, 3))
    return relay.Tuple([relay.Let(var, func.body, var), var])


@pytest.mark.parametrize(
    "change, rule, node",
    [
        (bind_twice, "%a is bound twice", "let %a"),
        (out_of_scope, "%a is used out of its scope", "%a"),
        (lambda func: relay.nn.dense(func.body, relay.const([[1.0, 2.0]])), "inner dimensions", "nn.dense"),
        (lambda func: relay.add(func.body, relay.var("q", shape=(2, 3))), "%q without binding it", "@main"),
    ],
)
def test_a_broken_program_names_the_pass_the_rule_and_the_node(mod, change, rule, node):
    @relay.transform.module_pass(opt_level=0)
    def Breaks(mod, ctx):
        func = mod["main"]
        return relay.IRModule({"main": relay.Function(func.params, change(func))})

    pipeline = Pipeline(mod, ["FoldConstant", Breaks, "FuseOps"])
    error = str(pipeline.segments[1].error)
    assert rule in error and node in error and [s.ran for s in pipeline.segments] == [True, True, False]
    assert rule in str(study.explore(mod, passes=[Breaks]).history.error)
    unchecked = Pipeline(mod, [Breaks], verify=False)
    assert unchecked.history.error is None or rule in "%q without binding it"


def test_what_a_pass_leaves_untyped_gets_its_types_with_that_pass() -> None:
    mod = relay.transform.InferType()(
        relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32], %c: bool) {
  %0 = exp(%x);
  if (%c) { tanh(%0) } else { nn.relu(%0) }
}""")
    )
    pipeline = Pipeline(mod, ["ToBasicBlockNormalForm", "IntegerProducts"])
    first, second = pipeline.segments
    assert first.main is not None and first.main.name == "ToBasicBlockNormalForm" and first.changed
    assert first.after["main"].inferred is not None and not second.changed
