"""Numbers of a plan that a user chose instead of the cost model's: `rows=2x7 vectors=2 unroll=4`.

A choice is kept with the problem that it is for, so that weights are packed for it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylab.codegen.templates.problem import Choices, Problem
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

MOST_PRODUCTS = 256  # vector products in the body of a loop over the reduction
CHOICES = {
    "high": (1, 64),
    "rows": (1, 64),
    "vectors": (1, 16),
    "unroll": (1, 64),
    "tiles": (1, 2**31),
    "panels": (1, 2**31),
    "outer": (0, 1),
    "prefetch": (0, 1),
    "minimal": (0, 0),
}
"""The name of each choice and between what it lies. `high` and `rows` are the rows of a register tile along the last
two row axes; `minimal=0` asks for loops without minimal products, as every choice does."""
WORDS = {"tiles": 0, "panels": 1}  # of `outer`


def choices_of(words: Sequence[str]) -> Choices:
    """Choices as they are written, `NAME=NUMBER`, rows also as `2x7`; RelayValueError `schedule.arguments`."""
    found: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in CHOICES or name == "high":
            known = [n for n in CHOICES if n != "high"]
            help = did_you_mean(name, known) or f"the choices are {', '.join(known)}"
            raise RelayValueError(f"a plan has no choice `{name}`", code="schedule.arguments", help=help)
        numbers = value.split("x") if name == "rows" else [value]
        if name == "outer":
            numbers = [str(WORDS.get(value, value))]
        for key, text in zip(("high", "rows") if len(numbers) == 2 else (name,), numbers):
            low, high = CHOICES[key]
            if len(numbers) > 2 or not text.isdecimal() or len(text) > 10 or not low <= int(text) <= high:
                what = "tiles or panels" if name == "outer" else f"a number from {low} to {high}"
                raise RelayValueError(f"`{name}` is {what}, not `{value}`", code="schedule.arguments")
            found[key] = int(text)
    return tuple(sorted(found.items()))


def check_products(products: int) -> None:
    """RelayValueError `schedule.illegal` for more vector products than the body of a loop may have."""
    if products > MOST_PRODUCTS:
        raise RelayValueError(
            f"a loop would contain {products} vector products", code="schedule.illegal", help=f"at most {MOST_PRODUCTS}"
        )


def chosen_tile(problem: Problem, vectors: int, tile: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Vectors and rows of a register tile, those that are chosen instead of the given ones."""
    chosen = dict(problem.choices)
    if "rows" in chosen:
        tile = chosen.get("high", 1), chosen["rows"]
    inner = [min(n, axis.extent) for n, axis in zip(tile, problem.rows[-2:])]
    vectors = chosen.get("vectors", vectors)
    if problem.choices:
        check_products(math.prod(inner) * vectors * chosen.get("unroll", 1))
    if problem.weights.kind == "gathered" and chosen.get("panels", 1) != 1:
        raise RelayValueError("a panel that is copied belongs to one item", code="schedule.illegal", help="panels=1")
    return vectors, (inner[0], inner[1])
