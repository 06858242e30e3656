"""A real JupyterLab on a free port and a real headless Chromium; tests skip where Chromium is absent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.chromium import CHROMIUM
from support.stages import MLP, step

from relaylab import study
from relaylab.lab.embed.component import component, write

ARTIFACTS = Path(__file__).resolve().parents[1] / "artifacts" / "browser"
PATIENCE = 90  # seconds for anything: on a busy machine a notebook takes long to open
HARMLESS = ("favicon", "Source map", "net::ERR_", "WebSocket", "Failed to load resource")

HOST = """<!DOCTYPE html><link rel="stylesheet" href="explorer.css"><div id="here"></div><script type="module">
import explorer from "./explorer.mjs";
const state = %s, listeners = {};
const tell = (event, ...args) => (listeners[event] ?? []).forEach((run) => run(...args));
const model = {
  get: (name) => state[name],
  set(name, value) { state[name] = value; tell(`change:${name}`); },
  save_changes() {},
  on(event, run) { (listeners[event] ??= []).push(run); },
  async send(message) { tell("msg:custom", JSON.parse(await window.reply(JSON.stringify(message)))); },
};
window.model = model;
const show = () => explorer.render({ el: document.getElementById("here"), model });
window.again = show;
show();
</script>"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A wait that ran out is tried once more, an assertion never (docs/choices.md)."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="TimeoutError"))


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _environment(root: Path) -> dict[str, str]:
    """Private folders for everything that Jupyter writes."""
    env = dict(os.environ)
    env |= {f"JUPYTER_{kind}_DIR": str(root / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    env |= {
        "JUPYTERLAB_SETTINGS_DIR": str(root / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(root / "ws"),
        "IPYTHONDIR": str(root / "ipy"),
    }
    news = root / "settings/@jupyterlab/apputils-extension"
    news.mkdir(parents=True)
    (news / "notification.jupyterlab-settings").write_text('{"fetchNews":"false","checkForUpdates":false}')
    return env


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """The server: `url`, and `work`, the folder that it serves."""
    pytest.importorskip("jupyterlab")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    root, port = tmp_path_factory.mktemp("lab"), _free_port()
    work = root / "work"
    work.mkdir()
    options = {
        "ServerApp.port_retries": 0,
        "ServerApp.ip": "127.0.0.1",
        "IdentityProvider.token": "t",
        "ServerApp.password": "",
        "ServerApp.root_dir": work,
        "LabApp.expose_app_in_browser": True,
        "JupyterNotebookApp.expose_app_in_browser": True,
        "ServerApp.terminals_enabled": False,
        "LabApp.extension_manager": "readonly",
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        *(f"--{k}={v}" for k, v in options.items()),
    ]
    with open(root / "lab.log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(root), cwd=work)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, server, root / "lab.log")
        yield SimpleNamespace(url=url, work=work)
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()


def _wait(url: str, server: subprocess.Popen, log: Path) -> None:
    start = time.time()
    while True:
        try:
            urllib.request.urlopen(f"{url}/api/status?token=t", timeout=2).read()
            return
        except OSError:
            if server.poll() is not None or time.time() - start > PATIENCE:
                pytest.fail(f"JupyterLab did not start: {log.read_text()[-2000:]}")
            time.sleep(0.1)


def _context(browser):
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE * 1000)
    return context


@pytest.fixture(scope="module")
def lab_context(browser):
    """What all notebooks of a file are opened in: JupyterLab's scripts are fetched and compiled once."""
    context = _context(browser)
    yield context
    context.close()


@pytest.fixture
def page(request, browser):
    """A page whose errors are collected in `page.errors`."""
    shared = "lab" in request.fixturenames
    context = request.getfixturevalue("lab_context") if shared else _context(browser)
    page = context.new_page()
    page.errors = []
    page.on(
        "console",
        lambda m: page.errors.append(m.text) if m.type == "error" and not any(h in m.text for h in HARMLESS) else None,
    )
    page.on("pageerror", lambda e: page.errors.append(f"{e} {(e.stack or '')[:600]}"))
    yield page
    page.close() if shared else context.close()


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """The folder for screenshots."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    return ARTIFACTS


@pytest.fixture
def shot(page, artifacts):
    """`shot(name)` keeps a screenshot for people to look at."""
    return lambda name: page.screenshot(path=artifacts / f"{name}.png")


@dataclass
class Notebook:
    """A notebook in the browser."""

    page: object
    lab: object
    app: str = "lab/tree"

    def open(self, *cells: str) -> None:
        """Write a notebook of these cells and open it, with its kernel idle."""
        path = self.lab.work / f"test{time.time_ns()}.ipynb"
        made = [
            {"cell_type": "code", "metadata": {}, "source": c, "outputs": [], "execution_count": None, "id": f"c{i}"}
            for i, c in enumerate(cells)
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        path.write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
        self.page.goto(f"{self.lab.url}/{self.app}/{path.name}?reset&token=t")
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.page.wait_for_function("""async () => {
            const w = window.jupyterapp?.shell.currentWidget; if (!w?.sessionContext) return false;
            await w.sessionContext.ready; return w.sessionContext.session?.kernel?.status === 'idle' }""")

    def run_all(self) -> None:
        """Run every cell and wait until the last one is done."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
            .filter(c => c.model.type === 'code').every(c => c.model.executionCount != null)"""
        )
        errors = self.page.evaluate("""() => window.jupyterapp.shell.currentWidget.content.widgets
            .filter(c => c.model.type === 'code')
            .flatMap(c => c.model.outputs.toJSON()).filter(o => o.output_type === 'error')
            .map(o => o.ename + ': ' + o.evalue)""")
        assert not errors, errors

    def python(self, code: str) -> str:
        """What a piece of code prints in the kernel."""
        return self.page.evaluate(
            """async code => {
            const k = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel; let out = '';
            const f = k.requestExecute({code});
            f.onIOPub = m => { if (m.header.msg_type === 'stream') out += m.content.text;
            if (m.header.msg_type === 'error') out += 'ERROR ' + m.content.evalue }; await f.done; return out }""",
            code,
        ).strip()

    def until(self, code: str, expected: str) -> None:
        """Wait until a piece of code prints what is expected: what a page chooses reaches the kernel a little later."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = self.python(code)
            if found == expected:
                return
            time.sleep(0.05)
        pytest.fail(f"{code} prints {found}, not {expected}")


@pytest.fixture
def nb(page, lab) -> Notebook:
    """A notebook in JupyterLab."""
    return Notebook(page, lab)


@pytest.fixture
def nb7(page, lab) -> Notebook:
    """A notebook in Notebook 7."""
    pytest.importorskip("notebook", reason="needs the package notebook (Notebook 7)")
    return Notebook(page, lab, "notebooks")


@pytest.fixture
def hosted(page, tmp_path):
    """The explorer of a network in a page that is its host."""
    made = component(study.explore("mlp"))
    page.session = made.session
    script, style = write(tmp_path)
    page.expose_function("reply", lambda message: json.dumps(made.reply(json.loads(message))))
    kinds = {"explorer.mjs": "text/javascript", "explorer.css": "text/css", "": "text/html"}
    bodies = {"explorer.mjs": script.read_text(), "explorer.css": style.read_text(), "": HOST % json.dumps(made.state)}
    page.route("http://host.test/*", lambda route: _fulfil(route, kinds, bodies))
    page.goto("http://host.test/")
    page.wait_for_function(
        "shown => document.querySelector('.rl-explorer').dataset.shown === shown", arg=step(MLP.first)
    )
    return page


def _fulfil(route, kinds: dict[str, str], bodies: dict[str, str]) -> None:
    name = route.request.url.removeprefix("http://host.test/")
    route.fulfill(content_type=kinds.get(name, "text/plain"), body=bodies.get(name, ""))
