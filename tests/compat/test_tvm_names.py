"""The public names of TVM 0.10 at Relay's level, by the module paths that people import them from.

`tvm_names.txt` lists those that are not simply relaylab's own names in their own places. `pytest -s` shows the share.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from relaylab.compat import install_as_tvm, uninstall_tvm

ALL, OTHERS = 957, 566  # names of TVM at this level; those that are not in the file
REACHED = 0.99


def listed() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    module = ""
    for line in (Path(__file__).parent / "tvm_names.txt").read_text().splitlines():
        if line.startswith(" "):
            names[module] += line.split()
        else:
            module = line
            names[module] = []
    return names


@pytest.fixture(scope="module")
def tvm() -> Iterator[object]:
    yield install_as_tvm()
    uninstall_tvm()


def lacking(module: str, names: list[str]) -> list[str]:
    """The names that `from module import name` does not find."""
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return names
    return [name for name in names if not hasattr(loaded, name)]


def test_the_share_of_tvms_names(tvm: object) -> None:
    names = listed()
    missing = {m: lost for m, given in names.items() if (lost := lacking(m, given))}
    assert sum(map(len, names.values())) + OTHERS == ALL
    share = 1 - sum(map(len, missing.values())) / ALL
    for module, lost in missing.items():
        print(f"{len(names[module]) - len(lost)}/{len(names[module])} {module}: {' '.join(lost)}")
    print(f"{share:.1%} of {ALL} names")
    assert share >= REACHED, missing
