"""The pass manager: levels, requirements, instruments, decorators, configuration, errors."""

from __future__ import annotations

import threading

import pytest
from support.programs import random_program

import relaylab.text  # noqa: F401
from relaylab import relay
from relaylab.ir import (
    Call,
    Constructor,
    ExprMutator,
    Function,
    GlobalTypeVar,
    If,
    IRModule,
    Op,
    TypeData,
    TypeVar,
    const,
)
from relaylab.ir.trail import current_trail, kept_trail
from relaylab.support.errors import RelayAttributeError, RelayTypeError, RelayValueError
from relaylab.transform import (
    PASSES,
    PassContext,
    PassInstrument,
    PassTimingInstrument,
    Sequential,
    build_config,
    create,
    function_pass,
    module_pass,
    optimize,
    pass_instrument,
    run_pipeline,
)


@pytest.fixture
def mod() -> IRModule:
    return random_program(1, features={"graph", "let"})


@pass_instrument
class Log:
    """Writes down what happens."""

    def __init__(self, name: str = "log", run: bool = True, log: list | None = None):
        self.tag, self.run, self.log = name, run, [] if log is None else log

    def enter_pass_ctx(self):
        self.log.append((self.tag, "enter"))

    def exit_pass_ctx(self):
        self.log.append((self.tag, "exit"))

    def should_run(self, mod, info):
        return self.run or info.name == "InferType"

    def run_before_pass(self, mod, info):
        self.log.append((self.tag, "before", info.name))

    def run_after_pass(self, mod, info):
        self.log.append((self.tag, "after", info.name))


def names(log: Log) -> list[str]:
    return [entry[2] for entry in log.log if entry[1] == "after"]


def test_a_pass_tells_what_it_is():
    p = create("FoldScaleAxis")
    assert (p.info.name, p.info.opt_level) == ("FoldScaleAxis", 0)
    assert str(create("FuseOps").info).endswith("pass name: FuseOps, opt_level: 0, required passes: [InferType]")
    assert PASSES["ConvertLayout"].signature.startswith("ConvertLayout(desired_layouts")
    assert all(entry.summary.endswith(".") for entry in PASSES.values())


def test_sequential_runs_what_the_level_and_the_lists_enable(mod):
    order = [create("FoldConstant"), create("EliminateCommonSubexpr"), create("FastMath")]
    for ctx, expected in [
        (PassContext(2), {"FoldConstant"}),
        (PassContext(4), {"FoldConstant", "EliminateCommonSubexpr", "FastMath"}),
        (PassContext(0, required_pass=["FastMath"]), {"FastMath"}),
        (PassContext(4, disabled_pass=["FoldConstant", "FastMath"]), {"EliminateCommonSubexpr"}),
    ]:
        ctx.override_instruments([log := Log()])
        with ctx:
            Sequential(order)(mod)
        assert set(names(log)) - {"InferType", "sequential"} == expected


def test_a_direct_call_ignores_levels_and_requirements(mod):
    log = Log()
    with PassContext(0, disabled_pass=["FastMath"], instruments=[log]):
        create("FastMath")(mod)
    assert names(log) == ["InferType", "FastMath"]  # the one after a function pass; none before


def test_a_direct_call_on_an_untyped_module_infers_types_if_the_pass_needs_them():
    untyped = random_program(1, features={"graph", "let"}, typed=False)
    log = Log()
    with PassContext(instruments=[log]):
        create("FuseOps")(untyped)
    assert names(log) == ["InferType", "InferType", "FuseOps"]


def test_requirements_run_first_in_a_sequential(mod):
    log = Log()
    with PassContext(4, instruments=[log]):
        Sequential([create("FastMath")])(mod)
    assert names(log) == ["InferType", "InferType", "FastMath", "sequential"]


def test_an_instrument_can_skip_a_pass_unless_it_is_required(mod):
    for required, expected in [((), ["InferType"]), (["FastMath"], ["InferType", "InferType", "FastMath"])]:
        log = Log(run=False)
        with PassContext(4, required_pass=required, instruments=[log]):
            for p in ("InferType", "FastMath"):
                create(p)(mod)
        assert names(log) == expected


def test_an_instrument_has_the_name_of_its_class_or_one_of_its_own():
    @pass_instrument
    class Named:
        def __init__(self, name=None):
            if name:
                self.name = name

    assert Named().name == "Named" and Named("mine").name == "mine"


def test_instruments_enter_and_leave_with_the_context():
    log: list = []
    with PassContext(instruments=[Log("a", log=log), Log("b", log=log)]):
        pass
    assert log == [("a", "enter"), ("b", "enter"), ("a", "exit"), ("b", "exit")]


def test_an_error_on_entering_leaves_what_was_entered_and_drops_all():
    log: list = []

    class Broken(PassInstrument):
        def enter_pass_ctx(self):
            raise ValueError("broken")

    ctx = PassContext(instruments=[Log("a", log=log), Broken(), Log("c", log=log)])
    with pytest.raises(ValueError, match="broken"), ctx:
        pass
    assert log == [("a", "enter"), ("a", "exit")]
    assert ctx.instruments == []


def test_timing_nests_and_ends_with_the_context(mod):
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        create("SimplifyInference")(mod)
        lines = timing.render().splitlines()
    assert lines[0].startswith("SimplifyInference: ") and lines[1].startswith("\tInferType: ")
    assert timing.render() == ""


def test_contexts_are_of_one_thread():
    seen = []
    with PassContext(opt_level=4):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current().opt_level))
        thread.start()
        thread.join()
        assert PassContext.current().opt_level == 4
    assert seen == [2] and PassContext.current().opt_level == 2


def test_configuration_is_checked_by_name_and_by_type():
    assert PassContext(config={"relay.FuseOps.max_depth": 5}).config == {"relay.FuseOps.max_depth": 5}
    with pytest.raises(RelayAttributeError, match="Invalid config option") as e:
        PassContext(config={"relay.FuseOps.maxdepth": 5})
    assert "relay.FuseOps.max_depth" in str(e.value)
    with pytest.raises(RelayAttributeError, match="cannot be 'five'"):
        PassContext(config={"relay.FuseOps.max_depth": "five"})
    assert PassContext.list_configs()["relay.FuseOps.max_depth"] == {"type": "IntImm"}
    assert build_config(opt_level=1).opt_level == 1


class ReluForTanh(ExprMutator):
    """A learner's pass."""

    def visit_call(self, call):
        new = super().visit_call(call)
        return Call(Op.get("nn.relu"), new.args) if new.op is Op.get("tanh") else new


def test_passes_can_be_written_as_functions_and_as_classes(mod):
    @function_pass(opt_level=1)
    def by_function(func, mod, ctx):
        return ReluForTanh().visit(func)

    @function_pass(opt_level=1, name="ByClass", required=["InferType"])
    class ByClass:
        def __init__(self, scale=1):
            self.scale = scale

        def transform_function(self, func, mod, ctx):
            return ReluForTanh().visit(func)

    @module_pass(opt_level=2)
    def whole(mod, ctx):
        return by_function(mod)

    made = ByClass(scale=3)
    assert (made.scale, made.info.name, made.info.required) == (3, "ByClass", ("InferType",))
    for p in (by_function, made, whole):
        text = str(p(mod))
        assert "nn.relu" in text and "tanh" not in text
    assert "tanh" in str(mod)


def test_decorators_explain_what_they_miss():
    with pytest.raises(RelayValueError, match="opt_level"):
        function_pass(lambda f, m, c: f)
    with pytest.raises(RelayTypeError, match="transform_function"):
        function_pass(type("NoMethod", (), {}), opt_level=1)
    with pytest.raises(RelayTypeError, match="not an int"):
        module_pass(3, opt_level=1)


def test_a_wrong_result_names_the_pass(mod):
    @function_pass(opt_level=0)
    def forgot(func, mod, ctx):
        ReluForTanh().visit(func)

    with pytest.raises(RelayTypeError, match="forgot returned a NoneType"):
        forgot(mod)
    with pytest.raises(RelayTypeError, match="works on an IRModule"):
        create("FuseOps")(mod["main"])
    with pytest.raises(RelayAttributeError, match="no pass named") as e:
        create("FuseOp")
    assert "FuseOps" in str(e.value)


def test_functions_for_other_compilers_are_left_alone(mod):
    foreign = mod["main"].with_attr("Compiler", "other")
    marked = create("InferType")(IRModule({"main": foreign}))

    @function_pass(opt_level=0)
    def fail(func, mod, ctx):
        raise AssertionError("must not run")

    assert fail(marked) is marked


def test_a_learners_pass_leaves_a_trail(mod):
    @function_pass(opt_level=0)
    def learn(func, mod, ctx):
        return ReluForTanh().visit(func)

    history = run_pipeline(mod, [learn])
    stage = history["learn"]
    calls = [n for n in stage.tracker.old if isinstance(n, Call) and n.op is Op.get("tanh")]
    assert calls and stage.changed and not stage.unaccounted()
    for call in calls:
        new = stage.became(call)
        assert isinstance(new, Call) and new.op is Op.get("nn.relu") and stage.parents(new) == (call,)
        assert new.span == call.span


def test_without_a_history_no_trail_is_kept(mod):
    kept = []

    @function_pass(opt_level=0)
    def learn(func, mod, ctx):
        new = ReluForTanh().visit(func)
        trail = current_trail()
        kept.append((kept_trail(), trail.became, trail.parents))
        return new

    learn(mod)
    assert kept == [(None, {}, {})]
    stage = run_pipeline(mod, [learn])["learn"]
    assert kept[1][0] is stage.trail and stage.trail.became and stage.trail.parents


def test_an_error_keeps_the_history_up_to_it(mod):
    @function_pass(opt_level=0)
    def broken(func, mod, ctx):
        ReluForTanh().visit(func)
        raise KeyError("inside")

    history = run_pipeline(mod, [create("ToANormalForm"), broken, create("FuseOps")])
    assert isinstance(history.error, KeyError) and len(history) == 2
    last = history[-1]
    assert last.error is history.error and last.after is None and last.trail.became
    assert history.mod is history[0].after


def test_history_follows_nodes_over_stages(mod):
    history = run_pipeline(mod, ["SimplifyExpr", "ToANormalForm", "FuseOps"], PassContext(opt_level=3))
    assert history.error is None
    for node in history[-1].tracker.new:
        if isinstance(node, (Call, Function)):
            assert history.parents(node), node
    body = mod["main"].body
    there = history.became(body)
    assert there is None or there in history[-1].tracker.new
    assert len(history.modules) == len(history) + 1


def test_skipped_passes_say_why(mod):
    history = run_pipeline(mod, ["FastMath", "FoldConstant"], PassContext(1, disabled_pass=["FoldConstant"]))
    assert [(s.name, s.skipped) for s in history] == [("FastMath", "needs opt_level 4"), ("FoldConstant", "disabled")]


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize("vm", [False, True])
def test_a_required_pass_is_in_the_default_pipeline_at_any_level(level: int, vm: bool) -> None:
    x = relay.var("x", shape=(3,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    for required in ([], ["FastMath"]):
        with PassContext(opt_level=level, required_pass=required):
            compiler = relay.vm.VMCompiler() if vm else relay
            texts = [optimize(mod, vm=vm), compiler.optimize(mod, "llvm")[0]]
        assert all(("fast_exp" in m.astext()) == bool(required) for m in texts)
    with PassContext(opt_level=level, required_pass=["FastMath"]):
        assert any("fast_exp" in kernel for kernel in relay.build(mod, target="llvm").kernels())


@pytest.mark.parametrize("name", ["FoldConstant", "DynamicToStatic"])
def test_what_is_folded_away_may_have_told_a_type(name: str) -> None:
    box, kind = GlobalTypeVar("Box"), TypeVar("A")
    empty, single = Constructor("Empty", [], box), Constructor("Single", [kind], box)
    mod = IRModule(None, {box: TypeData(box, [kind], [empty, single])})
    mod["main"] = Function([], If(const(True), Call(empty, []), Call(single, [const(1.0)])))
    folded = PASSES[name].make()(mod)["main"]
    assert isinstance(folded.body, Call) and str(folded.ret_type) == "Box[float32]"
