"""Tests that stand alone, of programs and their inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relaylab.ir import IRModule

HEAD = '''"""Found by the search, family {family}."""

import numpy as np
{imports}
from numpy import inf, nan  # noqa: F401  (in the inputs)

from relaylab import relay

TEXT = {text!r}
INPUTS = {{
{inputs}}}


def test_{family}():
    mod = relay.transform.InferType()(relay.fromtext(TEXT))
{body}'''


def program_test(
    family: str, mod: IRModule, inputs: Mapping[str, np.ndarray], imports: list[str], body: list[str]
) -> str:
    """A test of a program: lines that see `mod` and INPUTS."""
    rows = (f"    {n!r}: np.array({v.tolist()}, {v.dtype.name!r}).reshape({v.shape}),\n" for n, v in inputs.items())
    return HEAD.format(
        family=family,
        text=mod.astext(show_meta_data=True),
        inputs="".join(rows),
        imports="\n".join(imports),
        body="".join(f"    {line}\n" for line in body),
    )
