"""The explorer as one file: works with the network cut, and takes no text of a program for markup."""

from __future__ import annotations

import re

import pytest

from support.stages import RESNET8

from relaylab import relay, study, viz
from relaylab.lab.explorer import PassExplorer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EVIL = '<img src=x onerror="window.hurt=1"><script>window.hurt=2</script>'


@pytest.fixture
def offline(page):
    def open_file(path):
        page.route("http*://**", lambda route: route.abort())
        page.goto(path.as_uri())
        page.wait_for_selector(".rl-explorer[data-shown] .node")
        return page

    return open_file


def test_a_saved_page_steps_searches_and_tells(offline, page, tmp_path, shot):
    path = PassExplorer(study.explore("resnet8")).save(tmp_path / "x.html")
    assert path.stat().st_size < 3_000_000
    offline(path)
    root = page.locator(".rl-explorer")
    curves = root.locator(".rl-trend polyline").evaluate_all("all => all.map(e => e.getAttribute('points').split(' '))")
    assert [len(c) for c in curves] == [RESNET8.last + 1] * 2 and all(
        len({p.split(",")[1] for p in c}) > 3 for c in curves
    )
    root.focus()
    first = root.get_attribute("data-shown")
    page.keyboard.press("]")
    page.wait_for_selector(".rl-pair svg >> nth=1")
    told = page.locator(".rl-stepper").inner_text()
    assert "nn.batch_norm → 3 add" in told and "class SimplifyInference" in told
    assert page.locator(".rl-rewrite .rl-minus").count() >= 1
    shot("saved_rewrite")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => document.querySelector('.rl-explorer').dataset.shown !== '{first}'")

    # only what changed; everything, which is remembered; a dotted card opens at a click
    count = "document.querySelectorAll('.rl-view .node').length"
    brief = page.evaluate(count)
    whole = int(re.findall(rf"{brief} of (\d+) nodes: show all", page.locator(".rl-legend").inner_text())[0])
    shot("saved_brief")
    page.keyboard.press("a")
    page.wait_for_function(f"() => {count} === {whole}")
    page.reload()
    page.wait_for_function(f"() => {count} === {whole}")
    page.locator(".rl-legend .rl-link", has_text="only what changed").click()
    page.wait_for_function(f"() => {count} === {brief}")
    page.locator(".rl-view .node[data-id^='stretch:']").first.dispatch_event("click")
    page.wait_for_function(f"() => {count} === {whole}")
    page.keyboard.press("a")
    page.wait_for_selector(".rl-legend .rl-link:has-text('only what changed')")
    page.keyboard.press("a")
    page.wait_for_function(f"() => {count} === {brief}")

    page.keyboard.press("/")
    page.keyboard.type("op:nn.conv2d")
    page.wait_for_function("() => parseInt(document.querySelector('.rl-hits').textContent) > 5")
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.selected")
    page.wait_for_selector(".rl-panel h2")
    assert "nn.conv2d" in page.locator(".rl-panel").inner_text()
    page.keyboard.press("Escape")
    keys_without_a_click_into_the_picture(page)
    page.keyboard.press("v")
    page.wait_for_selector(".rl-line.rl-plus mark")
    off = page.locator(".rl-bar").locator("[disabled]").evaluate_all("all => all.map(e => e.textContent)")
    assert {"Merged", "Side by side", "Map"} <= set(off), "what means nothing beside a text"
    shot("saved_text")
    page.keyboard.press("v")
    page.keyboard.press("s")
    page.wait_for_selector(".rl-two")
    shot("saved_both")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.rl-explorer').dataset.shown.startsWith('0:')")
    assert page.locator(".rl-error").count() == 0 and page.errors == []


def keys_without_a_click_into_the_picture(page):
    """After a search the explorer has the focus: its keys work there, and the help knows which there are."""
    chosen = "() => window.relaylab.host.get('selected')"
    first = page.evaluate(chosen)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(chosen) != first
    page.keyboard.press("ArrowUp")
    assert page.evaluate(chosen) == first
    page.keyboard.press("u")
    assert page.locator(".rl-view .node.dim").count() > 0
    page.keyboard.press("Escape")
    assert page.locator(".rl-view .node.dim").count() == 0 and page.evaluate(chosen) == ""
    page.evaluate("id => window.relaylab.pick(id)", first)
    stages = []
    for _ in range(2):
        stages.append(page.locator(".rl-explorer").get_attribute("data-shown"))
        page.keyboard.press("n")
        page.wait_for_function("at => document.querySelector('.rl-explorer').dataset.shown !== at", arg=stages[-1])
    assert page.locator(".rl-panel .rl-role, .rl-panel .rl-story").count() > 0 and page.evaluate(chosen) == first
    page.keyboard.press("b")
    page.wait_for_function("at => document.querySelector('.rl-explorer').dataset.shown === at", arg=stages[-1])
    page.keyboard.press("?")
    told = page.locator(".rl-panel").inner_text()
    assert "touched the selected node" in told and "on or off" not in told and "×N" not in told
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('.rl-panel h2').innerText === 'nn.conv2d'")


def test_queries_are_those_of_python(offline, page, tmp_path, shot):
    """As many hits as `viz.select` finds; a caret under a wrong query; operators offered; the tree and undo know."""
    widget = PassExplorer(study.explore("resnet8"))
    offline(widget.save(tmp_path / "q.html"))
    root, says = page.locator(".rl-explorer"), page.locator(".rl-query")
    page.keyboard.press("Home")
    page.wait_for_selector('.rl-explorer[data-shown="0:0"]')
    source = widget.session.frames.views[0]
    for query in ("op:nn.conv2d & cost>5e5", "users>1 !kind:var", "op:dense | attr:groups=1", "(kind:var | inputs>=2)"):
        page.locator(".rl-search").fill(query)
        count = len(viz.select(source, query))
        page.wait_for_function(f"() => parseInt(document.querySelector('.rl-hits').textContent) === {count}")
    assert count > 1 and page.locator(".rl-tree li.rl-found").count() == count
    page.locator(".rl-search").fill("op:add | opp:add")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === 'not understood'")
    assert says.inner_text().startswith("op:add | opp:add\n         ^ there is no field `opp`")
    shot("query_caret")
    page.locator(".rl-search").fill("op:nn.de")
    page.wait_for_function("() => document.querySelector('.rl-query-word')?.textContent === 'op:nn.dense'")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === '1 hit'")
    root.focus()
    page.keyboard.press("C")
    page.keyboard.press("Control+z")
    assert page.locator(".rl-search").input_value() == "op:nn.dense" and page.errors == []


def test_names_with_markup_stay_text(offline, page, tmp_path):
    x = relay.var(EVIL, shape=(2, 2))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.add(x, x)))))
    path = PassExplorer(study.explore(study.Program(EVIL, mod))).save(tmp_path / "evil.html")
    assert "<script>window.hurt" not in path.read_text()
    offline(path)
    page.locator(".rl-explorer .rl-view .node").first.click()
    page.locator(".rl-explorer").focus()
    page.keyboard.press("v")
    page.wait_for_timeout(200)
    assert page.evaluate("() => window.hurt") is None
    assert "onerror" in page.locator(".rl-bar").inner_text()
    assert page.locator(".rl-explorer img, .rl-explorer script").count() == 0


def test_the_tree_mirrors_the_picture(offline, page, tmp_path):
    offline(PassExplorer(study.explore("mlp")).save(tmp_path / "x.html"))
    tree = page.locator(".rl-tree")
    assert tree.get_attribute("role") == "tree"
    assert (
        tree.locator("li").count() == page.locator(".rl-explorer .rl-view .node, .rl-explorer .rl-view .group").count()
    )
    tree.locator("li").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.selected, .group.selected")
    assert page.locator('.rl-tree li[aria-selected="true"]').count() == 1
    assert "changed" in page.locator(".rl-said").text_content()


def test_dark_where_the_reader_likes_it(browser, artifacts, tmp_path):
    path = PassExplorer(study.explore("mlp")).save(tmp_path / "x.html")
    context = browser.new_context(viewport={"width": 1300, "height": 800}, color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    background = page.evaluate("() => getComputedStyle(document.querySelector('.rl-explorer')).backgroundColor")
    box = page.evaluate("() => getComputedStyle(document.querySelector('.rl-explorer .rl-view .node .box')).fill")
    artifacts.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=artifacts / "dark.png")
    context.close()
    assert background == "rgb(17, 21, 28)" and box != "rgb(255, 255, 255)"
