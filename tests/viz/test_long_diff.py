"""Differences of long texts: each line of both is there, in time that grows with their length."""

from __future__ import annotations

import random
import time

import pytest

from relaylab import relay, study
from relaylab.explorer.session import Session
from relaylab.viz.diffs import textdiff
from relaylab.viz.diffs.textdiff import diff_lines, tally


def lines(count: int, first: int = 0) -> list[str]:
    rng = random.Random(count)
    operators = ("nn.dense", "nn.relu", "add", "tanh")
    return [
        f"  %{first + k} = {operators[k % 4]}(%{max(0, first + k - 1)}, %w{rng.randrange(50)});" for k in range(count)
    ]


def edited(text: list[str], seed: int) -> list[str]:
    rng = random.Random(seed)
    out: list[str] = []
    for line in text:
        if rng.random() < 0.02:
            out.append(f"  let %new{len(out)} = exp(%x);")
        if rng.random() > 0.02:
            out.append(line if rng.random() > 0.05 else line.replace("%w", "%v"))
    return out


def both(before: list[str], after: list[str]) -> list[textdiff.DiffLine]:
    found = diff_lines("\n".join(before), "\n".join(after))
    assert [line.text for line in found if line.mark in " -"] == before
    blank = [textdiff._blank(line.text) for line in found if line.mark in " +"]  # numbers follow the left side
    assert blank == [textdiff._blank(line) for line in after]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_long_texts_are_compared_as_short_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lines(300)
    after = edited(before, seed)
    exact = sum(tally(both(before, after)).values())
    monkeypatch.setattr(textdiff, "LARGE", 0)
    assert sum(tally(both(before, after)).values()) <= 1.3 * exact + 10


@pytest.mark.parametrize(
    "before, after", [([], lines(3)), (lines(3), []), (lines(1), lines(1)), (["}"] * 9, ["}"] * 4)]
)
def test_the_ends_of_what_there_is(before: list[str], after: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textdiff, "LARGE", 0)
    both(before, after)


def chain(count: int) -> relay.IRModule:
    x, w = relay.var("x", shape=(1, 64)), relay.var("w", shape=(64, 64))
    value = before = x
    for _ in range(count // 4):
        value, before = relay.tanh(relay.add(relay.nn.relu(relay.nn.dense(value, w)), before)), value
    return relay.IRModule.from_expr(relay.Function([x, w], value))


@pytest.mark.slow
def test_the_text_of_a_stage_of_thousands_of_nodes_is_compared_at_once() -> None:
    def seconds(count: int) -> float:
        session = Session(study.explore(chain(count)))
        start = time.process_time()
        rows = session.ask("text", 0, len(session.frames) - 1)["rows"]
        assert len(rows) > count / 4  # type: ignore[arg-type]
        return time.process_time() - start

    short = seconds(2000)
    assert seconds(8000) < 8 * short + 1, "four times as many"
