"""The site of files, opened from the file system: search, permanent links, shared files, lessons, notebooks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from relaylab.cli import main
from relaylab.lab.page import script

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PICTURE = """from relaylab import relay, viz
x = relay.var("x", shape=(2, 3))
viz.show(relay.IRModule.from_expr(relay.nn.softmax(x)))"""


def _cell(kind: str, source: str) -> dict:
    more = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": f"c{len(source)}", "metadata": {}, "source": source, **more}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("site")
    (root / "notebooks").mkdir()
    cells = [
        _cell("markdown", "# A lesson\n\nAbout sums."),
        _cell("markdown", "## The axolotl"),
        _cell("code", PICTURE),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (root / "notebooks" / "01_lesson.ipynb").write_text(json.dumps(book))
    chinese = {**book, "cells": [_cell("markdown", "# 课\n\nAbout sums: 关于和。")]}
    (root / "notebooks" / "02_chinese.ipynb").write_text(json.dumps(chinese))
    (root / "tiny.relay").write_text("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, %x)) }")
    networks = f"mlp,{root / 'tiny.relay'}"
    with pytest.raises(SystemExit) as end:
        main(["site", str(root / "out"), "--networks", networks, "--notebooks", str(root / "notebooks")])
    assert end.value.code == 0
    return root / "out"


def test_pages_share_their_files_and_name_no_folders(site):
    assert {p.name for p in (site / "networks").iterdir()} == {"mlp.html", "mlp.ipynb", "tiny.html", "tiny.ipynb"}
    pages = [p.read_text() for p in site.rglob("*.html")]
    assert len(pages) == 5
    shared = script("saved.js").splitlines()[5]
    for text in pages:
        assert "function hydrate" not in text and shared not in text and str(site.parent) not in text
        assert not re.search(r"""(?:src|href)="(?:https?:|/)|fetch\(|type="module\"""", text)
    book = json.loads((site / "networks" / "mlp.ipynb").read_text())
    assert "%relay_passes mlp" in [c["source"] for c in book["cells"]]


def test_the_search_leads_to_a_step(page, site, shot):
    page.goto((site / "index.html").as_uri())
    page.fill("#search", "mlp fuseops")
    assert page.locator("#found a").first.inner_text() == "mlp: FuseOps" and page.locator("#all").is_hidden()
    assert page.url.endswith("#q=mlp%20fuseops")
    shot("site-search")
    page.locator("#found a").first.click()
    page.wait_for_selector(".rl-explorer[data-shown]")
    assert page.evaluate("window.relaylab.stages.row.name") == "FuseOps"
    assert page.locator(".site-bar a[download]").get_attribute("href") == "mlp.ipynb"
    shot("site-network")
    page.click(".site-bar a >> nth=0")
    for asked, first in (("sums", ["A lesson", "课"]), ("sums 和", ["课"])):  # pages of the language that is asked in
        page.fill("#search", asked)
        assert page.locator("#found a").all_inner_texts() == first
    page.fill("#search", "axolotl")
    page.locator("#found a").first.click()
    assert "\nx = relay.var" in page.locator("#cell2 pre.code").text_content()
    assert page.locator("#cell1 h2").is_visible() and page.locator("#cell2 svg .node").count() == 3, "a living picture"
    shot("site-lesson")
    page.goto((site / "index.html").as_uri() + "#q=%ff")
    page.wait_for_function("() => document.querySelector('#search').value === '%ff'")
    page.goto((site / "index.html").as_uri() + "#q=nn.relu 100%")
    page.wait_for_function("() => document.querySelector('#search').value === 'nn.relu 100%'")
    page.fill("#search", "")
    assert page.locator(".networks > li").count() == 2
    shot("site-index")
    assert page.errors == []
