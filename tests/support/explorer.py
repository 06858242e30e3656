"""What tests of the explorer in a browser do again and again."""

from __future__ import annotations


def press(page, text: str) -> None:
    """Press a button of the bar; one that has no room there is in its menu."""
    button = page.locator(".rl-bar button", has_text=text).first
    if not button.is_visible():
        page.locator(".rl-more > summary").click()
    button.click()


def saved(page, form: str) -> bytes:
    """Save the picture that is seen; the bytes of the file."""
    press(page, "Save")
    with page.expect_download() as found:
        page.locator(".rl-panel button", has_text=f".{form}").first.click()
    assert found.value.suggested_filename.endswith(f".{form}")
    return found.value.path().read_bytes()


def least_text(page, inside: str) -> float:
    """The height in pixels of the smallest text of nodes that are in view in a picture."""
    return page.locator(f"{inside} .rl-view").evaluate(
        """view => { const room = view.getBoundingClientRect(), of = (t) => t.getBoundingClientRect();
        const seen = (b) => b.right > room.left && b.left < room.right && b.bottom > room.top && b.top < room.bottom;
        return Math.min(...[...view.querySelectorAll('.node text')].filter((t) => seen(of(t)))
            .map((t) => t.getAttribute('font-size') * t.getScreenCTM().a)) }"""
    )
