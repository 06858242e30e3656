"""The explorer and pictures in a notebook of marimo: a real server, a real browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from support.explorer import saved

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PATIENCE = 90
NOTEBOOK = """import marimo

app = marimo.App(width="full")


@app.cell
def _():
    from relaylab import relay, study, viz
    from relaylab.lab.explorer import PassExplorer

    explorer = PassExplorer(study.explore("mlp"), before=0, after=0)
    explorer
    return relay, viz


@app.cell
def _(relay, viz):
    mod = relay.parse("fn (%x: Tensor[(2, 3), float32]) { nn.relu(%x) }")
    viz.show(mod, title="a picture")
    return (mod,)
"""


@pytest.fixture(scope="module")
def marimo(tmp_path_factory):
    """The address of a running app."""
    pytest.importorskip("marimo")
    folder = tmp_path_factory.mktemp("marimo")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    (folder / "nb.py").write_text(NOTEBOOK)
    env = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "MARIMO_SKIP_UPDATE_CHECK": "1"}
    command = [sys.executable, "-m", "marimo", "run", "nb.py", "--headless", "--no-token", "--host", "127.0.0.1"]
    with open(folder / "log", "w") as log:
        server = subprocess.Popen([*command, "--port", str(port)], cwd=folder, env=env, stdout=log, stderr=log)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).read()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"marimo did not start: {(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(10)


def test_the_explorer_and_pictures_show_in_marimo(marimo, page, shot):
    page.goto(marimo)
    page.wait_for_selector(".rl-explorer[data-shown='0:0']")
    page.locator(".rl-explorer").focus()
    page.keyboard.press("ArrowRight")  # the kernel answers
    page.wait_for_selector(".rl-explorer:not([data-shown='0:0'])[data-shown]")
    assert page.locator(".rl-explorer .rl-view .node").count() > 5
    assert b".box" in saved(page, "svg")  # the rules of pictures lie in a tree of their own
    assert saved(page, "pdf").startswith(b"%PDF")
    page.wait_for_selector("img[alt='a picture'], svg[aria-label='a picture']")
    shot("marimo")
    assert page.errors == []
