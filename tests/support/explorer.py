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
