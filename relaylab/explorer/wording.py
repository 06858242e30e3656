"""The words of the explorer in other languages: a table from the English words, read by its script (`language.js`)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

TABLES = Path(__file__).parent / "languages"


@cache
def wording(language: str) -> dict[str, str]:
    """The words of the explorer in a language, by the English ones; none for English and languages that have no table.

    Places in braces, `{n} hits`, stand for what a program or a count puts there; `{words}` is translated as well.
    """
    path = TABLES / f"{language}.json"
    known = language in {p.stem for p in TABLES.glob("*.json")}
    return json.loads(path.read_text(encoding="utf-8")) if known else {}
