"""Functions that a lower room calls and an upper one provides."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """A function whose meaning an upper room registers when it is loaded; until then it is the one written here.

    >>> @Hook
    ... def greeting(name: str) -> str:
    ...     return name
    >>> greeting.register(lambda name: f"hello {name}")
    """

    def __init__(self, function: Callable[P, R]):
        self.function = function
        update_wrapper(self, function)

    def register(self, function: Callable[P, R]) -> None:
        """`function` is what calls mean from now on."""
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)
