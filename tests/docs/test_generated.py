"""What `docs/generate.py` makes is what lies in the docs."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from relaylab.ir import OPERATORS

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
GENERATE = runpy.run_path(str(DOCS / "generate.py"))
PAGES = GENERATE["reference_pages"].PAGES


@pytest.mark.parametrize("name", GENERATE["IMAGE"])
def test_a_picture_is_what_is_drawn_now(name: str) -> None:
    assert GENERATE["drawn"](name) == (DOCS / "images" / f"{name}.svg").read_text(), (
        "python docs/generate.py, and look at it"
    )


def test_every_picture_is_shown_somewhere() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"])
    assert not [p.name for p in [*DOCS.glob("images/*"), *DOCS.glob("pages/*")] if p.name not in pages]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_says_what_is_declared_now(name: str) -> None:
    assert PAGES[name]() == (DOCS / "reference" / name).read_text(encoding="utf-8"), "python docs/generate.py reference"


def test_the_reference_has_every_operator_and_pass() -> None:
    text = "".join((DOCS / "reference" / name).read_text(encoding="utf-8") for name in PAGES)
    own = [name for name in OPERATORS if OPERATORS[name].definition.__module__.startswith("relaylab.")]
    assert not [name for name in [*own, *GENERATE["reference_pages"].own_passes()] if f"## `{name}`" not in text]
