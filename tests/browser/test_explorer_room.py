"""How much of the explorer is picture, and how large its text, in JupyterLab windows of all widths, light and dark."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SIZES = [(1440, 1000, 60), (1100, 800, 50), (660, 900, 35), (800, 900, 35)]
"""Windows, and the least share of the picture, in percent; with the files open, 800 leave a pane of 370."""
MEASURE = """() => {
    const root = document.querySelector('.rl-explorer'), graphs = root.querySelector('.rl-graphs');
    const out = root.getBoundingClientRect(), view = graphs.getBoundingClientRect(), n = 60;
    let inside = 0;
    for (let i = 0; i < n * n; i++) {
        const at = [out.left + ((i % n) + 0.5) * out.width / n, out.top + (Math.floor(i / n) + 0.5) * out.height / n];
        if (graphs.contains(document.elementFromPoint(...at))) inside += 1;
    }
    const seen = (b) => b.right > view.left && b.left < view.right && b.bottom > view.top && b.top < view.bottom;
    const sizes = [...graphs.querySelectorAll('.node text')].filter((t) => seen(t.getBoundingClientRect()))
        .map((t) => t.getAttribute('font-size') * t.getScreenCTM().a).sort((a, b) => a - b);
    const parts = ['.rl-bar', '.rl-timeline', '.rl-left', '.rl-legend', '.rl-panel', '.rl-graphs']
        .map((s) => [s, root.querySelector(s).getBoundingClientRect()]).filter(([, b]) => b.width && b.height);
    const over = parts.flatMap(([s, a], i) => parts.slice(i + 1)
        .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1).map(([t]) => `${s} over ${t}`));
    const shown = [...root.querySelectorAll('.rl-bar button, .rl-bar select, .rl-legend > *, .rl-title, .rl-name')]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().width);
    const cut = shown.filter((e) => e.getBoundingClientRect().right > out.right + 1
        || e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent);
    return { share: 100 * inside / n / n, sizes, over, cut, bar: root.querySelector('.rl-bar').offsetHeight } }"""


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_picture_has_the_room_and_can_be_read(nb, page, shot, theme):
    nb.open("%load_ext relaylab\n%relay_passes resnet18")
    command = f"() => window.jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {theme}'}})"
    page.evaluate(command)
    nb.run_all()
    page.wait_for_selector(".rl-explorer .rl-view .node")
    for width, height, least in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)
        page.evaluate("() => document.querySelector('.rl-explorer').scrollIntoView({block: 'end'})")
        page.wait_for_timeout(400)
        shot(f"room_{width}_{theme.lower()}")
        found = page.evaluate(MEASURE)
        assert found["share"] >= least, (width, found)
        assert found["sizes"] and found["sizes"][0] >= 9 - 1e-3, (width, found["sizes"][:3])
        assert not found["over"] and not found["cut"] and found["bar"] < 40, (width, found)
    assert page.errors == []


def test_parts_fold_are_drawn_wider_and_stay_so(nb, page, shot):
    nb.open("%load_ext relaylab\n%relay_passes mlp")
    page.evaluate("() => localStorage.removeItem('relaylab.room')")
    nb.run_all()
    page.wait_for_selector(".rl-explorer .rl-view .node")
    root = page.locator(".rl-explorer").first
    sash = root.locator(".rl-sash-left").bounding_box()
    page.mouse.move(sash["x"] + 2, sash["y"] + 50)
    page.mouse.down()
    page.mouse.move(sash["x"] + 42, sash["y"] + 50, steps=3)
    page.mouse.up()
    wide = root.locator(".rl-left").bounding_box()["width"]
    root.get_by_label("list of passes").click()
    assert not root.locator(".rl-left").is_visible() and not root.locator(".rl-panel").is_visible()
    root.locator(".rl-bar").get_by_label("panel", exact=True).click()
    assert root.locator(".rl-panel").is_visible()
    kept = page.evaluate("() => JSON.parse(localStorage.getItem('relaylab.room'))")
    assert kept == {"wide": {"left": round(wide), "list": False, "panel": True}}
    root.focus()
    page.keyboard.press("z")
    page.wait_for_function("() => document.querySelector('.rl-explorer').getBoundingClientRect().width === 1440")
    shot("full_screen")
    page.keyboard.press("m")
    assert root.locator(".rl-minimap").is_visible()
    map_left = root.locator(".rl-minimap").bounding_box()["x"]
    graphs = root.locator(".rl-graphs").bounding_box()
    assert graphs["x"] + graphs["width"] <= map_left
    page.keyboard.press("z")
    page.wait_for_function("() => document.querySelector('.rl-explorer').getBoundingClientRect().width < 1440")
    page.evaluate("() => localStorage.removeItem('relaylab.room')")
    assert page.errors == []
