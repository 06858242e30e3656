"""The explorer in other programs: a page inside a document, and the component with a model of a host's own."""

from __future__ import annotations

from html import escape

import pytest
from support.explorer import press
from support.stages import MLP, step

from relaylab.lab.embed.block import Block, explorer_page, frame_html

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SHOWN = "document.querySelector('.rl-explorer').dataset.shown"


def test_a_host_with_a_model_of_its_own_shows_the_explorer(hosted, shot):
    page = hosted
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


def test_other_passes_leave_nothing_of_those_before(hosted):
    """Lights and the kinds of changes are those of the passes that are listed; a refused move moves nothing."""
    page = hosted
    page.evaluate("() => (window.e = document.querySelector('.rl-explorer').explorer).parts.rail.light(0, true, 0)")
    page.locator(".rl-filter").fill("kind:merged")
    page.wait_for_function("() => document.querySelectorAll('.rl-pass[data-index]').length === 1")
    page.evaluate("() => model.set('rows', structuredClone(model.get('rows')))")
    page.wait_for_function("() => document.querySelectorAll('.rl-pass[data-index]').length === 1")
    page.locator(".rl-filter").fill("")
    assert page.locator(".rl-light-true").count() == 0
    page.evaluate(
        """() => { const send = model.send; window.asked = [];
        model.send = (message) => (asked.push(message.what), send(message)); e.go(0, 1); e.parts.stepper.at = 2 }"""
    )
    page.wait_for_function(f"() => {SHOWN} === '0:1'")
    page.locator(".rl-explorer").focus()
    page.keyboard.press("Alt+ArrowUp")  # it is the first
    page.evaluate(
        """() => { const dataTransfer = new DataTransfer(); dataTransfer.setData('text/plain', '3');
        document.querySelector('.rl-pass[data-index]').dispatchEvent(new DragEvent('drop', { dataTransfer })) }"""
    )
    page.keyboard.press("End")
    page.wait_for_function(f"() => {SHOWN} === '0:{MLP.last}'")
    assert "edit" not in page.evaluate("asked"), "what is dropped is no pass of this list"
    page.evaluate(
        f"() => {{ e.parts.stepper.at = 2; model.set('before', {MLP.first - 1}); model.set('after', {MLP.first}) }}"
    )
    page.wait_for_function(f"() => {SHOWN} === '{step(MLP.first)}'")
    assert page.evaluate("e.parts.stepper.at") == -1
    assert page.errors == []


def test_tabs_come_back_after_an_error_and_save_what_they_show(hosted):
    page = hosted
    page.evaluate(
        """() => { const e = (window.e = document.querySelector('.rl-explorer').explorer), { put } = e.answers;
        e.answers.put = async (what, args) => what === 'operators' && args[1] ? { error: 'stopped' } : put(what, args);
        e.choose('pane', 'operators') }"""
    )
    page.wait_for_selector(".rl-operators td")
    page.locator(".rl-tab-bar button", has_text="Measure").click()
    page.wait_for_selector(".rl-operators .rl-error")
    page.evaluate("() => e.refresh()")
    page.wait_for_selector(".rl-operators td")
    page.evaluate("() => e.choose('pane', 'heat')")
    page.wait_for_selector(".rl-heatpane .node")
    press(page, "Save")
    assert page.locator(".rl-panel .rl-story button").all_inner_texts() == [".svg", ".png"]
    page.evaluate("() => e.choose('pane', 'live')")
    field = page.locator(".rl-typing textarea")
    page.wait_for_selector(".rl-tab[data-read]")
    field.fill("def @main(%x: int32) { /* 😀😀 */ negative(%y) }")
    page.wait_for_selector(".rl-wrong")
    assert page.locator(".rl-wrong").text_content() == "%y"
    page.locator(".rl-faults button").click()
    assert field.evaluate("f => f.value.slice(f.selectionStart)") == "%y) }"
    page.evaluate("() => e.jump(1, 'time, ms', true)")
    page.wait_for_function(f"() => {SHOWN} === '0:1'")
    assert page.locator(".rl-search").input_value() == "", "a row of times is no operator"
    assert page.errors == []


def test_a_view_that_is_taken_away_waits_for_nothing(hosted):
    waiting = """async () => {
        const open = new Set(), { setInterval: set, clearInterval: clear } = window;
        window.setInterval = (...given) => { const id = set(...given); open.add(id); return id };
        window.clearInterval = (id) => (open.delete(id), clear(id));
        model.send = () => {};
        const end = again();
        while (!open.size) await new Promise((done) => setTimeout(done, 20));
        end();
        await new Promise((done) => setTimeout(done, 300));
        return open.size }"""
    hosted.wait_for_selector(".rl-explorer[data-ahead]")  # the first view has asked all that it will
    assert hosted.evaluate(waiting) == 0
    assert hosted.errors == []


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


def test_a_key_that_is_quicker_than_the_answer_takes_the_first_rewrite(hosted):
    """Pressed before the rewrites of a pass had come, `]` did nothing, or took one of the pass before."""
    page, at = hosted, MLP["FuseOps"]
    page.evaluate(
        f"""() => {{ window.e = document.querySelector('.rl-explorer').explorer;
        e.go({at - 1}, {at}); e.parts.stepper.move(1) }}"""
    )
    page.wait_for_selector(".rl-stepper .rl-pair svg >> nth=1")
    assert page.evaluate("[e.parts.stepper.index, e.parts.stepper.at]") == [at - 1, 0]
    assert page.errors == []
