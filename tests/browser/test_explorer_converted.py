"""What stays of the explorer without a kernel: a notebook converted to HTML, opened with the network cut.

And what makes room where there is a kernel.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    exporter = pytest.importorskip("nbconvert").HTMLExporter()
    cells = ["%load_ext relaylab", "%relay_passes mlp"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "application/vnd.jupyter.widget-state+json" in notebook.metadata.widgets
    path = tmp_path_factory.mktemp("converted") / "notebook.html"
    path.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    return path


def test_a_converted_notebook_shows_the_picture(page, converted, shot):
    page.route("http*://**", lambda route: route.abort())
    page.goto(converted.as_uri())
    page.wait_for_selector("[data-relaylab-still] svg .node")
    assert page.locator("[data-relaylab-still] svg").bounding_box()["height"] > 100
    shot("converted")
    page.locator("[data-relaylab-still] svg .node", has_text="%data").first.click()
    assert "%data" in page.locator("[data-relaylab-still] pre").first.inner_text()


def test_without_scripts_the_picture_is_an_image(browser, converted):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.route("http*://**", lambda route: route.abort())
    page.goto(converted.as_uri())
    box = page.locator("[data-relaylab-still] img").bounding_box()
    context.close()
    assert box["width"] > 100 and box["height"] > 100


def test_where_a_kernel_answers_the_picture_makes_room_for_the_widget(nb, page):
    nb.open("%load_ext relaylab", "%relay_passes mlp")
    nb.run_all()
    page.wait_for_selector(".rl-explorer[data-shown]")
    assert page.locator("[data-relaylab-still]").count() == 1
    assert not page.locator("[data-relaylab-still]").is_visible() and page.locator(".rl-explorer").is_visible()
