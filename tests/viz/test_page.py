"""The self-contained page and the hydrated picture in a real browser, with the network cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import chain, program

from relaylab.ir import Function, TensorType, Tuple, Var
from relaylab.viz import save, show
from relaylab.viz.figures.roofline import Dot, roofline
from relaylab.viz.write.html import bundle

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.route("http*://**", lambda route: route.abort())
    errors: list[str] = []
    page.on("console", lambda m: m.type == "error" and errors.append(m.text))
    page.on("pageerror", lambda e: errors.append(str(e)))
    yield page
    context.close()
    assert errors == []


def test_the_page(page, tmp_path):
    path = save([show(program(n), title=n) for n in ("fused", "closure")], tmp_path / "two.html", doc_title="two")
    page.goto(path.as_uri())
    page.locator(".rl-view .node").first.wait_for()
    assert page.locator(".rl-pages button").all_inner_texts() == ["fused", "closure"]
    page.locator(".rl-view .node", has_text="nn.conv2d").click()
    assert "padding = (1, 1, 1, 1)" in page.locator(".rl-panel").inner_text()
    assert page.locator(".rl-view .edge.near").count() == 3
    page.keyboard.press("ArrowDown")
    assert page.locator(".rl-panel h2").inner_text() == "add"
    page.keyboard.press("/")
    page.keyboard.type("relu")
    assert page.locator(".rl-hits").inner_text() == "1 hit"
    assert page.locator(".node.dim").count() == page.locator(".rl-view .node").count() - 1
    page.locator(".rl-pages button").nth(1).click()
    assert page.locator(".rl-view .node", has_text="if").count() == 1
    page.locator(".rl-pages button").nth(0).click()
    assert page.locator(".rl-hits").inner_text() == "1 hit"
    page.keyboard.press("Alt+ArrowRight")  # keys of the browser
    assert page.locator(".rl-view .node", has_text="if").count() == 0
    page.locator(".rl-view .node", has_text="nn.conv2d").click()
    page.locator(".rl-panel .rl-link", has_text="add").click()
    page.keyboard.press("ArrowUp")  # the picture has the keys again
    assert page.locator(".rl-panel h2").inner_text() == "nn.conv2d"
    page.locator(".rl-search").press("Shift+Enter")
    assert page.locator(".rl-panel h2").inner_text() == "nn.relu"
    page.keyboard.press("]")
    page.locator(".rl-pages button").nth(1).click()
    before = page.locator(".rl-view svg > g").get_attribute("transform")
    page.mouse.move(640, 400)
    page.mouse.down()
    page.mouse.move(700, 450)
    page.mouse.up()
    assert page.locator(".rl-view svg > g").get_attribute("transform") != before


def test_program_text_is_never_markup(page, tmp_path):
    names = ["<img src=x onerror=\"document.title='bad'\">", "</script><script>document.title='bad'</script>"]
    params = [Var(n, TensorType((1,))) for n in names]
    page.goto(save(Function(params, Tuple(params)), tmp_path / "x.html", title=names[1]).as_uri())
    page.locator(".rl-view .node").first.wait_for()
    assert page.locator("img").count() == 0 and page.title() != "bad"
    assert (
        page.locator(".rl-view .node", has_text="onerror").count() == 2
    )  # the variable and the function that lists it


def test_a_picture_that_is_shown_twice_lives_twice(page, tmp_path):
    html = show(program("fused"))._repr_mimebundle_()["text/html"]
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'>{html}{html}", encoding="utf-8")
    page.goto((tmp_path / "cell.html").as_uri())
    page.locator("[data-live='1'] svg .node").first.wait_for()
    assert page.locator("[data-live='1'] svg").count() == 2 and page.locator("img").count() == 0


def test_the_hydrated_picture(page, tmp_path):
    bundle = show(program("fused"))._repr_mimebundle_()
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'>{bundle['text/html']}", encoding="utf-8")
    page.goto((tmp_path / "cell.html").as_uri())
    page.locator("[data-live='1'] svg .node").first.wait_for()
    assert page.locator("img").count() == 0
    page.locator("svg .node", has_text="nn.conv2d").click()
    assert "padding = (1, 1, 1, 1)" in page.locator("[data-live] pre").inner_text()
    page.locator("[data-live] input").fill("relu")
    assert page.locator("svg .node[style*='0.15']").count() == page.locator("svg .node").count() - 1


def test_a_high_picture_is_whole_behind_a_scroll_bar(page, tmp_path):
    html = show(chain(40))._repr_mimebundle_()["text/html"]
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'>{html}", encoding="utf-8")
    page.goto((tmp_path / "cell.html").as_uri())
    page.locator("[data-live='1'] svg .node").first.wait_for()
    frame, last = page.locator("[data-live] > div"), page.locator("svg .node", has_text="@main")
    sizes = "e => [e.clientHeight, e.scrollHeight, e.querySelector('svg').viewBox.baseVal.height]"
    seen, whole, drawn = frame.evaluate(sizes)
    assert seen == 760 and whole >= drawn > 2000
    frame.evaluate("e => e.scrollTo(0, e.scrollHeight)")
    box, around = last.bounding_box(), frame.bounding_box()
    assert around["y"] < box["y"] and box["y"] + box["height"] < around["y"] + around["height"]
    before = frame.evaluate("e => e.scrollTop")
    page.mouse.move(around["x"] + 300, around["y"] + 300)
    page.mouse.down()
    page.mouse.move(around["x"] + 300, around["y"] + 400)
    page.mouse.up()
    assert frame.evaluate("e => e.scrollTop") == before - 100
    page.keyboard.press("+")
    assert frame.evaluate("e => e.scrollHeight") > 1.2 * whole
    grown = frame.evaluate("e => e.scrollHeight")
    page.keyboard.press("Control+f")  # a key of the browser
    assert frame.evaluate("e => e.scrollHeight") == grown
    page.mouse.move(around["x"] + 300, around["y"] + 300)
    page.mouse.down()
    frame.evaluate("() => window.dispatchEvent(new PointerEvent('pointercancel', {pointerId: 1}))")
    before = frame.evaluate("e => e.scrollTop")
    page.mouse.move(around["x"] + 300, around["y"] + 350)
    page.mouse.up()
    assert frame.evaluate("e => e.scrollTop") == before
    page.keyboard.press("f")
    assert frame.evaluate("e => e.scrollHeight") == seen


@pytest.mark.parametrize("width", [1280, 200])
def test_the_smallest_words_of_a_cell_have_nine_points(page, tmp_path, width):
    """As an image, and brought to life: high, low, and wider than the pane."""
    page.set_viewport_size({"width": width, "height": 800})
    made = show(program("fused")), show(chain(9)), roofline([Dot("a", 1.0, 1e9, 1.0)], 1e11, 1e10, "roof")
    for scene in (getattr(m, "scene", m) for m in made):
        html = bundle(scene, "")
        (tmp_path / "cell.html").write_text(f"<!DOCTYPE html>{html['text/html']}{html['image/svg+xml']}")
        page.goto((tmp_path / "cell.html").as_uri())
        page.locator("[data-live='1'] svg text").first.wait_for()
        size = "t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a"
        assert min(page.evaluate(f"[...document.querySelectorAll('svg text')].map({size})")) > 8.99


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_of_the_host_decides_and_the_picture_leaves_the_host_alone(page, tmp_path, system):
    bundle = show(program("fused"))._repr_mimebundle_()["text/html"]
    other = "<svg id='other'><rect class='page'/></svg>"
    (tmp_path / "cell.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'><body>{bundle}{other}", encoding="utf-8")
    page.emulate_media(color_scheme=system)
    page.goto((tmp_path / "cell.html").as_uri())
    page.locator("[data-live='1'] svg .node").first.wait_for()
    fill = "e => getComputedStyle(e).fill"
    assert page.locator("#other rect").evaluate(fill) == "rgb(0, 0, 0)"
    seen = [page.locator("[data-live] svg > .page").evaluate(fill)]
    for theme in ("true", "false"):
        page.locator("body").evaluate(f"e => e.setAttribute('data-jp-theme-light', '{theme}')")
        seen.append(page.locator("[data-live] svg > .page").evaluate(fill))
    day, night = "rgb(255, 255, 255)", "rgb(17, 21, 28)"
    assert seen == [night if system == "dark" else day, day, night]


def test_the_package_carries_its_page():
    static = Path(show.__code__.co_filename).parent / "static"
    assert sum(f.stat().st_size for f in static.iterdir()) < 150_000
    assert not any(word in f.read_text() for f in static.iterdir() for word in ("innerHTML", "eval(", "https://"))
