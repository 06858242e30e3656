"""A plugin of pytest, as `pytest_plugins = ["tvm.testing.plugin"]` loads it: the fixtures `target` and `dev`."""

from __future__ import annotations

import pytest

from relaylab.compat.testing.helpers import ROWS, device_enabled, enabled_targets
from relaylab.runtime.device import Device
from relaylab.runtime.device import device as make_device


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a parameter `target` or `dev` runs once for each target that is here, unless it names them itself."""
    named = " ".join(str(mark.args[0]) for mark in metafunc.definition.iter_markers("parametrize"))
    asked = [n for n in ("target", "dev") if n in metafunc.fixturenames and n not in named.replace(",", " ").split()]
    here = [t for t, _ in enabled_targets() if device_enabled(t)]
    values: dict[str, list[str] | list[Device]] = {"target": here, "dev": [make_device(t) for t in here]}
    _by_rows(metafunc)
    if asked:
        metafunc.parametrize(asked, list(zip(*(values[n] for n in asked))))


def _by_rows(metafunc: pytest.Metafunc) -> None:
    """Fixtures of one table change together."""
    around = [metafunc.module, *(metafunc.cls.__mro__ if metafunc.cls else ())]
    every = [named for place in around for named in vars(place).items()]
    names = {id(value): name for name, value in every if name in metafunc.fixturenames}
    tables: dict[int, list[tuple[str, tuple[tuple, ...], int]]] = {}
    for made, first, rows, column in ROWS:
        if id(made) in names:
            tables.setdefault(id(first), []).append((names[id(made)], rows, column))
    for columns in tables.values():
        rows = columns[0][1]
        metafunc.parametrize(
            [name for name, _, _ in columns], [[row[c] for _, _, c in columns] for row in rows], indirect=True
        )


__all__ = ["pytest_generate_tests"]
