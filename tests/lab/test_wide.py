"""Tables and listings keep their lines in a notebook."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "line, words",
    [
        ("%relay_profile lib -n 1", "Duration (us)"),
        ("%relay_asm lib", "kernel"),
        ("%relay_asm lib relu --stage llvm", "&lt;"),
    ],
)
def test_long_lines_are_not_wrapped(cell, line, words):
    cell("%relay_build mod -o lib -q")
    result = cell(line)
    assert "white-space:pre;" in result.html and words in result.html and "<script" not in result.html
    assert words.replace("&lt;", "<") in result.out
