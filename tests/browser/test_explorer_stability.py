"""Stepping through the stages: a selected node stays where it is on screen; large graphs are drawn where one looks."""

from __future__ import annotations

import pytest
from support.stages import MLP, RESNET8
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


@pytest.fixture
def still(page, tmp_path):
    """Opens a saved page of a network."""

    def opened(net: str, **choices):
        page.goto(PassExplorer(study.explore(net), **choices).save(tmp_path / "x.html").as_uri())
        page.wait_for_selector(".rl-explorer[data-shown]")
        return page

    return opened


def go(page, before: int, after: int) -> None:
    page.evaluate(f"() => relaylab.go({before}, {after})")
    shown(page, f"{before}:{after}")


def test_two_pictures_beside_each_other_keep_zoom_and_place(still):
    """Those before them hear that they leave the page, and have nothing more to say."""
    page = still("mlp", compare="both")
    look = "() => relaylab.parts.stage.canvases.map((c) => [c.k, c.x, c.y])"
    page.evaluate("() => relaylab.parts.stage.canvases[0].zoom(2, 200, 100)")
    (k, x, y), other = page.evaluate(look)
    assert other == [k, x, y]
    for stage in MLP.changing[1:]:
        near = "relaylab.parts.stage.canvases[0].anchor(new Set(relaylab.parts.stage.canvases[0].byId.keys())).id"
        spot = (
            f"() => {{ const at = {near}; return at && document.querySelector(`.node[data-id='${{at}}']`) !== null }}"
        )
        assert page.evaluate(spot), "what stands in the middle of the view is in the view"
        go(page, stage - 1, stage)
        page.wait_for_timeout(200)  # the observers of the pictures before
        assert {round(at[0], 6) for at in page.evaluate(look)} == {round(k, 6)}
    assert page.errors == []


def test_nothing_is_left_of_what_was_shown_before(still):
    page = still("mlp")
    fuse = MLP["FuseOps"]
    go(page, fuse - 1, fuse)
    merged = "relaylab.picture.scenes[0].figures.find((f) => f.role === 'merged').id"
    page.evaluate(f"() => {{ window.one = {merged}; relaylab.pick(one) }}")
    page.wait_for_selector(".rl-panel .rl-role-merged")
    go(page, fuse, fuse)
    page.wait_for_selector(".rl-panel:not(:has(.rl-role)) h2")  # nothing differs between a stage and itself
    page.evaluate("() => { relaylab.pick(''); relaylab.parts.views.keep('nothing selected'); relaylab.pick(one) }")
    page.wait_for_selector(".rl-panel h2:not(:text-is('views'))")
    page.evaluate("() => relaylab.parts.views.go('nothing selected')")
    page.wait_for_selector(".rl-panel:not(:has(h2))")
    page.evaluate(
        "() => { relaylab.answers.put = async (what) => ({ error: `no ${what}` }); relaylab.answers.clear() }"
    )
    go(page, 0, fuse)
    assert page.locator(".rl-graphs .rl-error").inner_text() == "no picture"
    assert page.locator(".rl-legend, .rl-outline").all_inner_texts() == ["", ""]
    assert page.locator(".rl-said").text_content() == "FuseOps: no picture"
    assert page.errors == []


def test_answers_that_come_late_are_about_something_else_by_now(still):
    page = still("mlp", pane="code", selected="main/nn.dense")
    page.wait_for_selector(".rl-codepane .rl-kernel")
    late = """async () => {
        const e = relaylab, put = e.answers.put, kept = [];
        e.answers.clear();
        const later = (what, args, done) => kept.push([what, async () => done(await put(what, args))]);
        e.answers.put = (what, args) => new Promise((done) => later(what, args, done));
        const give = async (what) => { for (const [k, run] of kept) if (k === what) await run() };
        const rest = () => new Promise((done) => setTimeout(done, 100));
        e.showCode(); e.host.set('selected', ''); e.showCode(); await give('kernel'); await rest();
        const code = e.root.querySelector('.rl-codepane').textContent;
        e.host.set('selected', 'main/nn.dense'); e.parts.detail.about('main/nn.dense'); e.help();
        await give('node'); await rest();
        const panel = e.root.querySelector('.rl-panel h2').textContent;
        const { heat } = e.parts.tabs; heat.show(); heat.by = 'operator'; heat.show();
        const [first, second] = kept.filter(([k]) => k === 'heat'); await second[1](); await first[1](); await rest();
        return [code, panel, heat.canvas.scene.figures.some((f) => f.id.endsWith(':nn.relu'))] }"""
    code, panel, operators = page.evaluate(late)
    assert code.startswith("Select a node") and panel == "keys" and operators
    assert page.errors == []


def test_enter_leads_to_every_hit_in_both_directions(still):
    page = still("resnet8", compare="both")
    first = RESNET8["SimplifyInference"]
    go(page, first - 1, first)
    page.locator(".rl-search").fill("role:removed")
    page.wait_for_function("() => relaylab.parts.search.found.length > 1")
    found = page.evaluate("() => relaylab.parts.search.found")
    page.locator(".rl-search").press("Shift+Enter")
    seen = [page.evaluate("() => relaylab.host.get('selected')")]
    for _ in found[1:]:
        page.locator(".rl-search").press("Enter")
        seen.append(page.evaluate("() => relaylab.host.get('selected')"))
    assert seen == [found[-1], *found[:-1]]
    assert page.errors == []
