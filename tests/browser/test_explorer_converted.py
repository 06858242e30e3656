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
    cells = ["%load_ext relaylab", "%relay_passes mlp", "%relay_asm mlp dense --stage loop"]
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


PREDICT = """import os
os.environ["RELAYLAB_COURSE_DIR"] = ""
from relaylab.course import check
from relaylab.lab.predict import predict
w = predict("folds")
w"""


def test_columns_stand_below_each_other(page, converted):
    """Listings had letters of all widths where no JupyterLab says how code is written."""
    page.route("http*://**", lambda route: route.abort())
    page.goto(converted.as_uri())
    listing = page.locator("pre", has_text="parallel").first
    widths = listing.evaluate(
        """e => ['i', 'M'].map((letter) => {
        const span = e.appendChild(document.createElement('span'));
        span.textContent = letter.repeat(20);
        return span.getBoundingClientRect().width })"""
    )
    assert widths[0] == widths[1] > 100


def test_where_a_kernel_answers_the_picture_makes_room_for_the_widget(nb, page, shot):
    nb.open("%load_ext relaylab", "%relay_passes mlp", PREDICT)
    nb.run_all()
    page.wait_for_selector(".rl-explorer[data-shown]")
    assert page.locator("[data-relaylab-still]").count() == 1
    assert not page.locator("[data-relaylab-still]").is_visible() and page.locator("[data-shown]").is_visible()
    a_prediction_is_clicked(nb, page, shot)


def a_prediction_is_clicked(nb, page, shot):
    """A question of the course: several operators are chosen by mouse and by keyboard, and judged."""
    page.evaluate("() => window.jupyterapp.shell.currentWidget.content.scrollToItem(2)")
    root = page.locator(".rl-predict")
    said = root.locator(".rl-predict-said")
    page.wait_for_selector(".rl-predict .node[role=checkbox]")
    size = "t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().d"
    assert min(text.evaluate(size) for text in root.locator(".node text").all()) >= 9
    root.get_by_text("Check", exact=True).click()
    page.wait_for_function("() => document.querySelector('.rl-predict-said').textContent.includes('still open')")
    for name in ("nn.conv2d", "add", "sqrt", "multiply"):
        root.locator(f'.node[data-id="main/{name}"]').click()
    nb.until("print(w.chosen)", "['nn.conv2d', 'add', 'sqrt', 'multiply']")
    assert root.locator(".node.selected").count() == 4 and said.inner_text() == "", "another answer has no verdict yet"
    root.get_by_text("Check", exact=True).click()
    page.wait_for_function("() => document.querySelector('.rl-predict-said').textContent.includes('stays: its data')")
    root.locator('.node[data-id="main/nn.conv2d"]').click()  # takes it back
    root.locator('.node[data-id="main/%data"]').click()  # no operator
    for name in ("divide", "expand_dims"):
        root.locator(f'.node[data-id="main/{name}"]').focus()
        page.keyboard.press("Space")
    root.get_by_text("Check", exact=True).click()
    page.wait_for_selector('.rl-predict[data-verdict="true"]')
    shot("prediction")
    assert root.locator('.node[aria-checked="true"]').count() == 5 and said.inner_text() == "✓ right"
    assert nb.python("print(check('folds', w).right)") == "True"
    nb.python("w.chosen = ['sqrt']")
    page.wait_for_function("() => document.querySelectorAll('.rl-predict .node.selected').length === 1")
    root.get_by_text("Hint", exact=True).click()
    page.wait_for_function("() => document.querySelector('.rl-predict-said').textContent.includes('hint 1 of 3')")
    nb.python("from relaylab.explorer.wording import wording; w.words = wording('zh')")
    root.get_by_text("检查", exact=True).click()  # the buttons are translated, the judge's words are the lesson's
    page.wait_for_function("() => document.querySelector('.rl-predict-said').textContent.includes('more can be')")
    assert "请点击" not in root.inner_text() and "已选：sqrt" in root.inner_text()
    assert page.errors == []
