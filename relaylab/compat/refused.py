"""Names of what lies below Relay: importing one succeeds, using it says why it is not here and what there is instead.

`from relaylab.compat.refused import AOTLowerMain` gives such a name for anything that is written with a letter first.
"""

from __future__ import annotations

from typing import NoReturn

from relaylab.compat.missing import reason
from relaylab.support.errors import RelayError


class Refused:
    """Something of TVM below Relay: calling it, or asking it for anything, raises RelayError `compat.below-relay`."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def _refuse(self) -> NoReturn:
        help = reason(f"refused.{self.__name__}")
        raise RelayError(f"`{self.__name__}` of TVM is not kept", code="compat.below-relay", help=help)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python itself looks for
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<{self.__name__}: not kept>"


def __getattr__(name: str) -> Refused:
    if name.startswith("_"):
        raise AttributeError(name)
    return Refused(name)
