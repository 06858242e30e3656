"""The compiler that the page `core_from_scratch` builds, against relaylab: random programs, numbers and kernels."""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from relaylab import relay

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "core_from_scratch.md"


@pytest.fixture(scope="module")
def core() -> Any:
    """What a reader has after typing the whole page, answers included."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    module = ModuleType("core_page")
    sys.modules[module.__name__] = module
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), vars(module))
    yield module
    del sys.modules[module.__name__]


def written(draw: random.Random) -> str:
    """A program of a few lines: elementwise operators and products, each line of any before it."""
    lines, known = [], {"%x": (3, 4), "%y": (3, 4), "%w": (5, 4), "%v": (4, 5)}
    for k in range(draw.randrange(2, 9)):
        name = draw.choice([n for n, s in known.items() if s[0] == 3])
        like = [n for n, s in known.items() if s == known[name]]
        other = draw.choice([*like, "0.5f", "1f", "-2f"])
        weight = {(3, 4): "%w", (3, 5): "%v"}[known[name]]
        said = draw.choice(
            [f"add({name}, {other})", f"multiply({name}, {other})", f"nn.relu({name})", f"negative({name})",
             f"maximum({name}, {other})", f"nn.dense({name}, {weight})", f"nn.dense(nn.relu({name}), {weight})"]
        )  # fmt: skip
        rows = known[weight][0] if "dense" in said else known[name][1]
        known[f"%{k}"] = (3, rows)
        lines.append(f"  %{k} = {said};")
    params = ", ".join(f"{n}: Tensor[({s[0]}, {s[1]}), float32]" for n, s in list(known.items())[:4])
    return "\n".join([f"def @main({params}) {{", *lines, f"  nn.relu(%{len(lines) - 1})", "}"])


@pytest.mark.parametrize("seed", range(12))
def test_it_says_what_relaylab_says(core: Any, seed: int) -> None:
    function = core.merge_equal(core.parse(written(random.Random(seed))))
    source, arrays = core.text(function), core.drawn(function, seed)
    mod = relay.transform.InferType()(relay.parse(f'#[version = "0.0.5"]\n{source}'))
    expected = relay.create_executor("debug", mod=mod).evaluate()(*arrays).numpy()
    assert core.infer(function)[function.body] == expected.shape
    simpler, _ = core.rewrite(function, core.times_one)
    for found in (core.evaluate(function, *arrays), core.run_loops(simpler, *arrays), core.compiled(simpler)(*arrays)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert core.text(core.parse(source)) == source


def test_every_step_has_code_and_most_an_exercise() -> None:
    steps = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    assert [s[: s.index(".")] for s in steps] == [f"Step {k}" for k in range(1, 10)]
    assert all("```python" in s for s in steps) and sum("**Exercise.**" in s for s in steps) >= 6
    for step in steps:  # an answer is checked right below it
        assert step.count("<details>") == len(re.findall(r"</details>\n\n```python\n[^`]*assert", step))


def test_mistakes_are_told(core: Any) -> None:
    head = "def @main(%x: Tensor[(2, 3), float32]) "
    for body, kind, words in (
        ("{ add(%x, %y) }", NameError, "`%y` is not known here"),
        ("{ add(%x ! 1f) }", SyntaxError, "what is this"),
        ("{ add(%x) ]", SyntaxError, "`}` was expected, here is `]`"),
        ("{ nn.dense(%x, 1f) }", TypeError, "cannot be multiplied"),
        ("{ tan(%x) }", NameError, "there is no operator `tan`"),
    ):
        with pytest.raises(kind, match=re.escape(words)):
            core.infer(core.parse(head + body))
