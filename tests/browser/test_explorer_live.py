"""The pass explorer in a real JupyterLab: what is drawn, and what the kernel knows."""

from __future__ import annotations

import pytest
from support.stages import MLP, RESNET8, step

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = """%load_ext relaylab
from relaylab import relay, study
from relaylab.lab.explorer import PassExplorer
w = PassExplorer(study.explore("{net}"))
seen = []
w.on_select(seen.append)
w"""


def shown(page, what: str) -> None:
    page.wait_for_selector(f'.rl-explorer[data-shown="{what}"]')


def open_explorer(nb, net: str):
    nb.open(START.format(net=net))
    nb.run_all()
    nb.page.wait_for_selector(".rl-explorer .rl-view .node")
    return nb.page.locator(".rl-explorer")


def test_the_widget_from_first_look_to_edit(nb, page, shot):
    root = open_explorer(nb, "mlp")
    shown(page, step(MLP.first))
    assert page.locator(".rl-pass").count() == 1 + len(MLP.changing) and MLP.fold(MLP.first) in root.inner_text()
    assert page.locator(".rl-legend .rl-role-changed").inner_text() == "± 3 changed"
    shot("mlp_first")
    steps_by_button_and_key(nb, page)
    selecting_a_node(nb, page)

    # the text difference, and from a line to the node
    root.focus()
    page.keyboard.press("v")
    page.wait_for_selector(".rl-textpane .rl-plus")
    assert page.locator(".rl-textpane .rl-plus").count() == page.locator(".rl-textpane .rl-minus").count() == 3
    page.locator(".rl-choice button", has_text="Graph").click()

    # search
    page.keyboard.press("/")
    page.keyboard.type("op:/dense$/ type:64")
    assert page.locator(".rl-explorer .rl-bar .rl-hits").inner_text() == "1 hit"
    page.keyboard.press("Enter")
    page.wait_for_selector('.rl-explorer .rl-view .node.selected[data-id="main/nn.dense.2"]')
    page.keyboard.press("Escape")

    switching_a_pass_off_and_on(nb, page)
    dragging_the_left_hand_stage_to_the_start(nb, page)
    shot("mlp_compared")
    assert page.errors == []


def steps_by_button_and_key(nb, page) -> None:
    """The kernel follows."""
    page.locator(f'.rl-pass[data-frame="{MLP["FuseOps"]}"]').click()
    shown(page, step(MLP["FuseOps"]))
    nb.until("print(w.before, w.after)", step(MLP["FuseOps"]).replace(":", " "))
    assert page.locator(".rl-legend .rl-role-merged").inner_text() == "& 5 merged"
    page.locator(".rl-explorer").focus()
    ends = (("ArrowLeft", step(MLP.first)), ("End", f"0:{MLP.last}"), ("Home", "0:0"), ("ArrowRight", step(MLP.first)))
    for key, stages in ends:
        page.keyboard.press(key)
        shown(page, stages)


def selecting_a_node(nb, page) -> None:
    """The kernel hears of it, the panel tells its life; and the other way round."""
    page.locator('.rl-explorer .rl-view .node[data-id="main/nn.dense.2"]').click()
    page.wait_for_selector(".rl-panel h2")
    panel = page.locator(".rl-panel").inner_text()
    for words in ("nn.dense", "Tensor[(1, 64), float32]", "fused into one kernel", "Fully connected"):
        assert words in panel
    nb.until("print(w.selected, seen, w.selected_node.op.name)", "main/nn.dense.2 ['main/nn.dense.2'] nn.dense")
    nb.python("w.selected = 'main/nn.softmax'")
    page.wait_for_selector('.rl-explorer .rl-view .node.selected[data-id="main/nn.softmax"]')


def switching_a_pass_off_and_on(nb, page) -> None:
    """Only the tail runs again, and what was known is not."""
    runs = int(nb.python("print(w.session.pipeline.runs)"))
    fuse, tail = f'.rl-pass[data-index="{MLP["FuseOps"] - 1}"]', MLP.last - MLP["FuseOps"]
    page.locator(f"{fuse} input").click()
    page.wait_for_selector(f"{fuse}.rl-off")
    assert int(nb.python("print(w.session.pipeline.runs)")) - runs == tail
    assert nb.python("print('Primitive' in str(w.session.pipeline.history.mod))") == "False"
    page.locator(f"{fuse} input").click()
    page.wait_for_selector(f"{fuse}:not(.rl-off)")
    assert int(nb.python("print(w.session.pipeline.runs)")) - runs == tail, "what was known is not run again"


def dragging_the_left_hand_stage_to_the_start(nb, page) -> None:
    handle, track = page.locator(".rl-handle.rl-before").bounding_box(), page.locator(".rl-track").bounding_box()
    page.mouse.move(handle["x"] + 9, handle["y"] + 9)
    page.mouse.down()
    page.mouse.move(track["x"] + 2, handle["y"] + 9, steps=5)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('.rl-explorer').dataset.shown.startsWith('0:')")
    nb.until("print(w.before)", "0")


def test_checks_code_overlays_and_side_by_side(nb, page, shot):
    root = open_explorer(nb, "resnet8")
    page.locator(".rl-button", has_text="Check").click()
    page.wait_for_selector(".rl-explorer[data-checked='-1']")
    assert page.locator(".rl-light-true").count() >= 7
    page.locator(".rl-choice button", has_text="Side by side").click()
    page.wait_for_selector(".rl-two")
    assert page.locator(".rl-explorer .rl-view").count() == 2
    shot("resnet8_side_by_side")
    page.locator(".rl-choice button", has_text="Merged").click()
    page.locator(".rl-pass", has_text="FuseOps").click()
    page.wait_for_selector(".rl-legend .rl-role-merged")
    page.locator(".rl-select").select_option("MACs")
    page.wait_for_selector(".rl-heat rect")
    shot("resnet8_macs")
    page.locator(".rl-select").select_option("")
    nb.python("w.selected = 'main/nn.conv2d.2'")
    page.wait_for_selector(".node.selected")
    page.locator(".rl-choice button", has_text="Code").click()
    page.wait_for_selector(".rl-kernel .rl-ins")
    page.locator(".rl-kernel-bar .rl-chip", has_text="nn.relu").hover()
    assert page.locator(".rl-ins.rl-lit").count() > 1 and page.locator(".rl-glow").count() >= 1
    shot("resnet8_code")
    page.locator(".rl-choice button", has_text="Graph").click()
    root.focus()
    page.keyboard.press("c")
    page.wait_for_function("() => document.querySelector('.rl-legend').innerText.includes('1 group folded')")
    page.keyboard.press("e")
    page.wait_for_function("() => !document.querySelector('.rl-legend').innerText.includes('folded')")
    nb.python("w.go(len(w.session.frames) - 1)")
    shown(page, step(RESNET8.last))
    page.keyboard.press("C")
    page.wait_for_function("() => document.querySelector('.rl-legend').innerText.includes('groups folded')")
    page.wait_for_function("() => document.querySelectorAll('.rl-explorer .rl-view .node').length < 30")
    shot("resnet8_folded")
    page.keyboard.press("e")
    page.locator(".rl-button", has_text="What next?").click()
    page.wait_for_selector(".rl-panel .rl-story")
    shot("resnet8_suggest")
    page.locator(".rl-button", has_text="Copy").click()
    page.wait_for_function("() => document.querySelector('.rl-panel').innerText.includes('relay.transform.Sequential')")
    page.locator(".rl-button", has_text="Memory").click()
    page.wait_for_selector(".rl-bar-block")
    assert page.errors == []


def test_a_wrong_pass_is_found_from_the_widget(nb, page, shot):
    nb.open("""%load_ext relaylab
from relaylab import relay, study
from relaylab.ir import Call, rewrite
from relaylab.lab.explorer import PassExplorer
from relaylab.relay.transform import function_pass

@function_pass(opt_level=0)
def Swap(func, mod, ctx):
    tanh = lambda x: isinstance(x, Call) and x.op.name == "tanh"
    wrong = lambda new, old: Call(relay.op.get("sigmoid"), new.args) if tanh(new) else new
    return rewrite(func, wrong)

mod = relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(3), float32]) { tanh(add(%x, %x)) }')
passes = [relay.transform.FoldConstant(), Swap, relay.transform.FuseOps()]
w = PassExplorer(study.explore(mod, passes=passes), passes)
w""")
    nb.run_all()
    page.wait_for_selector(".rl-explorer .rl-view .node")
    page.locator(".rl-button", has_text="Check").click()
    page.wait_for_selector(".rl-explorer[data-checked='1']")
    assert page.locator(".rl-light-false").count() == 2
    page.locator(".rl-button", has_text="Bisect").click()
    page.wait_for_function("() => document.querySelector('.rl-panel').innerText.includes('Swap changed the numbers')")
    assert "tanh" in page.locator(".rl-panel").inner_text()
    shot("bisect")
    assert page.errors == []


def test_dark_as_jupyterlab_is(nb, page, shot):
    open_explorer(nb, "mlp")
    page.evaluate(
        "async () => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'}) }"
    )
    page.wait_for_selector('body[data-jp-theme-light="false"]', state="attached")
    page.wait_for_timeout(600)
    shot("lab_dark")
    assert (
        page.evaluate("() => getComputedStyle(document.querySelector('.rl-explorer .rl-view .node .box')).fill")
        != "rgb(255, 255, 255)"
    )
    assert page.errors == []


def test_magics_draw_in_the_notebook(nb, page, shot):
    nb.open("%load_ext relaylab", "%relay_viz mlp", "%relay_passes mlp")
    nb.run_all()
    page.wait_for_selector(".relaylab-viz[data-live] svg .node", state="attached")
    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.scrollToItem(2)")
    page.wait_for_selector(".rl-explorer .node")
    shot("magics")
    assert page.errors == []


def test_notebook_7(nb7, page, shot):
    open_explorer(nb7, "mlp")
    shown(page, step(MLP.first))
    page.locator(".rl-explorer").focus()
    page.keyboard.press("ArrowRight")
    shown(page, step(MLP["FuseOps"]))
    nb7.until("print(w.after)", str(MLP["FuseOps"]))
    shot("notebook_7")
    ours = [e for e in page.errors if "/static/notebook/" not in e]  # Notebook's own remarks are not about us
    assert ours == []
