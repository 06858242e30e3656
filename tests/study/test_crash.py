"""A pass that stops the pipeline is named with its error, its line and a program that shows it."""

from __future__ import annotations

import json
import traceback

import pytest

from relaylab import relay, study
from relaylab.explorer import Session
from relaylab.ir import Call, rewrite
from relaylab.transform.pattern import is_op, wildcard
from relaylab.transform.rewriting.rules import apply_rules, rule

MOD = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(3), float32]) { tanh(add(%x, %x)) }')


@relay.transform.function_pass(opt_level=0)
def Boom(func, mod, ctx):
    return rewrite(func, lambda new, old: new.args[7] if isinstance(new, Call) else new)


@rule(is_op("add")(wildcard(), wildcard()))
def there(root):
    return relay.multiply(*root.args)


@rule(is_op("multiply")(wildcard(), wildcard()))
def back(root):
    return relay.add(*root.args)


@relay.transform.function_pass(opt_level=0)
def Endless(func, mod, ctx):
    return apply_rules(func, [there, back], mod)


@relay.transform.module_pass(opt_level=0)
def Careless(mod, ctx):
    var = relay.var("t", shape=(3,))
    return relay.IRModule.from_expr(relay.Tuple([relay.Let(var, relay.ones((3,), "float32"), var), var]))


@relay.transform.function_pass(opt_level=0)
def Wrong(func, mod, ctx):
    return rewrite(func, lambda n, o: relay.sin(*n.args) if isinstance(n, Call) and n.op.name == "tanh" else n)


def explored(*passes):
    return study.explore(MOD, passes=["FoldConstant", *passes, "FuseOps"])


@pytest.mark.parametrize(
    "made, kind, words",
    [
        (Boom, IndexError, "raised IndexError: tuple index out of range"),
        (Endless, RuntimeError, "raised error[rewrite.endless]: rewriting does not end"),
        (Careless, RuntimeError, "left a broken program: error["),
    ],
)
def test_it_is_named_by_bisect(made, kind, words, tmp_path):
    found = study.bisect(study.load(MOD), passes=["FoldConstant", made, "FuseOps"])
    assert isinstance(found, study.Crash) and found.stage.name == made.info.name and words in str(found)
    assert isinstance(found.error, kind) and found.to_dict()["pass"] == made.info.name
    text = found.save(tmp_path / "show.py").read_text()
    with pytest.raises(kind) as again:
        exec(compile(text, "show.py", "exec"), {})
    assert type(again.value) is type(found.error) or not found.raised  # what is found broken is told again
    assert json.loads(found.save(tmp_path / "show.json").read_text())["raised"] == found.kind


def test_its_line_is_that_of_python():
    found = explored(Boom).crash
    calls = traceback.extract_tb(found.error.__traceback__)
    assert found.site.place == f"test_crash.py:{calls[-1].lineno}" and "new.args[7]" in found.site.code
    assert [t.place.split(":")[0] for t in found.trace if not t.ours] == ["test_crash.py", "test_crash.py"]
    assert len(found.trace) == len(calls)


def test_numbers_that_were_wrong_before_come_first():
    found = study.bisect(study.load(MOD), passes=[Wrong, Boom])
    assert isinstance(found, study.Finding) and found.stage.name == "Wrong"
    assert study.bisect(study.load(MOD), passes=[Boom, Wrong]).stage.name == "Boom"


def test_a_crash_that_only_the_large_form_has_is_found():
    @relay.transform.module_pass(opt_level=0)
    def NoLargeOnes(mod, ctx):
        if any(256 in p.checked_type.concrete_shape for p in mod["main"].params):
            raise ValueError("too large")
        return mod

    large = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(256), float32]) { tanh(%x) }')
    program = study.Program("net", large, small=lambda: (MOD, {}))
    assert "ValueError: too large" in str(study.bisect(program, passes=[NoLargeOnes]))


def test_the_explorer_opens_there():
    session = Session(explored("FuseOps", Boom))
    assert session.first == 3 and session.ask("rows")["rows"][2]["error_kind"] == "IndexError"
    found = session.ask("failure", 2)
    assert found["kind"] == "IndexError" and found["at"].startswith("test_crash.py:") and "Boom" in found["reproducer"]
    assert [ours for *_, ours in found["trace"]][-1] is False and json.dumps(found)
    assert "did not fail" in session.ask("failure", 0)["error"]
    said = session.ask("bisect")
    assert said["found"] and said["index"] == 2 and "Boom raised IndexError" in said["text"] and "scene" not in said
    assert [str(r) for r in explored(Boom).rows if "stopped here: IndexError" in str(r)]
