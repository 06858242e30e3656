"""The questions of the explorer, by what they are about: importing this folder fills the table `question.QUESTIONS`."""

from relaylab.explorer.questions import (
    branches,
    failures,
    figures,
    kernels,
    language,
    live,
    nodes,
    numbers,
    parts,
    passes,
    pictures,
    rewrites,
    why_not,
)

__all__ = [
    "branches",
    "failures",
    "figures",
    "kernels",
    "language",
    "live",
    "nodes",
    "numbers",
    "parts",
    "passes",
    "pictures",
    "rewrites",
    "why_not",
]
