"""Material beside the project that tests may use: recorded answers, trained models."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shared(*parts: str) -> Path:
    """A file of the material beside the project; the test skips where it is absent."""
    path = ROOT.parent.joinpath("shared", *parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} beside the project")
    return path
