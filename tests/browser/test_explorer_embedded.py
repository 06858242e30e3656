"""The explorer in other programs: a page inside a document, and the component with a model of a host's own."""

from __future__ import annotations

import json
from html import escape

import pytest
from support.stages import MLP, step

from relaylab import study
from relaylab.lab.embed.block import Block, explorer_page, frame_html
from relaylab.lab.embed.component import component, write

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOWN = "document.querySelector('.rl-explorer').dataset.shown"
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


def test_a_host_with_a_model_of_its_own_shows_the_explorer(page, tmp_path, shot):
    made = component(study.explore("mlp"))
    script, style = write(tmp_path)
    page.expose_function("reply", lambda message: json.dumps(made.reply(json.loads(message))))
    kinds = {"explorer.mjs": "text/javascript", "explorer.css": "text/css", "": "text/html"}
    bodies = {"explorer.mjs": script.read_text(), "explorer.css": style.read_text(), "": HOST % json.dumps(made.state)}
    page.route("http://host.test/*", lambda route: _fulfil(route, kinds, bodies))
    page.goto("http://host.test/")
    page.wait_for_function(f"() => {SHOWN} === '{step(MLP.first)}'")
    page.locator(".rl-explorer").focus()
    page.keyboard.press("End")
    page.wait_for_function(f"() => {SHOWN} === '0:{MLP.last}'")
    page.evaluate(
        f"() => (model.set('before', 0), model.set('after', {MLP.first}), model.set('selected', 'main/nn.dense'))"
    )
    page.wait_for_function(f"() => {SHOWN} === '0:{MLP.first}'")
    page.wait_for_selector(".node.selected")
    shot("component")

    # a second view of the model follows the first, and leads it
    page.evaluate("() => window.again()")
    page.wait_for_function("() => document.querySelectorAll('.rl-explorer[data-shown]').length === 2")
    page.locator(".rl-explorer").nth(1).focus()
    page.keyboard.press("Home")
    page.wait_for_function("() => document.querySelectorAll(\".rl-explorer[data-shown='0:0']\").length === 2")
    assert page.errors == []


def _fulfil(route, kinds: dict[str, str], bodies: dict[str, str]) -> None:
    name = route.request.url.removeprefix("http://host.test/")
    route.fulfill(content_type=kinds.get(name, "text/plain"), body=bodies.get(name, ""))


def test_a_page_inside_a_document_takes_neither_its_address_nor_the_keyboard(page):
    block = Block.read("passes", "", {"network": "mlp", "step": "FuseOps"})
    page.set_content(
        f"<input autofocus>{frame_html(block, f'srcdoc={chr(34)}{escape(explorer_page(block))}{chr(34)}')}"
    )
    page.locator("iframe").scroll_into_view_if_needed()
    inside = next(f for f in page.frames if f is not page.main_frame)
    inside.wait_for_selector(".rl-explorer[data-shown]")
    assert inside.evaluate(SHOWN) == step(MLP["FuseOps"])
    assert page.evaluate("document.activeElement.tagName") == "INPUT" and page.url == "about:blank"
    inside.locator(".rl-explorer").focus()
    page.keyboard.press("Home")
    inside.wait_for_function(f"() => {SHOWN} === '0:0'")
    assert page.errors == []
