"""What is public: the names of each face are recorded, so that a new or a lost one is a change that is seen.

`pytest tests/laws/test_faces.py --update-golden` records them again.
"""

from __future__ import annotations

import importlib
import textwrap
from types import ModuleType

import pytest

FACES = (
    "relaylab",
    "relaylab.codegen",
    "relaylab.explorer",
    "relaylab.op",
    "relaylab.relay",
    "relaylab.runtime",
    "relaylab.study",
    "relaylab.transform",
    "relaylab.viz",
)
# modules that are meant as names, beside those of relay, whose table says them
MODULES = {
    "relaylab": {"contrib", "relay", "runtime", "transform", "viz"},
    "relaylab.codegen": {"build"},
    "relaylab.explorer": {"questions"},
    "relaylab.op": {"annotation", "dyn", "image", "memory", "nn", "qnn", "random", "vision", "vm"},
    "relaylab.runtime": {"graph_executor"},
}


def names_of(face: str) -> list[str]:
    return [name for name in dir(importlib.import_module(face)) if not name.startswith("_")]


def test_the_public_names(golden) -> None:
    parts = [
        f"{face}\n" + textwrap.fill(" ".join(names_of(face)), 120, initial_indent="  ", subsequent_indent="  ")
        for face in FACES
    ]
    golden("faces.txt", "\n".join(parts) + "\n")


@pytest.mark.parametrize("face", FACES)
def test_public_names_are_there_and_can_be_taken_with_a_star(face: str) -> None:
    module = importlib.import_module(face)
    assert all(getattr(module, name) is not None for name in names_of(face))
    assert set(getattr(module, "__all__", ())) <= {*dir(module), "__version__"}


@pytest.mark.parametrize("face", [f for f in FACES if f != "relaylab.relay"])
def test_no_module_is_public_by_accident(face: str) -> None:
    module = importlib.import_module(face)
    found = {name for name in names_of(face) if isinstance(getattr(module, name), ModuleType)}
    assert found == MODULES.get(face, set())
