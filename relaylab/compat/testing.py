"""Helpers of test-suites for Relay programs: comparing arrays, targets, parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from relaylab.runtime.device import Device, cpu
from relaylab.runtime.device import device as make_device

Marked = TypeVar("Marked", bound=Callable)

__all__ = [
    "assert_allclose", "device_enabled", "enabled_targets", "fixture", "main", "parameter", "parameters",
    "parametrize_targets", "requires_llvm", "requires_package", "requires_x86", "uses_gpu",
]  # fmt: skip


def _plain(value: object) -> np.ndarray:
    read = getattr(value, "numpy", None)
    return np.asanyarray(read() if read else value)


def assert_allclose(actual: object, desired: object, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Arrays of one shape, element by element within the tolerances; AssertionError with the differences otherwise."""
    actual, desired = _plain(actual), _plain(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets that this machine has: the CPU, through LLVM."""
    return [("llvm", cpu(0))]


def device_enabled(target: object) -> bool:
    """Whether a target can be compiled for and run here."""
    return str(target).split()[0] == "llvm" and make_device("llvm").exist


def main() -> None:
    """Run the tests of the calling file."""
    import pytest

    test_file = sys._getframe(1).f_code.co_filename
    sys.exit(pytest.main([test_file, *sys.argv[1:]]))


def parametrize_targets(*args: Any) -> Any:
    """Run a test with `target` and `dev` for each named target that is enabled; the others skip."""
    import pytest

    def decorate(function: Callable, targets: Iterable[str]) -> Callable:
        cases = [
            pytest.param(
                t,
                make_device(str(t).split()[0]),
                marks=() if device_enabled(t) else pytest.mark.skip(reason=f"{t} is not enabled"),
            )
            for t in targets
        ]
        return pytest.mark.parametrize("target,dev", cases)(function)

    if len(args) == 1 and callable(args[0]):
        return decorate(args[0], [t for t, _ in enabled_targets()])
    return lambda function: decorate(function, args)


def parameter(*values: object, ids: list[str] | None = None, by_dict: dict[str, object] | None = None) -> Any:
    """A fixture, named as the variable it is assigned to, that takes each of the values."""
    import pytest

    if by_dict is not None:
        ids, values = list(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=list(values), ids=ids)
    def as_fixture(request: Any) -> Any:
        return request.param

    return as_fixture


def parameters(*value_sets: tuple, ids: list[str] | None = None) -> list[Any]:
    """Fixtures that take the columns of a table of values."""
    return [parameter(*column, ids=ids) for column in zip(*value_sets)]


def fixture(func: Callable | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with `cache_return_value` it is computed once a session."""
    import pytest

    make = pytest.fixture(scope="session" if cache_return_value else "function")
    return make if func is None else make(func)


def requires_llvm(function: Marked | None = None) -> Marked | Callable[[Marked], Marked]:
    """Marks a test that needs LLVM, which is always there."""
    return function if function is not None else (lambda f: f)


requires_x86 = requires_llvm


def requires_package(*packages: str) -> Callable:
    """Skips a test if a Python package is missing."""
    import importlib.util

    import pytest

    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def uses_gpu(function: Marked | None = None) -> Marked | Callable[[Marked], Marked]:
    """Marks a test that would use a GPU if there were one."""
    return function if function is not None else (lambda f: f)
