"""Words for people."""

from __future__ import annotations


def counted(n: int, what: str) -> str:
    """A number with the name of what is counted: `1 node`, `2 nodes`, `2 passes`."""
    return f"{n} {what}{'' if n == 1 else 'es' if what.endswith('s') else 's'}"
