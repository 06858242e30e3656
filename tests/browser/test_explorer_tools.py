"""The explorer's tools in a real JupyterLab: filter, views, ways, parts, heat maps of values, tables."""

from __future__ import annotations

import pytest
from support.explorer import press, saved
from support.stages import RESNET8, step
from test_explorer_live import open_explorer, shown

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def button(page, text):
    return page.locator(".rl-explorer .rl-button", has_text=text)


def passes_are_filtered(page):
    """The filter of the list of passes: names, functions, operators, kinds of change."""
    page.locator(".rl-filter").fill("fold")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.rl-pass .rl-name')].every(e => e.innerText.includes('Fold'))"
    )
    assert page.locator(".rl-pass .rl-name").count() == 3 and "other passes" in page.locator(".rl-list").inner_text()
    changing = len(RESNET8.changing)
    for text, passes in (("@main", changing), ("kind:added", 2), ("op:layout_transform kind:removed", 1), ("@no", 0)):
        page.locator(".rl-filter").fill(text)
        page.wait_for_function(
            f"() => document.querySelectorAll('.rl-pass .rl-name').length === {passes}", timeout=20_000
        )
    assert page.locator(".rl-filter").get_attribute("placeholder") == "@main op:add kind:added"
    page.locator(".rl-filter").fill("")


def focus_and_back(nb, page, shot):
    """A node with what is near it, laid out for itself."""
    nb.python("w.selected = 'main/nn.conv2d.2'")
    page.wait_for_selector(".node.selected")
    press(page, "Focus")
    page.wait_for_function("() => document.querySelector('.rl-legend').innerText.includes('within 2 edges')")
    page.wait_for_function("() => document.querySelectorAll('.rl-view .node').length < 12")
    assert "… " in page.locator(".rl-view").inner_text()
    shot("focus")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.rl-legend').innerText.includes('within')")
    nb.python("w.selected = ''")


def options_of_a_pass(page, shot):
    """The options of a pass, each with what it does."""
    page.locator(f'.rl-pass[data-index="{RESNET8["FuseOps"] - 1}"]').hover()
    page.locator(f'.rl-pass[data-index="{RESNET8["FuseOps"] - 1}"] .rl-tool[title="options"]').click()
    page.wait_for_selector(".rl-form label .rl-dim")
    assert page.locator(".rl-form label").count() == page.locator(".rl-form [aria-label]").count() >= 1
    shot("options")
    page.locator(".rl-form [aria-label]").first.press("Escape")


def views_are_kept(nb, page, shot):
    """A view is kept, left, and come back to."""
    nb.python(f"w.go({RESNET8['FuseOps']}); w.selected = 'main/nn.conv2d.2'")
    shown(page, step(RESNET8["FuseOps"]))
    page.locator(".rl-select").select_option("MACs")
    page.wait_for_selector(".rl-heat rect")
    press(page, "Views")
    page.locator("[aria-label='name of a view']").fill("before fusion")
    button(page, "Keep").click()
    page.wait_for_selector(".rl-view-name")
    nb.until(
        "print(w.views['before fusion']['selected'], w.views['before fusion']['overlay'])", "main/nn.conv2d.2 MACs"
    )
    nb.python("w.go(0); w.selected = ''")
    shown(page, "0:0")
    page.locator(".rl-select").select_option("")
    press(page, "Views")
    shot("views")
    page.locator(".rl-view-name").click()
    page.wait_for_selector(".rl-explorer[data-view='before fusion']")
    shown(page, step(RESNET8["FuseOps"]))
    page.wait_for_selector(".rl-heat rect")
    assert nb.python("print(w.after, w.selected)") == f"{RESNET8['FuseOps']} main/nn.conv2d.2"


def critical_path(page, shot):
    """The critical path, by a figure."""
    press(page, "Views")
    page.locator(".rl-choice button", has_text="bytes").click()
    page.wait_for_selector(".rl-trace li")
    assert "critical path" in page.locator(".rl-panel").inner_text() and page.locator(".rl-glow").count() > 3
    shot("critical_path")


def path_between_nodes(nb, page):
    """A path between two nodes."""
    nb.python("w.go(0); w.selected = 'main/nn.conv2d'")
    shown(page, "0:0")
    button(page, "Path from here").click()
    page.wait_for_function("() => document.querySelector('.rl-said').innerText.includes('select where it ends')")
    nb.python("w.selected = 'main/nn.softmax'")
    button(page, "Path from main/nn.conv2d").click()
    page.wait_for_selector(".rl-trace li")
    assert "edges from main/nn.conv2d to main/nn.softmax" in page.locator(".rl-panel").inner_text()


def extract(nb, page, shot):
    """What the search finds becomes a module of the notebook."""
    page.locator(".rl-search").fill("op:/batch_norm$/")
    page.wait_for_function("() => /hit/.test(document.querySelector('.rl-hits').innerText)")
    press(page, "Views")
    page.locator(".rl-panel [aria-label='name of the module']").fill("norms")
    button(page, "Extract as").click()
    page.wait_for_selector(".rl-explorer[data-extracted='norms']")
    shot("extracted")
    assert "nn.batch_norm" in nb.python("print(norms)")


def test_filter_views_ways_and_parts(nb, page, shot):
    open_explorer(nb, "resnet8")
    passes_are_filtered(page)
    focus_and_back(nb, page, shot)
    options_of_a_pass(page, shot)
    views_are_kept(nb, page, shot)
    # the picture as a file: one that the kernel writes, one that the page writes
    assert saved(page, "pdf").startswith(b"%PDF") and b"rl-heat" in saved(page, "svg")
    shot("save")
    critical_path(page, shot)
    path_between_nodes(nb, page)
    extract(nb, page, shot)
    assert page.errors == []


WRONG = """%load_ext relaylab
from relaylab import relay, study
from relaylab.lab.explorer import PassExplorer
from relaylab.transform import apply_rules, rule
from relaylab.relay.dataflow_pattern import is_op, wild
x = wild("x")
@rule(is_op("nn.relu")(x))
def relu_is_abs(x): return relay.abs(x)
@relay.transform.function_pass(opt_level=1)
def Hasty(func, mod, ctx): return apply_rules(func, [relu_is_abs], mod)
@relay.transform.module_pass(opt_level=0)
def Careless(mod, ctx):
    var = relay.var("t", shape=(2, 3))
    return relay.IRModule.from_expr(relay.Tuple([relay.Let(var, relay.ones((2, 3), "float32"), var), var]))
w = PassExplorer(study.explore("mlp", passes=["FoldConstant", Hasty, Careless, "FuseOps"]))
w"""


def test_values_that_differ_and_a_broken_program(nb, page, shot):
    nb.open(WRONG)
    nb.run_all()
    page.wait_for_selector(".rl-view .node")
    row = page.locator('.rl-pass[data-index="2"]')
    assert row.locator(".rl-light").inner_text() == "!" and "out of its scope" in row.inner_text()
    page.locator('.rl-pass[data-index="2"] input').click()
    page.wait_for_selector('.rl-pass[data-index="2"].rl-off')
    press(page, "Bisect")
    page.wait_for_selector(".rl-maps .node")
    assert "relu_is_abs" in page.locator(".rl-panel").inner_text()
    assert page.locator(".rl-maps .node").count() > 60
    shot("bisect_values")
    nb.python("w.selected = 'main/nn.dense'")
    page.wait_for_selector(".rl-grid")
    shot("constant_values")
    assert page.errors == []


def test_the_table_of_operators_and_llvms_passes(nb, page, shot):
    open_explorer(nb, "resnet8")
    page.locator(".rl-choice button", has_text="Table").click()
    page.wait_for_selector(".rl-operators tbody tr")
    names = "() => [...document.querySelectorAll('.rl-operators tbody tr td:first-child')].map(e => e.innerText)"
    assert page.evaluate(names)[0] == "nn.conv2d"
    page.locator(".rl-operators th button", has_text="operator").click()
    page.wait_for_selector("[data-sorted='operator true']")
    found = page.evaluate(names)
    assert found == sorted(found)
    button(page, "Measure").click()
    page.wait_for_selector("[data-sorted='time true']")
    assert page.locator(".rl-operators [aria-sort='descending']").inner_text().startswith("time")
    shot("operators")
    page.locator(".rl-operators tbody button", has_text="nn.global_avg_pool2d").click()
    page.wait_for_function("() => document.querySelector('.rl-hits').innerText === '1 hit'")
    nb.python("w.selected = 'main/nn.conv2d.2'; w.pane = 'code'")
    page.wait_for_selector(".rl-kernel .rl-ins")
    page.locator(".rl-llvm > summary").click()
    page.wait_for_selector("details.rl-llvm-pass")
    page.locator("details.rl-llvm-pass summary").first.click()
    page.wait_for_selector("details.rl-llvm-pass[open] .rl-minus")
    shot("llvm_passes")

    # its control flow, with the instructions in the blocks
    button(page, "Control flow").click()
    page.wait_for_selector(".rl-large .node")
    drawn = page.locator(".rl-large").inner_text()
    assert "turns" in drawn and "load" in drawn and "phi i64" in drawn
    shot("control_flow")
    page.keyboard.press("Escape")
    page.wait_for_selector(".rl-large", state="detached")

    # its loops under steps of one's own, of which one is moved and one switched off
    page.locator(".rl-schedule > summary").click()
    for typed in ("vectorize i3i", "split i3 8", "nonsense"):
        button(page, "Add a step").click()
        page.locator(".rl-schedule li .rl-add").last.fill(typed)
    page.locator(".rl-schedule li button", has_text="↓").first.click()
    page.locator(".rl-schedule li input[type=checkbox]").last.click()
    button(page, "Try").click()
    page.wait_for_selector(".rl-tried[data-tried]")
    words = page.locator(".rl-tried").inner_text()
    assert "i3i in 8 vectorized" in words and "picked loops" in words and "largest error" in words
    shot("schedule")
    assert page.errors == []
