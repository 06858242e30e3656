"""The explorer as one file: works with the network cut, and takes no text of a program for markup."""

from __future__ import annotations

import pytest

from relaylab import relay, study
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
    root.focus()
    first = root.get_attribute("data-shown")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"() => document.querySelector('.rl-explorer').dataset.shown !== '{first}'")
    page.keyboard.press("/")
    page.keyboard.type("op:nn.conv2d")
    assert int(page.locator(".rl-explorer .rl-bar .rl-hits").inner_text().split()[0]) > 5
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.selected")
    page.wait_for_selector(".rl-panel h2")
    assert "nn.conv2d" in page.locator(".rl-panel").inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    page.wait_for_selector(".rl-line.rl-plus")
    shot("saved_text")
    page.keyboard.press("v")
    page.keyboard.press("s")
    page.wait_for_selector(".rl-two")
    shot("saved_both")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.rl-explorer').dataset.shown.startsWith('0:')")
    assert page.locator(".rl-error").count() == 0 and page.errors == []


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
