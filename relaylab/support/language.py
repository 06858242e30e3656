"""The languages that people are spoken to in: English, and Simplified Chinese."""

from __future__ import annotations

import os

LANGUAGES = ("en", "zh")
ASKED = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
"""The variables that name a language, the one that counts most first."""


def preferred() -> str:
    """The language that the environment names, English if it names none of ours."""
    told = next((value for name in ASKED if (value := os.environ.get(name))), "")
    return told[:2] if told[:2] in LANGUAGES else LANGUAGES[0]
