"""What the reference implementation (TVM 0.10) answered: types, texts, numbers; see tests/data/reference/README.md."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "reference"


@lru_cache(maxsize=4)
def recorded(kind: str, name: str) -> Any:
    """The answers for one of the recorded networks (kind `network`) or programs (kind `program`)."""
    return json.loads(gzip.decompress((REFERENCE / f"{kind}_{name}.json.gz").read_bytes()))


def recorded_names() -> list[tuple[str, str]]:
    """Every record: its kind and its name."""
    names = sorted(path.name.removesuffix(".json.gz") for path in REFERENCE.glob("*.json.gz"))
    return [(name.split("_", 1)[0], name.split("_", 1)[1]) for name in names]
