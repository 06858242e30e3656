"""Stepping through the stages: a selected node stays where it is on screen; large graphs are drawn where one looks."""

from __future__ import annotations

import pytest
from test_explorer_live import open_explorer, shown

from relaylab import study
from relaylab.lab.explorer import PassExplorer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NEAR = 2.0  # pixels that the middle of the selected box may move on the screen from one stage to the next
SPOT = """id => {
    const node = document.querySelector(`.rl-explorer .rl-view .node[data-id="${id}"]`); if (!node) return null;
    const box = node.querySelector('.box').getBoundingClientRect();
    const view = document.querySelector('.rl-explorer .rl-view svg').getBoundingClientRect();
    return { x: box.x + box.width / 2 - view.x, y: box.y + box.height / 2 - view.y,
        selected: node.classList.contains('selected'),
        inside: box.left >= view.left && box.right <= view.right && box.top >= view.top
            && box.bottom <= view.bottom } }"""
EXPLORER = "document.querySelector('.rl-explorer').explorer"


def step(page, key: str, to: int) -> None:
    """Press a key and wait until what the pass before stage `to` changed is shown."""
    page.keyboard.press(key)
    shown(page, f"{max(0, to - 1)}:{to}")


@pytest.mark.parametrize(
    "net,node", [("resnet50", "main/nn.conv2d.29"), ("mlp", "main/nn.dense.2"), ("lstm", "main/nn.dense.9")]
)
def test_the_selected_node_stays_on_the_screen(nb, page, shot, net, node):
    open_explorer(nb, net).focus()
    stops = page.evaluate(f"() => {EXPLORER}.stages.changing")
    step(page, "Home", 0)
    nb.python(f"w.selected = {node!r}")
    page.wait_for_selector(f'.rl-explorer .rl-view .node.selected[data-id="{node}"]')
    last, seen = page.evaluate(SPOT, node), 0
    for key, ways in (("ArrowRight", stops[1:]), ("ArrowLeft", stops[-2::-1])):
        for to in ways:
            step(page, key, to)
            spot = page.evaluate(SPOT, node)
            if spot is None:
                assert not page.evaluate(f"id => {EXPLORER}.parts.stage.canvases[0].byId.has(id)", node), (
                    f"{node} at {to} is not drawn"
                )
                continue
            seen += 1
            assert spot["selected"] and spot["inside"], f"{node} at {to}: {spot}"
            assert abs(spot["x"] - last["x"]) <= NEAR and abs(spot["y"] - last["y"]) <= NEAR, (
                f"{node} at {to}: {last} to {spot}"
            )
            last = spot
    assert seen >= len(stops)
    shot(f"stays_{net}_{node.rpartition('/')[2]}")
    assert page.errors == []


def test_a_large_graph_is_drawn_where_one_looks(nb, page, shot):
    root = open_explorer(nb, "resnet50")
    drawn, known = (
        "document.querySelectorAll('.rl-explorer .rl-view .node').length",
        f"[...{EXPLORER}.parts.stage.canvases[0].byId.values()].filter(p => p.kind === 'node').length",
    )
    nb.python("w.go(0)")
    shown(page, "0:0")
    page.wait_for_function(f"() => {EXPLORER}.parts.stage.canvases[0]?.byId")
    seen = page.evaluate(f"() => [{drawn}, {known}, {EXPLORER}.parts.stage.canvases[0].filled]")
    assert seen[0] * 3 < seen[1], f"only what is in view is in the document: {seen}"
    # the tree has everything, a moment later
    page.wait_for_function(f"() => document.querySelectorAll('.rl-tree li').length >= {known}")

    # a node far away: selected from Python it is drawn, with the lines at it
    nb.python("w.selected = 'main/nn.dense'")
    page.wait_for_selector('.rl-explorer .rl-view .node.selected[data-id="main/nn.dense"]')
    assert page.locator(".rl-explorer .rl-view .edge.near").count() >= 2

    # search says how many there are in all, dims what is drawn later too, and Enter leads to what is not in view
    root.focus()
    page.keyboard.press("/")
    page.keyboard.type("op:nn.conv2d")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === '53 hits'")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rl-explorer .rl-view .node.selected:not(.dim)")
    assert page.locator(".rl-explorer .rl-view .node.dim").count() >= 1
    page.keyboard.press("Escape")

    # from far away all boxes are drawn, without text; the minimap leads to any place
    page.evaluate(
        f"() => {{ const c = {EXPLORER}.parts.stage.canvases[0]; c.touched = true; c.zoom(0.001, 0, 0); "
        "c.center(c.scene.width / 2, c.scene.height / 2) }"
    )
    page.wait_for_function(f"() => {drawn} === {known}")
    assert page.locator(".rl-explorer .rl-view .node text").count() == 0
    shot("resnet50_far")
    page.evaluate(
        f"() => {{ const c = {EXPLORER}.parts.stage.canvases[0]; c.zoom(40, 0, 0); "
        "c.center(c.scene.width / 2, c.scene.height / 2) }"
    )
    page.wait_for_function(
        f"() => {drawn} * 3 < {known} && {drawn} > 0 "
        "&& document.querySelectorAll('.rl-explorer .rl-view .node text').length > 0"
    )
    root.focus()

    # blocks that repeat are offered as one card each, and back
    page.locator(".rl-legend .rl-link", has_text="fold repeated blocks").click()
    page.wait_for_selector(".rl-legend .rl-link:has-text('repeated blocks folded')")
    page.wait_for_selector('.rl-explorer .rl-view .node[data-id^="repeat:"]')
    assert page.evaluate(f"() => {known}") < 100
    card = page.evaluate(f"() => [...{EXPLORER}.parts.stage.canvases[0].byId.keys()].find(id => /^repeat:/.test(id))")
    page.evaluate(f"id => {EXPLORER}.pick(id)", card)
    page.keyboard.press("e")  # one copy opens, the others stay a card
    page.wait_for_function(f"id => {EXPLORER}.parts.stage.canvases[0].byId.get(id)?.kind === 'group'", arg=card)
    shot("one_copy")
    page.keyboard.press("r")
    page.wait_for_function(f"() => {known} > 200")
    assert page.errors == []


def test_a_picture_that_comes_after_another_step_is_not_shown(page, tmp_path):
    """It was asked for before: neither drawn nor called what is chosen now."""
    page.goto(PassExplorer(study.explore("mlp")).save(tmp_path / "x.html").as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    late = page.evaluate("""async () => {
        const e = window.relaylab, { root, answers } = e, was = root.dataset.shown, put = answers.put;
        const [first, second] = e.stages.changing.slice(-2), frame = window.requestAnimationFrame;
        let arrive, next; answers.clear();
        const asked = new Promise((done) => (answers.put = (what, args) => what !== 'picture' ? put(what, args)
            : new Promise((answer) => { arrive = async () => answer(await put(what, args)); done() })));
        e.go(first - 1, first); await asked;
        window.requestAnimationFrame = (run) => (next = run);
        e.go(second - 1, second); await arrive(); await new Promise((done) => setTimeout(done, 500));
        window.requestAnimationFrame = frame; answers.put = put;
        const found = [was, root.dataset.shown]; next(); return [...found, `${second - 1}:${second}`] }""")
    assert late[1] == late[0] != late[2]
    shown(page, late[2])
    assert page.errors == []
