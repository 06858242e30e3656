"""Saved pages in windows of all widths, light and dark: what is seen of each view can be read, and nothing is cut."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.lab.explorer import PassExplorer
from relaylab.study.kernels import Kernels
from relaylab.support.errors import RelayError

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = {1440: 1000, 1100: 800, 660: 900, 370: 800}
VIEWS = ("graph", "text", "both", "code", "several", "heat")
LOOK = """() => {
    const root = document.querySelector('.rl-explorer'), out = root.getBoundingClientRect();
    const box = (e) => e.getBoundingClientRect();
    const seen = (e) => e.checkVisibility() && box(e).width > 1 && box(e).height > 1;
    const least = [...root.querySelectorAll('.rl-view')].filter(seen).flatMap((view) => {
        const room = box(view), inside = (b) => b.right > room.left && b.left < room.right
            && b.bottom > room.top && b.top < room.bottom;
        return [...view.querySelectorAll('.node text')].filter((t) => inside(box(t)))
            .map((t) => t.getAttribute('font-size') * t.getScreenCTM().a);
    });
    const parts = ['.rl-bar', '.rl-timeline', '.rl-left', '.rl-legend', '.rl-panel', '.rl-stage'].flatMap(
        (s) => [...root.querySelectorAll(s)].filter(seen).map((e) => [s, box(e)]));
    const apart = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) <= 1
        || Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) <= 1;
    const nested = (s, t) => s === t || [s, t].sort().join() === '.rl-legend,.rl-stage';
    const over = parts.flatMap(([s, a], i) => parts.slice(i + 1).filter(([t, b]) => !nested(s, t) && !apart(a, b))
        .map(([t]) => s + ' over ' + t));
    const short = (e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible';
    const words = [...root.querySelectorAll('.rl-title, .rl-name, .rl-chip, button, .rl-legend > *, .rl-tab-bar > *')]
        .filter(seen);
    const cut = words.filter((e) => short(e) || box(e).right > out.right + 1 || box(e).left < out.left - 1)
        .map((e) => e.textContent);
    return { least: Math.min(...least, 99), over, cut, wide: document.scrollingElement.scrollWidth } }"""

PALE = """() => {
    const paper = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const numbers = (css) => {
        paper.clearRect(0, 0, 1, 1);
        paper.fillStyle = css;
        paper.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = paper.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255] };
    const over = (top, below) => below.map((v, i) => top[i] * top[3] + v * (1 - top[3]));
    const ground = (e) => !e ? [255, 255, 255]
        : over(numbers(getComputedStyle(e).backgroundColor), ground(e.parentElement));
    const linear = (v) => v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4;
    const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => sum + w * linear(c[i]), 0.05);
    const ratio = (e) => {
        const below = ground(e), both = [light(below), light(over(numbers(getComputedStyle(e).color), below))];
        return Math.max(...both) / Math.min(...both) };
    const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    return [...document.querySelectorAll('.rl-explorer *')]
        .filter((e) => own(e) && shown(e) && !e.closest('svg, style, [disabled]') && ratio(e) < 4.5)
        .map((e) => `${e.className} ${e.textContent} ${ratio(e)}`) }"""
"""Words whose contrast is less than WCAG 2's 4.5 to 1."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return PassExplorer(study.explore("resnet8")).save(tmp_path_factory.mktemp("sizes") / "x.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_can_be_read_in_every_width(page, path, artifacts, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for view in VIEWS:
            page.evaluate(f"() => window.relaylab.choose('pane', '{view}')")
            page.wait_for_timeout(250)
            page.screenshot(path=artifacts / f"size_{width}_{view}_{scheme}.png")
            found = page.evaluate(LOOK)
            assert found["least"] >= 9 - 1e-3 and found["wide"] <= width, (width, view, found)
            assert not found["over"] and not found["cut"], (width, view, found)
    assert page.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(page, path, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    for view in VIEWS:
        page.evaluate(f"() => window.relaylab.choose('pane', '{view}')")
        page.wait_for_timeout(250)
        page.evaluate("() => [...document.querySelectorAll('.rl-line[data-id]')].find((l) => l.offsetWidth)?.click()")
        assert page.evaluate(PALE) == [], view
    assert page.locator(".rl-lit").count()
    resting = page.locator(".rl-bar :disabled").evaluate_all("all => all.map((e) => getComputedStyle(e).opacity)")
    assert set(resting) == {"0.4"}, "what means nothing in this pane looks like it"
    page.evaluate("() => window.relaylab.choose('pane', 'graph')")
    page.keyboard.press("Tab")
    picture = page.locator(".rl-view > svg").first
    picture.focus()
    assert picture.evaluate("(svg) => getComputedStyle(svg).outlineStyle") != "none", "where the keys go is seen"


def test_boxes_close_and_cards_open_by_their_signs_and_pictures_move(browser, path):
    """A click on − of a box closes it where it stands; from stage to stage nodes move, new ones appear."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.add_init_script(
        "window.played = []; const animate = Element.prototype.animate;"
        "Element.prototype.animate = function (frames, time) {"
        "  window.played.push([Object.keys(frames[0])[0], this.dataset.id, time]);"
        "  return animate.call(this, frames, time) }"
    )
    page.goto(path.as_uri() + "#stage=FuseOps")
    page.wait_for_selector(".rl-explorer .group .rl-sign")
    box = page.locator(".rl-explorer .group:has(.rl-sign)").last
    name = box.get_attribute("data-id")
    left = box.bounding_box()
    box.locator(".rl-sign").dispatch_event("click")
    card = page.locator(f".rl-explorer .node[data-id='{name}']")
    card.locator(".rl-sign", has_text="+").wait_for()
    page.wait_for_timeout(300)
    there = card.bounding_box()
    assert abs(there["x"] + there["width"] / 2 - left["x"] - left["width"] / 2) < left["width"], "it keeps its place"
    card.locator(".rl-sign").dispatch_event("click")
    page.locator(f".rl-explorer .group[data-id='{name}']").wait_for()
    page.evaluate("window.played = []")
    page.locator(".rl-explorer").focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => window.played.some(([what]) => what === 'opacity')")
    assert all(time == 200 for _, _, time in page.evaluate("window.played"))
    page.emulate_media(reduced_motion="reduce")
    page.evaluate("window.played = []")
    before = page.locator(".rl-explorer").get_attribute("data-shown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => document.querySelector('.rl-explorer').dataset.shown !== '{before}'")
    page.wait_for_timeout(100)
    assert page.evaluate("window.played") == []
    context.close()


def test_keys_fit_the_whole_and_the_selected_node(page, path):
    page.goto(path.as_uri() + "#stage=FuseOps&node=main/nn.conv2d.3")
    page.wait_for_selector(".rl-explorer .node.selected")
    page.locator(".rl-explorer").focus()
    place = """() => { const view = document.querySelector('.rl-view svg').getBoundingClientRect();
        const box = document.querySelector('.rl-view .node.selected .box').getBoundingClientRect();
        return [box.width / view.width, box.left >= view.left && box.right <= view.right
            && box.top >= view.top && box.bottom <= view.bottom] }"""
    page.keyboard.press("f")
    near, inside = page.evaluate(place)
    assert inside
    page.keyboard.press("0")
    page.wait_for_timeout(100)
    whole, _ = page.evaluate(place)
    assert whole < near, "the whole is farther away than a node with its neighbours"
    page.keyboard.press("f")
    page.wait_for_timeout(100)
    assert page.evaluate(place) == [pytest.approx(near), True] and page.errors == []


def test_ten_thousand_nodes_are_searched_and_moved_in(page, tmp_path, monkeypatch):
    """What is in view is in the document, all of it is found; the last is reached by Enter. Code is not looked at."""

    def none(self):
        raise RelayError("not here")

    monkeypatch.setattr(Kernels, "names", property(none))
    value = start = relay.var("x", shape=(4,))
    for k in range(10_000):
        value = relay.tanh(value) if k % 2 else relay.exp(value)
    found = study.explore(relay.IRModule.from_expr(relay.Function([start], value)), passes=[])
    page.goto(PassExplorer(found).save(tmp_path / "long.html").as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    page.locator(".rl-search").fill("op:tanh")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === '5000 hits'")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".rl-explorer .node.selected")
    size, drawn = page.evaluate("""() => [window.relaylab.parts.stage.canvases[0].byId.size,
        document.querySelectorAll('.rl-view .node').length]""")
    assert size > 10_000 and 0 < drawn < size / 4 and page.errors == []


def test_the_menu_of_more_tools_closes_by_escape_and_by_a_click_beside_it(page, path):
    page.set_viewport_size({"width": 660, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    summary, opened = page.locator(".rl-more > summary"), page.locator(".rl-more[open]")
    for close in (lambda: page.keyboard.press("Escape"), lambda: page.mouse.click(330, 500)):
        summary.click()
        opened.wait_for()
        close()
        opened.wait_for(state="detached")
    assert page.errors == []


@pytest.mark.parametrize("width", SIZES)
def test_what_is_found_has_room_beside_the_search_field(page, path, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer .rl-view .node")
    page.locator(".rl-search").fill("bytes_read>0 & users>0")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent.includes('hit')")
    page.wait_for_timeout(100)  # the bar is arranged a frame later
    clear = """() => {
        const [field, hits, bar] = ['.rl-search', '.rl-hits', '.rl-bar'].map((s) =>
            document.querySelector('.rl-explorer ' + s).getBoundingClientRect());
        const at = document.elementFromPoint(hits.right - 2, (hits.top + hits.bottom) / 2);
        return [field.width >= 80, hits.right <= bar.right, at?.className];
    }"""
    assert page.evaluate(clear) == [True, True, "rl-hits"]
    page.locator(".rl-search").fill("readrs>1")
    page.wait_for_function("() => document.querySelector('.rl-hits').textContent === 'not understood'")
    says = page.locator(".rl-query")
    assert "there is no figure" in says.inner_text() and "bytes_read" in says.inner_text()
    assert says.evaluate("e => e.scrollWidth <= e.clientWidth")
