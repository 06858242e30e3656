"""The pass explorer in a real JupyterLab: what is drawn, and what the kernel knows."""

from __future__ import annotations

import pytest
from support.explorer import least_text, press
from support.stages import MLP, RESNET8, step

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = """%load_ext relaylab
from relaylab import relay, study
from relaylab.lab.explorer import PassExplorer
w = PassExplorer(study.explore("{net}"))
seen = []
w.on_select(seen.append)
w"""


CELL = """%%relay -q m
def @main(%a: Tensor[(2), float32]) {
  let %b = nn.relu(%a);
  1f
}"""


def shown(page, what: str) -> None:
    page.wait_for_selector(f'.rl-explorer[data-shown="{what}"]')


def open_explorer(nb, net: str, *cells: str):
    nb.open(*cells, START.format(net=net))
    nb.run_all()
    nb.page.wait_for_selector(".rl-explorer .rl-view .node")
    return nb.page.locator(".rl-explorer")


def test_the_widget_from_first_look_to_edit(nb, page, shot):
    root = open_explorer(nb, "mlp", "%load_ext relaylab", CELL)
    shown(page, step(MLP.first))
    a_cell_of_relay_has_colours(page)
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
    words = page.locator(".rl-textpane .rl-plus mark").all_inner_texts()
    assert words and all(len(text) < 30 for text in words), "only the words that differ are marked"
    press(page, "Graph")

    # search
    page.keyboard.press("/")
    page.keyboard.type("op:/dense$/ type:64")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === '1 hit'")
    page.keyboard.press("Enter")
    page.wait_for_selector('.rl-explorer .rl-view .node.selected[data-id="main/nn.dense.2"]')
    page.keyboard.press("Escape")

    typing_in_the_program(nb, page, shot)
    switching_a_pass_off_and_on(nb, page)
    dragging_the_left_hand_stage_to_the_start(nb, page)
    shot("mlp_compared")
    in_the_language_of_the_notebook(nb, page, shot)
    assert page.errors == []


def a_cell_of_relay_has_colours(page) -> None:
    """Those of the table, over what the editor shows; its text is as it was typed."""
    marked = """kind => [...CSS.highlights.get(`rl-t-${kind}`)].map(String).join(' ')"""
    assert page.evaluate(marked, "variable") == "%a %b %a" and page.evaluate(marked, "call") == "nn.relu"
    page.locator(".cm-content", has_text="%%relay").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" // é")
    page.wait_for_function("() => String([...CSS.highlights.get('rl-t-comment')][0]) === '// é'")


def in_the_language_of_the_notebook(nb, page, shot) -> None:
    """JupyterLab writes its language on the page; the widget asks the kernel for the words."""
    page.evaluate("document.documentElement.lang = 'zh-CN'")
    nb.run_all()
    page.locator(".rl-panel h3", has_text="用文字说").wait_for(state="attached")
    assert page.locator(".rl-choice button", has_text="热力图").count() == 1
    shot("mlp_chinese")


def typing_in_the_program(nb, page, shot) -> None:
    """Colours, what is wrong under its place, the difference to the text before, the passes over the new program."""
    press(page, "Edit")
    page.wait_for_selector(".rl-tab[data-read]")
    field, text = page.locator(".rl-typing textarea"), page.locator(".rl-typing textarea").input_value()
    lines = page.locator(".rl-paper-lines")
    assert lines.locator("div").all_inner_texts() == text.split("\n")
    assert 9 - 1e-3 <= least_text(page, ".rl-versus") < 99
    field.fill(text.replace("nn.relu(", "nn.relux(", 1))
    assert page.locator(".rl-wrong").text_content() == "nn.relux"
    assert page.locator(".rl-stale .node").count() and "did you mean" in page.locator(".rl-faults").inner_text()
    shot("typed_wrong")
    page.locator(".rl-faults button").click()
    page.keyboard.type("// ")  # the field has the focus, its caret at the fault
    page.wait_for_function("() => document.querySelector('.rl-tab').dataset.read.includes('= // nn.relux(')")
    field.fill(text.replace("nn.relu(", "tanh(", 1))
    page.wait_for_selector(".rl-versus .rl-role-changed >> text=1 changed")
    assert page.locator(".rl-wrong, .rl-stale").count() == 0
    assert lines.locator("span.rl-t-call", has_text="tanh").count() == 1
    shot("typed_well")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_selector(".rl-title >> text=mlp (edited)")
    nb.until("print('tanh' in str(w.session.pipeline.history.mod))", "True")
    assert field.input_value() == text.replace("nn.relu(", "tanh(", 1)
    field.fill("def @main(")
    page.wait_for_selector(".rl-wrong")
    page.locator(".rl-explorer").focus()
    page.keyboard.press("Control+z")
    page.wait_for_function("() => document.querySelector('.rl-title').textContent === 'mlp'")
    assert field.input_value() == "def @main(", "what was typed stays"
    page.get_by_role("button", name="Revert").click()
    page.wait_for_function("t => document.querySelector('.rl-tab').dataset.read === t", arg=text)
    press(page, "Graph")


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


def rewrites_lead_to_their_rule(page, root, shot):
    """The single rewrites of a pass: what became one kernel, where its rule stands, its node."""
    page.locator(".rl-pass", has_text="FuseOps").click()
    shown(page, step(RESNET8["FuseOps"]))
    page.wait_for_selector(".rl-legend .rl-role-merged")
    root.focus()
    for number in (1, 2):  # one after the other: what a key does takes a moment where others work
        page.keyboard.press("]")
        page.wait_for_function(f"() => /^\\[\\s*{number} \\/ /.test(document.querySelector('.rl-stepper')?.innerText)")
    page.wait_for_selector(".rl-pair svg >> nth=1")
    assert "one kernel: nn.conv2d" in page.locator(".rl-stepper").inner_text()
    shot("resnet8_rewrite")
    page.locator(".rl-stepper .rl-link").first.click()  # the server does not serve the package: its place is copied
    page.wait_for_function("() => /copied .*fuse_ops.py:/.test(document.querySelector('.rl-said').textContent)")
    page.locator(".rl-pair .node", has_text="nn.relu").last.click()
    page.wait_for_function("() => document.querySelector('.rl-view .node.selected').textContent.includes('nn.relu')")


def figures_colour_the_nodes(page, root, shot):
    """Figures as colours: multiply-adds, and times carried back to the source."""
    page.locator(".rl-select").select_option("MACs")
    page.wait_for_selector(".rl-heat rect")
    shot("resnet8_macs")
    press(page, "Graph")
    root.focus()
    page.keyboard.press("Home")
    shown(page, "0:0")
    page.locator(".rl-select").select_option("time")  # of the kernels, carried back to the source
    page.wait_for_function("() => document.querySelector('.rl-said').innerText.includes('shared out by MACs')")
    page.wait_for_selector(".rl-heat rect")
    shot("resnet8_time")


def code_of_a_node(nb, page, shot):
    """The kernel of a node, its instructions lit up by operator."""
    page.locator(".rl-select").select_option("")
    nb.python("w.selected = 'main/nn.conv2d.2'")
    page.wait_for_selector(".node.selected")
    press(page, "Code")
    page.wait_for_selector(".rl-kernel .rl-ins")
    page.locator(".rl-kernel-bar .rl-chip", has_text="nn.relu").hover()
    assert page.locator(".rl-ins.rl-lit").count() > 1 and page.locator(".rl-glow").count() >= 1
    shot("resnet8_code")


def groups_fold_by_keys(nb, page, root, shot):
    """One group, and all of them, folded and open again."""
    press(page, "Graph")
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


def panels_tell(page, shot):
    """What next, the pipeline as Python, memory in a large view."""
    press(page, "What next?")
    page.wait_for_selector(".rl-panel .rl-story")
    shot("resnet8_suggest")
    press(page, "Copy")
    page.wait_for_function("() => document.querySelector('.rl-panel').innerText.includes('relay.transform.Sequential')")
    press(page, "Memory")
    page.wait_for_selector(".rl-maps .node")
    shot("memory_small")
    page.locator(".rl-panel button", has_text="Enlarge").click()
    page.wait_for_selector(".rl-large .node")
    assert "in an arena of" in page.locator(".rl-large").text_content()
    shot("memory")
    page.keyboard.press("Escape")


def test_checks_code_overlays_and_side_by_side(nb, page, shot):
    root = open_explorer(nb, "resnet8")
    press(page, "Check")
    page.wait_for_selector(".rl-explorer[data-checked='-1']")
    assert page.locator(".rl-light-true").count() >= 7
    press(page, "Side by side")
    page.wait_for_selector(".rl-two")
    assert page.locator(".rl-explorer .rl-view").count() == 2
    shot("resnet8_side_by_side")
    press(page, "Merged")
    rewrites_lead_to_their_rule(page, root, shot)
    figures_colour_the_nodes(page, root, shot)
    code_of_a_node(nb, page, shot)
    groups_fold_by_keys(nb, page, root, shot)
    panels_tell(page, shot)
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
    press(page, "Check")
    page.wait_for_selector(".rl-explorer[data-checked='1']")
    assert page.locator(".rl-light-false").count() == 2
    press(page, "Bisect")
    page.wait_for_function("() => document.querySelector('.rl-panel').innerText.includes('Swap changed the numbers')")
    assert "tanh" in page.locator(".rl-panel").inner_text()
    shot("bisect")
    page.locator(".rl-pass", has_text="Swap").click()
    page.locator(".rl-explorer").focus()
    page.keyboard.press("]")
    page.wait_for_selector(".rl-pair svg >> nth=1")
    told = page.locator(".rl-stepper").inner_text()
    assert "tanh → sigmoid" in told and "cell In[1], line 7" in told and "return rewrite(func, wrong)" in told
    page.locator(".rl-stepper .rl-link").first.click()  # to the cell
    page.wait_for_function("() => document.querySelector('.jp-InputPrompt').getBoundingClientRect().top > 0")
    page.locator(".rl-stepper button", has_text="next here").click()
    page.wait_for_selector(".rl-pass[aria-current]:has-text('FuseOps'), .rl-stepper >> text=one kernel")
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
