"""Helpers of test-suites for Relay programs: comparing arrays, targets, parameters."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from relaylab.runtime.device import Device, cpu
from relaylab.runtime.device import device as make_device
from relaylab.support.errors import RelayValueError

Marked = TypeVar("Marked", bound=Callable)
Value = TypeVar("Value")

__all__ = [
    "Needs", "assert_allclose", "device_enabled", "enabled_targets", "exclude_targets", "fixture", "identity_after",
    "install_request_hook", "known_failing_targets", "main", "parameter", "parameters", "parametrize_targets",
    "requires_llvm", "requires_package", "requires_x86", "skip_if_32bit", "skip_if_wheel_test", "slow", "strtobool",
    "terminate_self", "uses_gpu",
]  # fmt: skip
_NEEDS = """aarch64_sve adreno_opencl arm_dot cascadelake cmsisnn corstone300 cublas cuda cudagraph cudnn cutlass ethosn
    ethosu gpu hexagon hexagon_toolchain libtorch metal micro mps not32bit nvcc_version nvptx opencl python3 rocm rpc
    skylake_avx512 tensorcore vitis_ai vulkan x86_avx512 x86_vnni""".split()
__all__ += [f"requires_{what}" for what in _NEEDS]


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

    @pytest.fixture(params=list(values) or None, ids=ids)
    def as_fixture(*own: object, request: Any) -> Any:  # within a class its test is the first argument
        return request.param

    return as_fixture


def parameters(*value_sets: tuple, ids: list[str] | None = None) -> list[Any]:
    """Fixtures that take the columns of a table of values, row by row where `tvm.testing.plugin` is loaded."""
    if "relaylab.compat.testing.fixtures" not in sys.modules:
        return [parameter(*column, ids=ids) for column in zip(*value_sets)]
    fixtures = [parameter() for _ in value_sets[0]]
    ROWS.extend((made, fixtures[0], value_sets, column) for column, made in enumerate(fixtures))
    return fixtures


ROWS: list[tuple[object, object, tuple[tuple, ...], int]] = []
"""Each fixture that `parameters` made, with the first of its table, the table, and its column there."""


def fixture(func: Callable | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with `cache_return_value` it is computed once for equal arguments, and each test has a copy."""
    import pytest

    make = lambda function: pytest.fixture(_kept(function) if cache_return_value else function)
    return make if func is None else make(func)


def _kept(function: Callable) -> Callable:
    values: dict[object, object] = {}

    @wraps(function)
    def run(*own: object, **given: object) -> object:
        key = tuple(given.items())
        try:
            hash(key)
        except TypeError:  # computed for each test
            return function(*own, **given)
        if key not in values:
            values[key] = function(*own, **given)
        return copy.deepcopy(values[key])

    return run


class Needs:
    """What a test needs, as a decorator with or without parentheses: it skips where that is not here."""

    def __init__(self, what: str):
        self.what, self.here = what, what in _HERE

    def __call__(self, function: Callable | None = None) -> object:
        if function is None:
            return self
        for mark in self.marks():
            function = mark(function)
        return function

    def marks(self) -> list[Any]:
        """The marks of pytest that do it."""
        import pytest

        return [] if self.here else [pytest.mark.skip(reason=f"needs {self.what}, which relaylab does not use")]


_HERE = ("llvm", "x86", "not32bit", "python3")


def __getattr__(name: str) -> Needs:
    """`requires_cuda` and its like."""
    if name.removeprefix("requires_") not in _NEEDS:
        raise AttributeError(f"tvm.testing has no `{name}`")
    return Needs(name.removeprefix("requires_"))


requires_llvm, requires_x86 = Needs("llvm"), Needs("x86")


def requires_package(*packages: str) -> Callable:
    """Skips a test if a Python package is missing."""
    import importlib.util

    import pytest

    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def uses_gpu(function: Marked | None = None) -> Marked | Callable[[Marked], Marked]:
    """Marks a test that would use a GPU if there were one."""
    return function if function is not None else (lambda f: f)


def exclude_targets(*args: object) -> Callable[[Marked], Marked]:
    """Tests that do not run for some targets: for the one that is here they do, unless `llvm` is named."""
    import pytest

    named = any(str(t).split()[0] == "llvm" for t in args)
    return pytest.mark.skip(reason="not for llvm") if named else (lambda f: f)


def known_failing_targets(*args: object) -> Callable[[Marked], Marked]:
    """Tests that are known to fail for some targets."""
    import pytest

    named = any(str(t).split()[0] == "llvm" for t in args)
    return pytest.mark.xfail(reason="known to fail for llvm") if named else (lambda f: f)


def slow(function: Marked) -> Marked:
    """Marks a test that takes long; it runs all the same."""
    return function


def skip_if_32bit(reason: str | Callable = "") -> object:
    """Marks a test that 32-bit systems cannot run."""
    return reason if callable(reason) else (lambda f: f)


skip_if_wheel_test = slow


def install_request_hook(depth: int = 3) -> None:
    """Nothing: tutorials call it so that their downloads go to a mirror (see `tvm.contrib.download`)."""


def identity_after(value: Value, sleep: float) -> Value:
    """`value`, after some seconds."""
    import time

    time.sleep(sleep)
    return value


def terminate_self() -> None:
    """End the process with status -1."""
    sys.exit(-1)


def strtobool(val: str) -> bool:
    """Whether a word such as `yes`, `on` or `1` means True; ValueError for other words."""
    word = val.lower()
    if word in ("y", "yes", "t", "true", "on", "1"):
        return True
    if word in ("n", "no", "f", "false", "off", "0"):
        return False
    raise RelayValueError(f"`{val}` is neither yes nor no", code="testing.bool")
