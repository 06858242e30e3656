"""The kit of an open project says the same everywhere: versions, formatters, decisions and the code they are about."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import relaylab

ROOT = Path(__file__).resolve().parents[2]
CHOICES = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")
LINKED = sorted(set(re.findall(r"\]\(\.\./([\w./]+)\)", CHOICES)))


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "docs" / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+?),", (ROOT / "docs" / "CHANGELOG.md").read_text(), re.M)
    assert newest and {project["version"], citation["version"], newest[1]} == {relaylab.__version__}


def test_hooks_and_the_workflow_are_read() -> None:
    hooks = yaml.safe_load((ROOT / ".ci" / "pre-commit.yaml").read_text())["repos"][0]["hooks"]
    assert {"ruff-format", "ruff", "prettier"} <= {hook["id"] for hook in hooks}
    assert all(pin.count("=") for hook in hooks for pin in hook["additional_dependencies"] if "ruff" in pin)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert set(jobs["test"]["strategy"]["matrix"]["python"]) == {"3.11", "3.12", "3.13"}
    assert {"style", "types", "wheel", "docs"} <= set(jobs)
    families = {file.stem for file in (ROOT / "tests" / "fuzz" / "families").glob("[a-z]*.py")}
    assert set(jobs["search"]["strategy"]["matrix"]["family"]) == families, "a minute of each"


def test_choices_name_their_code() -> None:
    entries = re.findall(r"^- \*\*", CHOICES, re.M)
    assert len(LINKED) > 40 and len(entries) >= len(LINKED)
    assert not [path for path in LINKED if not (ROOT / path).exists()]


@pytest.mark.parametrize("path", [p for p in LINKED if p.startswith("relaylab/")])
def test_code_names_its_choices(path: str) -> None:
    """Whoever reads the code of a choice finds the reason."""
    assert "docs/choices.md" in (ROOT / path).read_text(encoding="utf-8"), path


def test_words_of_the_glossary_are_there() -> None:
    """Every class that the glossary names is defined in the file, or below the folder, that it links."""
    rows = re.findall(
        r"^\| (.+?) \| .+ \| \[[^]]+\]\(\.\./([\w./]+)\) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M
    )
    assert len(rows) > 25
    for words, place in rows:
        path = ROOT / place
        around = path.parent.rglob("*.py")
        code = "".join(p.read_text(encoding="utf-8") for p in around)
        missing = [w for w in re.findall(r"`([A-Z]\w+)`", words) if not re.search(rf"^class {w}\b", code, re.M)]
        assert path.exists() and not missing, f"{place}: {missing}"
