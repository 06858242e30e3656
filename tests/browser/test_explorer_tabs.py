"""The explorer's other panes in a real JupyterLab: stages beside each other, the heat map, branches; undo; why not."""

from __future__ import annotations

import pytest
from support.explorer import least_text, press
from support.stages import MLP, RESNET8, step

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = """%load_ext relaylab
from relaylab import relay, study
from relaylab.lab.explorer import PassExplorer
w = PassExplorer(study.explore("{net}"))
w"""


def open_explorer(nb, net: str):
    nb.open(START.format(net=net))
    nb.run_all()
    nb.page.wait_for_selector(".rl-explorer .rl-view .node")
    return nb.page.locator(".rl-explorer")


def pane(page, name: str) -> None:
    page.locator(f'.rl-choice button[data-value="{name}"]').first.click()


def test_stages_beside_each_other_follow_one_selection(nb, page, shot):
    open_explorer(nb, "resnet8")
    pane(page, "several")
    page.wait_for_selector(".rl-one")
    assert page.locator(".rl-one").count() == 2
    page.locator('.rl-choice[aria-label="how many"] button', has_text="3").click()
    page.wait_for_function("() => document.querySelectorAll('.rl-one .relaylab').length === 3")
    choose = page.locator(".rl-one select")
    for at, frame in enumerate((0, RESNET8["SimplifyInference"], RESNET8["FuseOps"])):
        choose.nth(at).select_option(str(frame))
        page.wait_for_function(
            f"at => document.querySelector('.rl-tab').dataset.drawn?.split(' ')[at] === '{frame}'", arg=at
        )
    page.locator(".rl-one").first.locator('.node[data-id="main/nn.conv2d.3"]').dispatch_event("click")
    page.wait_for_function("() => [...document.querySelectorAll('.rl-twin')].every(t => t.textContent)")
    words = page.locator(".rl-twin").all_inner_texts()
    assert words[0] == "selected here" and "main/nn.conv2d.3" in words[1] and words[2] != "no counterpart"
    assert page.locator('.rl-one .selected[data-id="main/nn.conv2d.3"]').count() >= 2
    shot("panes")
    page.locator(".rl-one .rl-drop").nth(1).click()  # a pane closes, the others stay
    page.wait_for_function("() => document.querySelectorAll('.rl-one').length === 2")
    kept = choose.evaluate_all("all => all.map((e) => e.value)")
    assert kept == ["0", str(RESNET8["FuseOps"])] and page.locator(".rl-one .rl-drop").count() == 0
    page.locator('.rl-choice[aria-label="how many"] button', has_text="3").click()
    page.wait_for_function("() => document.querySelectorAll('.rl-one .relaylab').length === 3")

    # a node that folding made away with has no counterpart, and that is said
    at = RESNET8["SimplifyInference"]
    nb.python(f"w.selected = next(n.id for n in w.session.frames.views[{at}].nodes if n.operator == 'sqrt')")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.rl-twin')].some(t => t.textContent === 'selected here' )"
    )
    page.wait_for_selector(".rl-twin.rl-none")
    assert "no counterpart" in page.locator(".rl-twin").all_inner_texts()
    shot("panes_none")
    assert page.errors == []


def test_the_heat_map_leads_to_a_stage(nb, page, shot):
    root = open_explorer(nb, "resnet8")
    simple, fuse = RESNET8["SimplifyInference"], RESNET8["FuseOps"]
    pane(page, "heat")
    page.wait_for_selector(f'.rl-heatpane .node[data-id="{fuse}:@main"]')
    page.locator(f'.rl-heatpane .node[data-id="{fuse}:@main"]').hover()
    page.wait_for_function(f"() => document.querySelector('.rl-tab-bar').innerText.includes('{fuse} FuseOps, @main')")
    shot("heat")
    page.locator(".rl-choice button", has_text="Operators").click()
    page.locator(f'.rl-heatpane .node[data-id="{simple}:sqrt"]').click()
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(simple)}"][data-pane="graph"]')
    page.wait_for_function("() => document.querySelector('.rl-explorer .rl-bar .rl-hits').innerText.includes('hits')")
    assert root.locator(".rl-search").input_value() == "op:/^sqrt$/"
    pane(page, "heat")
    page.locator(".rl-choice button", has_text="Functions").click()
    page.locator(f'.rl-heatpane .node[data-id="{fuse}:@main"]').click()
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(fuse)}"][data-pane="graph"]')
    nb.until("print(w.after, w.pane, bool(w.selected))", f"{fuse} graph True")
    assert page.errors == []


def test_branches_are_kept_compared_and_used(nb, page, shot):
    fuse = RESNET8["FuseOps"]
    open_explorer(nb, "resnet8")
    pane(page, "branches")
    page.wait_for_selector(".rl-figures-table td")
    page.locator(".rl-tab-bar input").fill("fused")
    page.keyboard.press("Enter")
    page.wait_for_selector('.rl-tab[data-compared="fused current"]')
    assert 9 - 1e-3 <= least_text(page, ".rl-versus") < 99
    page.locator(f'.rl-pass[data-index="{fuse - 1}"] input').click()
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"].rl-off')
    page.wait_for_function(
        "() => { const legend = document.querySelector('.rl-versus .rl-legend'); "
        "return legend.checkVisibility() && legend.innerText.includes('moved') }"
    )
    page.wait_for_selector('.rl-tab[data-compared="fused current"]')
    table = page.locator(".rl-figures-table").inner_text()
    assert "bytes moved" in table and "numeric error" in table and "+" in table
    shot("branches")
    page.locator('[aria-label="stage of A"]').select_option(str(RESNET8["SimplifyInference"]))
    page.wait_for_function("() => document.querySelector('.rl-versus .rl-legend').innerText.includes('changed')")
    page.locator(".rl-button", has_text="Measure").click()
    page.wait_for_function("() => document.querySelector('.rl-figures-table').innerText.includes('measured time')")
    assert (
        "roofline predicts" in page.locator(".rl-figures-table").inner_text()
        and page.locator(".rl-within").count() >= 3
    )
    shot("branches_measured")
    page.locator(".rl-button", has_text="use fused").click()
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"]:not(.rl-off)')
    assert (
        nb.python(f"print(w.session.pipeline.items[{fuse - 1}].enabled, [*w.session.branches.kept])")
        == "True ['fused']"
    )
    assert page.errors == []


def test_edits_and_moves_are_undone(nb, page):
    fuse = MLP["FuseOps"]
    open_explorer(nb, "mlp")
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(MLP.first)}"]')
    page.locator(f'.rl-pass[data-frame="{fuse}"]').click()
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(fuse)}"]')
    page.locator(f'.rl-pass[data-index="{fuse - 1}"] input').click()
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"].rl-off')
    page.wait_for_function("() => document.activeElement.className.includes('rl-explorer')")  # its box was drawn anew
    page.keyboard.press("Control+z")
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"]:not(.rl-off)')
    nb.until(f"print(w.session.pipeline.items[{fuse - 1}].enabled)", "True")
    page.keyboard.press("Control+z")
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(MLP.first)}"]')
    page.keyboard.press("Control+Shift+z")
    page.wait_for_selector(f'.rl-explorer[data-shown="{step(fuse)}"]')
    page.keyboard.press("Control+Shift+z")
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"].rl-off')
    assert page.locator(".rl-button", has_text="↷").is_disabled()
    press(page, "↶")
    page.wait_for_selector(f'.rl-pass[data-index="{fuse - 1}"]:not(.rl-off)')
    assert page.errors == []


def test_why_a_pass_did_nothing_to_a_node(nb, page, shot):
    fuse = MLP["FuseOps"]
    open_explorer(nb, "mlp")
    page.locator(f'.rl-pass[data-frame="{fuse}"]').click()
    page.wait_for_function(
        "() => document.querySelector('.rl-words')?.innerText.includes('10 operators went into 5 kernels')"
    )
    shot("words")
    nb.python("w.go(0); w.selected = 'main/nn.dense'")
    page.wait_for_selector(".rl-why-button")
    page.locator(".rl-why-button").click()
    page.wait_for_selector(".rl-why li")
    said = page.locator(".rl-why").inner_text()
    assert "rules begins with a node like `nn.dense`" in said and "zeros_like" not in said, "no stranger is a near miss"
    steps = page.locator(".rl-why details[open] li").all_inner_texts()  # the way of the nearest is open
    assert steps[0].startswith("✓ `nn.dense`") and steps[0].endswith("is a heavy operator")
    page.evaluate("() => (document.querySelector('.rl-why').dataset.old = 'yes')")
    nb.python("w.compare = 'both'")  # the panel is built anew with the picture; the answer stays
    page.wait_for_selector(".rl-why:not([data-old]) li")
    page.locator(".rl-why select").select_option(str(fuse - 1))
    page.wait_for_function("() => document.querySelector('.rl-why').innerText.includes('they are one kernel')")
    assert (
        "takes no operand into its kernel" in page.locator(".rl-why").inner_text()
        or "heavy operator" in page.locator(".rl-why").inner_text()
    )
    page.locator(".rl-why summary").last.click()
    page.wait_for_selector(".rl-why details[open] .rl-broken")
    page.locator(".rl-why").scroll_into_view_if_needed()
    shot("why")
    assert page.errors == []


def test_the_panes_in_the_dark(nb, page, shot):
    open_explorer(nb, "resnet8")
    page.evaluate(
        "async () => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'}) }"
    )
    page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
    for name, there in (("several", ".rl-one .node"), ("heat", ".rl-heatpane .node"), ("branches", ".rl-versus .node")):
        pane(page, name)
        page.wait_for_selector(there)
        page.wait_for_timeout(300)
        shot(f"dark_{name}")
    assert page.errors == []


def test_the_options_of_a_pass_are_a_form(nb, page, shot):
    fuse = MLP["FuseOps"]
    open_explorer(nb, "mlp")
    row = page.locator(f'.rl-pass[data-index="{fuse - 1}"]')
    row.hover()
    row.locator(".rl-tool", has_text="⚙").click()
    field = page.locator('.rl-form input[aria-label="fuse_opt_level"]')
    assert field.input_value() == "-1"
    field.fill("0")
    shot("options")
    page.keyboard.press("Enter")
    nb.until(f"print(w.session.pipeline.items[{fuse - 1}].text)", "FuseOps(fuse_opt_level=0)")
    assert page.errors == []
