"""Keys and clicks that are quicker than the answers: what was pressed before an answer came is meant all the same."""

from __future__ import annotations

import pytest
from support.explorer import press
from support.stages import MLP, step

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LATE = """ms => {
    window.e = document.querySelector('.rl-explorer').explorer;
    const send = model.send;
    let before = Promise.resolve();
    model.send = (message) => {
        const due = new Promise((done) => setTimeout(done, ms));
        before = Promise.all([before, due]).then(() => send(message));
    } }"""


@pytest.fixture
def late(hosted):
    """The explorer of a host whose answers come late, in the order of the questions."""
    hosted.evaluate(LATE, 500)
    hosted.locator(".rl-explorer").focus()
    return hosted


def shown(page, what: str) -> None:
    page.wait_for_function("what => document.querySelector('.rl-explorer').dataset.shown === what", arg=what)


def names(page) -> list[str]:
    return [item.name for item in page.session.pipeline.items]


def test_a_rewrite_that_was_meant_for_another_pass_is_not_taken(late):
    page, at = late, MLP["FuseOps"]
    page.evaluate(f"() => {{ e.go({at - 1}, {at}); e.parts.stepper.move(1) }}")
    page.evaluate(f"() => {{ e.go(0, 1); e.go({at - 1}, {at}) }}")
    page.wait_for_selector(".rl-stepper >> text=single rewrites of this pass")
    shown(page, step(at))
    assert page.evaluate("[e.parts.stepper.at, e.parts.stepper.wanted]") == [-1, -1]
    assert page.errors == []


def test_the_life_of_a_node_is_walked_as_far_as_keys_were_pressed(late):
    page = late
    page.keyboard.press("Home")
    shown(page, "0:0")
    page.evaluate("() => e.pick('main/nn.bias_add')")
    story = page.session.ask("node", 0, "main/nn.bias_add")["story"]
    first, second = [entry["frame"] for entry in story if entry["frame"]][:2]
    page.keyboard.press("n")
    page.keyboard.press("n")
    shown(page, step(second))
    assert first < second and page.errors == []


def test_what_is_found_is_waited_for(late):
    page = late
    page.keyboard.press("/")
    page.keyboard.type("op:nn.dense")
    page.keyboard.press("Enter")
    page.wait_for_selector(".node.selected")
    assert "nn.dense" in page.evaluate("model.get('selected')")
    page.locator(".rl-search").fill("")
    page.keyboard.type("op:/softmax/")
    page.keyboard.press("Enter")
    page.wait_for_function("() => model.get('selected').includes('softmax')")
    assert page.errors == []


def test_levels_are_those_of_the_picture_that_comes(late):
    """Kernels are there after fusion only: folded before its picture had come, the groups of the one before were."""
    page, at = late, MLP["FuseOps"]
    page.keyboard.press("Home")
    shown(page, "0:0")
    page.evaluate(f"() => e.go({at - 1}, {at})")
    page.keyboard.press("2")
    page.wait_for_function("() => [...e.parts.folding.closed].some((id) => id.includes('fused') || id.includes('/'))")
    shown(page, step(at))
    assert page.errors == []


def test_passes_are_edited_that_were_meant(late):
    page, before = late, names(late)
    first, second = [k - 1 for k in MLP.changing[:2]]
    for index in (first, second):
        page.locator(f'.rl-pass[data-index="{index}"]').hover()
        page.locator(f'.rl-pass[data-index="{index}"] [title="remove"]').click()
    page.wait_for_function("n => e.stages.rows.length === n", arg=len(before) - 2)
    assert names(page) == [n for k, n in enumerate(before) if k not in (first, second)]

    # back to where it was, by keys that come at once: the first edit that is taken back is the last that was asked for
    page.locator(".rl-explorer").focus()
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    page.wait_for_function("n => e.stages.rows.length === n", arg=len(before))
    assert names(page) == before

    # a key that is pressed twice moves a pass by two places
    at = MLP.first
    page.evaluate(f"() => e.go({at - 1}, {at})")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_function("after => e.stages.after === after", arg=at + 2)
    rest = [n for k, n in enumerate(before) if k != at - 1]
    assert names(page) == [*rest[: at + 1], before[at - 1], *rest[at + 1 :]]
    assert page.errors == []


def test_undo_waits_for_the_edit_that_is_under_way(late):
    page, enabled = late, [i.enabled for i in late.session.pipeline.items]
    page.keyboard.press("x")
    page.keyboard.press("Control+z")
    page.wait_for_function("() => e.parts.undo.future.length === 1 && !e.parts.editor.done")
    assert [i.enabled for i in page.session.pipeline.items] == enabled
    assert page.errors == []


def test_what_a_tool_says_does_not_cover_what_was_asked_for_since(late):
    page = late
    press(page, "Memory")
    press(page, "What next?")
    page.evaluate("() => e.pick('main/nn.dense')")
    page.wait_for_selector(".rl-panel h2 >> text=nn.dense")
    page.wait_for_timeout(2500)
    assert page.locator(".rl-panel").inner_text().startswith("nn.dense")
    assert page.errors == []


def test_the_reasons_are_those_of_the_pass_that_was_chosen_last(late):
    page = late
    page.evaluate(f"() => {{ e.go(0, 0); e.go({MLP.last - 1}, {MLP.last}); e.pick('main/nn.softmax') }}")
    page.locator(".rl-why-button").click()
    page.wait_for_selector(".rl-why select")
    chosen = page.locator(".rl-why select").input_value()
    other = page.evaluate(
        "v => [...document.querySelector('.rl-why select').options].find(o => o.value !== v).value", chosen
    )
    page.evaluate(
        """([a, b]) => { const s = document.querySelector('.rl-why select');
        for (const v of [a, b]) { s.value = v; s.dispatchEvent(new Event('change')) } }""",
        [other, chosen],
    )
    page.wait_for_timeout(1500)
    assert page.locator(".rl-why select").input_value() == chosen
    assert page.errors == []


def test_control_flow_of_a_kernel_that_is_shown_no_more(late):
    page = late
    page.evaluate("() => { e.pick('main/nn.dense'); e.choose('pane', 'code') }")
    page.locator("button", has_text="Control flow").click()
    page.evaluate("() => e.pick('main/nn.softmax')")
    page.wait_for_timeout(2500)
    assert page.locator(".rl-large").count() == 0
    assert page.errors == []
