"""The magics, run as cells of a shell: results, bindings, and errors of one line."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter

from relaylab.lab.scrolled import ScheduleTried
from relaylab import study
from relaylab.explorer.questions.passes import rows
from relaylab.explorer.session import Session
from relaylab.ir import IRModule
from relaylab.transform import PASSES
from relaylab.viz import Difference, Picture

pytestmark = pytest.mark.slow


def test_text_becomes_a_module(cell, ip):
    result = cell("%%relay net\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    assert result.success and isinstance(result.result, IRModule) and ip.user_ns["net"] is result.result
    assert "nn.relu" in str(ip.user_ns["net"])


def test_a_wrong_program_shows_a_caret_and_no_traceback(cell):
    result = cell("%%relay net\ndef @main(%x: Tensor[(2, 3), float32]) { nn.rel(%x) }")
    assert not result.success
    assert "^^^^^^" in result.out and "did you mean `nn.relu`" in result.out and "Traceback" not in result.out


@pytest.mark.parametrize(
    "line, words",
    [
        ("%relay_viz md", "did you mean `mod`"),
        ("%relay_viz mod --engineer dot", "did you mean `--engine`"),
        ("%relay_viz", "required: program; %relay_viz PROGRAM"),
        ("%relay_viz nowhere", "is not defined"),
        ("%relay_viz mod.main", "`mod.main` raises AttributeError: "),
        ("x = [1]\n%relay_viz x", "`x` is a list, expected an IRModule"),
        ("%relay_viz mod --engine dott", "invalid choice"),
        ("%relay_viz mod -o 3x", "`3x` is not a name"),
        ("%relay_viz mod --diff md", "did you mean `mod`"),
        ("%relay_passes mod -p FoldConstant,FusOps", "did you mean `FuseOps`"),
        ("%relay_passes", "name a program"),
        ("%relay_run mod x", "write name=expression"),
        ("%relay_diff mod 1+", "is not an expression"),
        ("x = 3\n%relay_passes mod -p FuseOps,x", "`x` is an int, expected a pass"),
        ("x = 3\n%relay_diff mod --pipelines default x", "`x` is an int, expected a pass"),
        ("x = 3\n%relay_diff mod --rewrites x", "`x` is an int, expected a pass"),
        ("%relay_build mod -q -o lib\n%relay_run lib --check", "`lib` is compiled; --check needs"),
        ("%relay_build mod -q -o lib\n%relay_profile lib --operators", "`lib` is compiled; --operators needs"),
        ("%relay_run mod --seed -1", "zero or above"),
    ],
)
def test_mistakes_are_one_line(cell, line, words):
    result = cell(line)
    assert not result.success
    assert words in result.err and result.err.strip().count("\n") == 0 and "Traceback" not in result.out + result.err


@pytest.mark.parametrize(
    "line, words",
    [
        ("%relay_run mod y=3", "no input `y`"),
        ("%relay_viz mod -f mian", "mian"),
        ("%relay_asm lib rexu", "there is no kernel `rexu`"),
        ("%relay_viz mod --select opp:add", "did you mean `op`?"),
        ("%relay_viz mod --focus nowhere", "nowhere"),
        ("%relay_viz mod --overlay maks", "there are: bytes read"),
        ("%relay_viz mod --diff mod --engine dot", "there is no option `engine`"),
    ],
)
def test_errors_of_programs_have_no_traceback(cell, line, words):
    cell("%relay_build mod -o lib -q")
    result = cell(line)
    assert not result.success and words in result.out + result.err and "Traceback" not in result.out + result.err


def test_quiet_binding_and_semicolon(cell, ip):
    assert isinstance(cell("%relay_viz mod").result, Picture)
    assert cell("%relay_viz mod;").result is None
    assert cell("%relay_viz mod -q -o pic").result is None and isinstance(ip.user_ns["pic"], Picture)


@pytest.mark.parametrize(
    "line",
    [
        "%relay_passes mod --static", "%relay_diff mod mlp --view text", "%relay_diff mod --pipelines default FuseOps",
        "%relay_build mod", "%relay_why mod", "%relay_profile mod -n 1", "%relay_asm mod", "%relay_asm mod relu",
    ],
)  # fmt: skip
def test_every_magic_can_be_quiet_and_bind(cell, ip, line):
    found = cell(f"{line} -q -o kept")
    assert found.success and found.result is None and not found.out and not found.html and "kept" in ip.user_ns


def test_viz_selects_focuses_and_compares(cell, tmp_path):
    plain = str(cell("%relay_viz resnet18").result)
    assert cell("%relay_viz resnet18 --select 'op:nn.conv2d & cost>1e8'").success
    assert len(str(cell("%relay_viz resnet18 --focus op:nn.softmax --hops 2").result)) < len(plain) / 4
    assert len(str(cell("%relay_viz resnet18 --fold").result)) < len(plain)
    assert cell(f"%relay_viz mod --overlay bytes --save {tmp_path}/b.svg;").success
    cell("%%relay other -q\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    assert isinstance(cell("%relay_viz mod --diff other").result, Difference)
    assert cell("%relay_viz mod --diff other --direction LR").result.options.direction == "LR"


def test_viz_writes_files(cell, tmp_path):
    for suffix in ("svg", "pdf", "html", "dot", "txt", "json"):
        assert cell(f"%relay_viz mod --save {tmp_path}/g.{suffix};").success
        assert (tmp_path / f"g.{suffix}").stat().st_size > 50


def test_diff_shows_picture_and_text(cell):
    cell("%%relay other -q\ndef @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    result = cell("%relay_diff other mod")
    assert isinstance(result.result, Difference) and "+   %0 = add" in result.out
    shown = cell("%relay_diff other mod --view text")
    assert shown.result is None and "\x1b" not in shown.out  # this is no terminal
    assert "%x</span>)" in shown.html and "%0</span>)" in shown.html


def test_single_rewrites_are_shown(cell):
    found = cell("%relay_diff mlp --rewrites FuseOps")
    page = found.result._repr_mimebundle_()["text/html"]
    assert "one kernel: nn.dense, add, nn.relu" in found.out and page.count("<img") == len(found.result) == 5


def test_build_run_profile_asm(cell, ip):
    assert "1 step of 1 kernel," in cell("%relay_build mod -o lib").out
    x = np.array([[1, 2, 3], [4, 5, -6]], "float32")
    ip.user_ns["x"] = x
    np.testing.assert_allclose(cell("%relay_run lib x=x").result, np.maximum(2 * x, 0))
    np.testing.assert_allclose(
        cell("%relay_run mod x=[[1,2,3],[4,5,-6]] -q -o out").result or ip.user_ns["out"], np.maximum(2 * x, 0)
    )
    assert "agrees with" in cell("%relay_run mod --check -q").out
    assert "Duration (us)" in cell("%relay_profile lib -n 2").out
    assert "fused_add_nn_relu" in cell("%relay_asm lib").out
    listing = cell("%relay_asm lib relu --stage all").out
    assert "max(" in listing and "define " in listing and "ret" in listing
    assert (
        "know their Relay nodes" in cell("%relay_asm lib relu").out
        and "generic lowering" in cell("%relay_asm lib relu --stage why").out
    )
    assert "loop" in str(cell("%relay_asm lib relu --picture").result)
    profiled = cell("%relay_profile lib -n 2 --hot 1").out
    assert "Roof %" in profiled and "1. tvmgen_default_fused_add_nn_relu" in profiled and "nn.relu(%" in profiled


def test_passes_as_a_table_and_as_files(cell, ip, tmp_path):
    result = cell(f"%relay_passes mod --static --html {tmp_path}/x.html --pdf {tmp_path}/x.pdf")
    assert (
        "FuseOps" in result.out
        and (tmp_path / "x.html").exists()
        and (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    )
    assert "ToANormalForm" in cell("%relay_passes mod --static -p FoldConstant,ToANormalForm").out
    assert cell("%relay_passes mod --static -p SimplifyInference,CombineParallelConv2D(min_num_branches=4)").success


WRITTEN = """%%relay_pass --on mod
from relaylab import relay
from relaylab.ir import Call, rewrite

@relay.transform.function_pass(opt_level=1)
def drop_relu(func, mod, ctx):
    return rewrite(func, lambda new, old: new.args[0] if isinstance(new, Call) and new.op.name == "nn.relu" else new)
"""


def test_a_pass_written_in_a_cell_shows_what_it_did(cell):
    result = cell(WRITTEN)
    assert result.success, result.out
    assert "-1 nn.relu" in result.out
    again = cell(WRITTEN.replace("nn.relu", "add"))
    assert "-1 add" in again.out


DECLARED = """%%relay_pass --on mod
from relaylab.ir import Call, Function, IRModule, rewrite
from relaylab.transform import FoldConstant, FunctionPass, PassContext, pass_

@pass_(level=1)
class DropInCell(FunctionPass):
    name: str = "nn.relu"

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return rewrite(func, lambda n, o: n.args[0] if isinstance(n, Call) and n.op.name == self.name else n)
"""


def test_a_declared_pass_of_a_cell_is_known_everywhere(cell, ip):
    try:
        assert "-1 nn.relu" in cell(DECLARED).out
        assert "-1 add" in cell(DECLARED.replace("nn.relu", "add")).out, "a cell that is run again"
        found = cell("%relay_passes mod --static -p FoldConstant,DropInCell(name='nn.relu') -o kept")
        assert "-1 nn.relu" in found.out
        copied = ip.user_ns["kept"].pipeline.python()
        assert "class DropInCell(FunctionPass):" in copied and "DropInCell(name='nn.relu')" in copied
        assert "it would change this program" in cell("%relay_why mod DropInCell").out
    finally:
        PASSES.remove("DropInCell")


def test_a_raising_pass_names_the_error(cell):
    result = cell(WRITTEN.replace("return rewrite", "return 1 / 0 or rewrite"))
    assert not result.success and "stopped here: ZeroDivisionError: division by zero" in result.out


def test_bisect_says_that_all_is_well(cell):
    assert "every pass keeps the numbers" in cell("%relay_bisect mod").out
    assert "keeps the numbers: r.py is not written" in cell("%relay_bisect mod --save r.py").out


def test_lists_may_have_blanks_after_their_commas(cell):
    result = cell("%relay_passes mod --static -p FoldConstant, FuseOps")
    assert [line.split()[0] for line in result.out.splitlines() if line] == ["FoldConstant", "FuseOps"]


def test_a_cell_schedules_a_kernel(cell, ip):
    result = cell("%%relay_schedule mod relu -o trial\nsplit i0 2 as o i")
    assert result.success and "for o in" in result.out and "the picked loops" in result.out
    assert ip.user_ns["trial"].error < 1e-5
    assert "% of the roofline" in result.out and "from the loop evaluator's" in result.out
    assert "there is no loop `i7`" in cell("%%relay_schedule mod relu\nsplit i7 2").out
    assert cell("%%relay_schedule mod relu -q\nsplit i0 2").out == ""


def test_a_scheduled_kernel_is_shown_with_its_loops_before_and_after_and_its_code(cell, ip):
    shown = cell("%%relay_schedule mod relu -o trial --code\nsplit i0 2 as o i").out
    assert "-    for i0 in" in shown and "+    for o in" in shown and "define void @" in shown and "retq" in shown
    html = ScheduleTried(ip.user_ns["trial"])._repr_mimebundle_()["text/html"]
    assert html.count("<details>") == 3 and "of the roofline" in html and "assembly" in html


def test_every_magic_has_help(ip):
    for name in [n for n in ip.magics_manager.magics["line"] if n.startswith("relay")]:
        assert ip.magics_manager.magics["line"][name].__doc__


def test_defaults_are_configurable(cell):
    assert cell("%config RelayMagics.opt_level = 0").success
    assert "FuseOps" in cell("%relay_passes mod --static").out
    assert "2 kernels" in cell("%relay_asm mod").out and "2 kernels" in cell("%relay_build mod").out
    cell("%config RelayMagics.opt_level = 3")


def test_programs_draw_themselves(cell):
    bundle = cell("mod").result._repr_mimebundle_()
    assert "<img" in bundle["text/html"] and bundle["image/svg+xml"].startswith("<svg")
    assert "<img" in cell('mod["main"]').result._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("%relay_viz mo", "mod"),
        ("%relay_viz resn", "resnet18"),
        ("%relay_passes mod -p FoldC", "FoldConstant"),
        ("%relay_passes mod -p FoldConstant,FuseO", "FuseOps"),
        ("%%relay_passes -p ToAN", "ToANormalForm"),
        ("%relay_viz mod --dir", "--direction"),
        ("%%relay_pass --o", "--on"),
    ],
)
def test_completion(cell, ip, text, expected):
    with provisionalcompleter():
        assert expected in [c.text for c in ip.Completer.completions(text, len(text))]


def test_what_is_written_in_a_cell_says_which_cell(cell, ip):
    code = """
from relaylab import relay
from relaylab.relay.dataflow_pattern import is_op, wild
from relaylab.transform import rule
@rule(is_op("nn.relu")(wild("x")))
def gone(x):
    return x
call = relay.nn.relu(relay.var("x", shape=(1,)))
"""
    assert cell(code.strip()).success
    assert ip.user_ns["gone"].location.startswith("cell In[") and ip.user_ns["gone"].location.endswith("], line 4")
    assert str(ip.user_ns["call"].span).endswith("], line 7")


def test_two_pipelines_are_compared(cell):
    found = cell("c = None\n%relay_diff mlp --pipelines default default-FuseOps -o c")
    assert found.success and "bytes moved" in found.out and "default-FuseOps" in found.out
    assert cell("c.difference().counts").result == {"removed": 5, "moved": 10}  # of kernels
    assert "did you mean `FuseOps`" in cell("%relay_diff mlp --pipelines default default-FusOps").err
    assert "name two programs" in cell("%relay_diff mod").err


def test_the_heat_map_is_a_result(cell):
    found = cell("%relay_passes mlp --heat").result
    assert "@main" in str(found) and "image/svg+xml" in found._repr_mimebundle_()
    assert "nn.dense" in cell("%relay_passes mlp --heat operator").result.rows


def test_a_pass_whose_rules_do_not_fire_tells_why(cell):
    found = cell("""%%relay_pass --on mod -q
from relaylab import relay
from relaylab.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard

class NoRelu(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.pattern = is_op("nn.relu")(is_op("multiply")(wildcard(), wildcard()))
    def callback(self, pre, post, node_map):
        return post.args[0]

@relay.transform.function_pass(opt_level=0)
def DropRelu(func, mod, ctx):
    return rewrite(NoRelu(), func)
""")
    assert found.success, found.err
    assert "0 × any rule" in found.out and "`multiply` was expected, the node is `add`" in found.out


PASS = "@relay.transform.function_pass(opt_level=0)\ndef {}({}):\n    {}"


@pytest.fixture
def written(cell):
    """`written(body)` runs a cell with a pass over `mod`."""
    cell("from relaylab import relay")
    return lambda body, name="change", params="func, mod, ctx": cell(
        f"%%relay_pass --on mod\n{PASS.format(name, params, body)}"
    )


@pytest.mark.parametrize(
    "body, words",
    [
        ("return None", "does it lack a `return`?"),
        ("return 42", "returned an int"),
        ("raise ValueError('my mistake')", "my mistake"),
        ("return func +", "invalid syntax"),
        ("return (", "incomplete input"),
        ("return relay.Function(func.params, relay.nn.dense(func.body, relay.const([1.0])))", "must have 2 dimensions"),
    ],
)
def test_a_wrong_pass_shows_the_mistake_and_nothing_of_ours(written, body, words):
    result = written(body)
    assert words in result.out and not result.success
    assert "manager.py" not in result.out and "tokenize.py" not in result.out


def test_a_pass_of_the_wrong_shape_is_told_when_it_is_made(written):
    result = written("return func", params="func")
    assert "error[pass.signature]" in result.out and "def change(func, mod, ctx)" in result.out


def test_a_cell_without_a_pass_takes_none_that_an_earlier_cell_made(cell, written):
    written("raise ValueError('the earlier pass')", name="p")
    result = cell("%%relay_pass --on mod\nspam = 'p'.upper()")
    assert "the cell defines no pass" in cell("%%relay_pass --on mod\nspam = 1").err
    assert "the earlier pass" in result.out  # a cell that names it may mean it


@pytest.mark.parametrize(
    "line, words",
    [
        ('%relay_viz "unclosed', "No closing quotation"),
        ("%relay_viz mod --hops 2", "give --focus too"),
        ("%relay_profile mod -n 0", "0 is not a whole number above zero"),
        ("%relay_passes mod -O 9", "choose from 0, 1, 2, 3, 4"),
        ('%relay_passes mod -p "FuseOps("', "is not an expression"),
        ("%relay_passes mod -p FuseOps(nope=1)", "unexpected keyword argument 'nope'"),
        ('%relay_build mod --target "cuda -x"', "no code for the target `cuda -x`"),
        ('%relay_viz mod --select "opp:add | op:add"', "did you mean `op`?"),
    ],
)
def test_quoted_words_and_their_mistakes(cell, line, words):
    result = cell(line)
    assert not result.success and words in result.out + result.err and "Traceback" not in result.out + result.err


def test_what_python_cannot_read_is_no_obstacle(cell, monkeypatch):
    from IPython.core.displayhook import DisplayHook

    read: list[str] = []  # newer Pythons refuse `1f`, all of them an open bracket
    monkeypatch.setattr(
        DisplayHook, "semicolon_at_end_of_expression", staticmethod(lambda text: read.append(text) or False)
    )
    for code in (
        "%%relay one\ndef @main(%x: float32) { %x + 1f }",
        "%relay_viz mod -q",
        "%%relay_pass --on mod\nx = (",
    ):
        cell(code)
    assert not any(read)


def test_a_program_has_kernels_too(cell):
    assert "fused_add_nn_relu" in cell("%relay_asm mod").out


def test_why_and_why_not(cell, ip):
    assert "FuseOps" in cell("%relay_why mod").out and "of" in cell("%relay_why mod").out
    cell(
        "%%relay_pass --on mod -q\nfrom relaylab import relay\n"
        + """from relaylab.relay.dataflow_pattern import is_op, wild
from relaylab.transform import apply_rules, rule
a = wild("a")
@rule(is_op("exp")(is_op("log")(a)))
def back(a):
    return a
@relay.transform.function_pass(opt_level=0)
def Back(func, mod, ctx):
    return apply_rules(func, [back], mod)"""
    )
    assert "back" in cell("%relay_why mod Back").out and "back" in cell("%relay_why mod back --select op:add").out
    assert "one kernel" in cell("%relay_why mod FuseOps -s op:add").out
    assert cell("%relay_why mod FuseOps -q -o found").out == "" and ip.user_ns["found"].reasons
    assert "did you mean `FuseOps`" in cell("%relay_why mod FusOps").err


def test_operators_and_llvms_passes(cell):
    assert "nn.relu" in str(cell("%relay_profile mod -n 2 --operators").result)
    assert "sroa" in cell("%relay_asm mod relu --llvm-passes").out


def test_a_figure_is_known_by_the_name_that_errors_offer(cell):
    assert (
        cell('%relay_viz mod --overlay "bytes read" -q').success
        and cell("%relay_viz mod --overlay bytes_read -q").success
    )


def test_the_notebooks_parameters_are_bound(cell, ip):
    """`params` if they fit, those that --params names; without any a line says so."""
    cell("from relaylab.relay import testing")
    cell("mod, params = testing.mlp.get_workload(batch_size=1)")
    cell("%relay_passes mod --static -o bound")
    assert set(ip.user_ns["bound"].program.params) == set(ip.user_ns["params"])
    assert len(ip.user_ns["bound"].history.mod["main"].params) == 1, "weights are constants"
    x = np.ones((1, 1, 28, 28), "float32")
    expected = study.built(study.Program("m", ip.user_ns["mod"], ip.user_ns["params"])).run(data=x)
    ip.user_ns["x"] = x
    np.testing.assert_allclose(cell("%relay_run mod data=x").result, expected, rtol=1e-5)
    assert list(cell("%relay_build mod").result.get_params()) and cell("%relay_bisect mod").success
    cell("kept = params\ndel params")
    found = cell("%relay_passes mod --static -o free")
    assert "mod: parameters are not bound (--params NAME)" in found.out
    assert len(ip.user_ns["free"].history.mod["main"].params) == 7
    free = ip.user_ns["free"]
    assert "--params NAME" in free.program.title and free.program.name == "mod"
    assert rows(Session(free))["title"] == "mod", "the explorer does not say again what stands above it"
    cell("%relay_passes mod --params kept --static -o named")
    assert len(ip.user_ns["named"].history.mod["main"].params) == 1
    cell("import numpy as np\nparams = {k: np.ones((1, 7)) for k in kept}")
    cell("%relay_passes mod --static -o other")
    assert not ip.user_ns["other"].program.params, "parameters of another program"
    wrong = cell("strange = {'zz': 1}\n%relay_passes mod --params strange --static")
    assert "holds no parameters of this program" in str(wrong.error_in_exec) + wrong.err


def test_the_course(cell, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAYLAB_COURSE_DIR", str(tmp_path))
    assert "| 1 | What is an IR | · count" in cell("%relay_lesson").out
    assert cell("from relaylab.course import check\ncheck('count', (3, 6))").success
    assert "| ✓ count" in cell("%relay_lesson").out
    page = cell("%relay_lesson 2").out
    assert "# Types" in page and 'check("strided", shape)' in page and "(1, 16, 8, 8)" not in page
    assert "hint 1 of 1" in cell("%relay_lesson --hint share").out
    assert "e + e * e" in cell("%relay_lesson --solution share").out
    assert "there is no lesson `99`" in cell("%relay_lesson 99").err


def test_files_are_programs(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a net.relay").write_text("fn (%x: Tensor[(2), float32]) { nn.relu(%x) }")
    assert cell('%relay_run "a net.relay"').result.shape == (2,)


def test_words_in_brackets_are_one(cell):
    cell("import numpy as np\nfrom relaylab import relay\nparams = {}")
    ones = cell("%relay_run mod x=np.ones( (2, 3) )").result
    assert ones.tolist() == [[2.0] * 3] * 2
    assert cell("%relay_viz (mod, params)").success and cell("%relay_passes mod -p FuseOps(0), --static").success
    assert "'(' was never closed" in cell("%relay_run mod x=np.ones((2, 3)").err


def test_the_default_passes_stand_among_others(cell):
    found = cell("%relay_passes mlp -p ToMixedPrecision,default-FuseOps --static").out
    assert found.count("ToMixedPrecision") == 1 and "LabelOps" in found and "FuseOps" not in found
