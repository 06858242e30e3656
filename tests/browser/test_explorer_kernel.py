"""The explorer when its kernel is slow, or gone."""

from __future__ import annotations

import pytest
from support.explorer import press
from test_explorer_live import open_explorer

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SLOW = """
import time
from relaylab.transform import module_pass
@module_pass(opt_level=0)
def Slow(mod, ctx):
    time.sleep(4)
    return mod
@module_pass(opt_level=0)
def Endless(mod, ctx):
    while True:
        time.sleep(0.05)
w.session.pipeline.insert(3, Endless)
w.session.pipeline.toggle(3)
w.session.pipeline.insert(3, Slow)
w.session.pipeline.toggle(3)
w.session.refresh()
from relaylab.explorer.questions.passes import rows
w.rows = rows(w.session)
"""


def test_what_is_waited_for_and_a_gone_kernel_are_said(nb, page, shot):
    open_explorer(nb, "mlp")
    nb.python(SLOW)
    page.locator(".rl-quiet").first.click()
    page.locator(".rl-pass", has_text="Slow").locator("input[type=checkbox]").click()
    page.wait_for_selector(".rl-wait >> text=computing (Slow, pass 4 of")
    shot("computing")
    page.wait_for_selector(".rl-wait", state="hidden")
    assert nb.python("print([i.enabled for i in w.session.pipeline.items if i.name == 'Slow'])") == "[True]"

    stopping(nb, page, shot)
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_selector(".rl-wait >> text=is gone")
    press(page, "Check")
    page.wait_for_function("() => document.querySelector('.rl-panel').innerText.includes('run the cell again')")
    shot("gone")
    page.locator(".rl-wait button").click()
    page.wait_for_selector(".rl-wait >> text=is gone")
    nb.run_all()
    page.wait_for_selector(".rl-explorer .rl-view .node")
    page.wait_for_function("() => [...document.querySelectorAll('.rl-wait')].every(e => e.hidden)")


def stopping(nb, page, shot) -> None:
    """Stop interrupts the kernel: the edit is taken back, and everything goes on."""
    box = page.locator(".rl-pass", has_text="Endless").locator("input[type=checkbox]")
    box.click()
    page.wait_for_selector(".rl-wait >> text=computing (Endless, pass 5 of")
    shot("stop")
    page.locator(".rl-wait button", has_text="Stop").click()
    page.wait_for_selector(".rl-wait", state="hidden")
    page.wait_for_selector(".rl-panel >> text=stopped")
    assert not box.is_checked()
    assert nb.python("print([i.enabled for i in w.session.pipeline.items if i.name == 'Endless'])") == "[False]"
    page.locator(".rl-explorer").focus()
    page.keyboard.press("End")
    page.wait_for_selector(".rl-explorer .rl-view .node")
