"""A saved page without a mouse: the focus is seen, goes through everything and out again; trees keep their arrows."""

from __future__ import annotations

import pytest

from relaylab import study
from relaylab.lab.explorer import PassExplorer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOCUS = """() => {
    const e = document.activeElement;
    if (!e || e === document.body) return null;
    const marks = (part) => { const s = getComputedStyle(part); return [s.outline, s.boxShadow, s.backgroundColor] };
    const parts = [e, ...e.querySelectorAll(':scope > span')], lit = parts.map(marks).join();
    const { x, y, width, height } = e.getBoundingClientRect();
    e.blur();
    const dark = parts.map(marks).join();
    e.focus({ preventScroll: true });
    return { what: `${e.tagName} ${e.className?.baseVal ?? e.className} ${e.ariaLabel ?? ''}`, marked: lit !== dark,
        there: width > 1 && height > 1 && x < innerWidth && y < innerHeight && x + width > 0 && y + height > 0 } }"""
"""What has the focus, whether it looks other than without it, whether it is in the window."""
MOST = 200
SELECTED = """() => {
    const room = document.querySelector('.rl-view').getBoundingClientRect();
    const box = document.querySelector('.rl-view .selected').getBoundingClientRect();
    return box.left >= room.left && box.right <= room.right && box.top >= room.top && box.bottom <= room.bottom }"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return PassExplorer(study.explore("mlp")).save(tmp_path_factory.mktemp("keys") / "x.html")


@pytest.fixture
def opened(page, path):
    page.goto(path.as_uri())
    page.wait_for_selector(".rl-explorer[data-shown] .node")
    return page


def view(page, name: str) -> None:
    page.locator(".rl-bar button", has_text=name).first.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(400)


@pytest.mark.parametrize("name", ["Graph", "Text", "Both", "Code", "Panes", "Heat"])
def test_the_focus_is_seen_and_goes_out_again(opened, name):
    page = opened
    page.keyboard.press("/")
    page.keyboard.type("op:nn.relu")
    page.keyboard.press("Enter")
    view(page, name)
    stops = []
    while len(stops) < MOST:
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    assert 10 < len(stops) < MOST, "a trap"
    assert not [s["what"] for s in stops if not s["there"]]
    assert not [s["what"] for s in stops if not s["marked"]]
    assert page.errors == []


def test_arrows_in_the_tree_stay_in_it(opened):
    page = opened
    stage = "() => window.relaylab.host.get('after')"
    at = "() => document.activeElement.textContent"
    before = page.evaluate(stage)
    tree = page.locator(".rl-tree")
    tree.locator("li").first.focus()
    page.keyboard.press("ArrowRight")  # it is open: to what is in it
    assert page.evaluate(at) == "%data"
    page.keyboard.press("ArrowRight")  # nothing is in it
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")  # nothing is above
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")  # to what it is in
    page.keyboard.press("ArrowLeft")  # which closes
    assert tree.locator("li").first.get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("End")
    assert page.evaluate("() => document.activeElement.role") == "treeitem" and page.evaluate(stage) == before
    page.keyboard.press("ArrowRight")
    assert tree.locator("li").first.get_attribute("aria-expanded") == "true"


def test_the_selected_node_is_seen_on_where_its_picture_gets_less_room(opened):
    page = opened
    page.evaluate("() => window.relaylab.pick('main/nn.relu')")
    page.wait_for_selector(".rl-view .selected")
    assert page.evaluate(SELECTED)
    for name in ("Both", "Code"):
        view(page, name)
        assert page.evaluate(SELECTED), name


def test_roles_are_whole(hosted):
    """Lists of items, rows of cells, borders that say where they are; what scrolls can be reached by the keyboard."""
    page = hosted
    page.evaluate("() => document.querySelector('.rl-explorer').explorer.choose('pane', 'both')")
    page.wait_for_selector(".rl-textpane [role=row]")
    page.wait_for_selector(".rl-sash-left[aria-valuenow]")
    found = page.evaluate(
        """() => {
        const all = (where) => [...document.querySelectorAll(`.rl-explorer ${where}`)];
        const role = (e) => e.getAttribute('role');
        return {
            items: [...new Set(all('[role=list] > *').map(role))],
            cells: [...new Set(all('[role=row] > *').map(role))],
            borders: all('[role=separator]').filter((e) => !(Number(e.ariaValueNow) <= Number(e.ariaValueMax))).length,
            inside: all('[role=option] :is(button, input), [role=button] :is(button, input)').length,
            current: all('.rl-pass[aria-current=step]').length,
            unnamed: all('button, input, select, textarea').filter((e) =>
                !(e.ariaLabel || e.textContent.trim() || e.title)).length,
            reached: all('.rl-textpane')[0].tabIndex,
            banner: all('header:not([role])').length,
        } }"""
    )
    assert found == {
        "items": ["listitem"],
        "cells": ["cell"],
        "borders": 0,
        "inside": 0,
        "current": 1,
        "unnamed": 0,
        "reached": 0,
        "banner": 0,
    }
    width = page.locator(".rl-sash-left").get_attribute("aria-valuenow")
    page.locator(".rl-sash-left").focus()
    page.keyboard.press("ArrowRight")
    assert int(page.locator(".rl-sash-left").get_attribute("aria-valuenow")) == int(width) + 16
    assert page.errors == []


@pytest.mark.parametrize("width", [560, 320, 220, 150])
def test_every_tool_is_in_sight_however_narrow_the_page(hosted, width):
    """As narrow as pages are that are enlarged to 400 %."""
    page = hosted
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_function(
        """() => {
        const bar = document.querySelector('.rl-bar'), edge = bar.getBoundingClientRect().right + 1;
        const seen = [...bar.children].filter((e) => e.offsetWidth);
        return seen.length > 4 && seen.every((e) => e.getBoundingClientRect().right <= edge) }""",
        timeout=10_000,
    )
    assert page.errors == []
