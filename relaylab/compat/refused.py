"""Single names of what lies below Relay: importing one succeeds, using it says that it is not kept.

`from relaylab.compat.refused import AOTLowerMain` gives such a name for anything that is written with a letter first.
"""

from __future__ import annotations

from relaylab.compat.elsewhere import Unavailable


def __getattr__(name: str) -> Unavailable:
    if name.startswith("_"):
        raise AttributeError(name)
    return Unavailable(name)
