"""The random search: families of cases, what is found in them, and how a finding is made small.

    @family("sums", "sums of numbers against Python's")
    class Sums:
        def case(self, draw):                    # a case, from choices alone
            return [draw.randrange(100) for _ in range(draw.randrange(10))]

        def run(self, numbers):                  # a word for the tally, or a Finding
            if total(numbers) != sum(numbers):
                raise Finding("wrong sum", f"{numbers}: {total(numbers)}")
            return "ran"

        def test(self, numbers):                 # optional: a test without the search
            return f"def test_sum():\n    assert total({numbers}) == {sum(numbers)}\n"

A function of `draw` is a family too, if making and running cannot be told apart. A RelayError is a refusal, every other
exception is a finding ("foreign error"), and so are the end of the process and a case over `limit` seconds where cases
run in a process of their own (the command does that).
"""

from __future__ import annotations

import importlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.choices import Choices
from relaylab.support.errors import RelayError

HERE = Path(__file__).parent


class Finding(Exception):
    """Something wrong: `kind` names it in a few words, equal for cases of one cause; the message says it in full."""

    def __init__(self, kind: str, message: str):
        super().__init__(f"{kind}: {message}")
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class Family:
    """Cases of one sort: how they are made from choices, what running them must not show, seconds for one."""

    name: str
    says: str
    case: Callable[[Choices], Any]
    run: Callable[[Any], str]
    test: Callable[[Any], str] | None = None
    limit: float = 60.0


@dataclass(frozen=True)
class Outcome:
    """What came of a case: a word for the tally, or the kind and words of a finding; its choices."""

    key: str
    choices: list[int]
    kind: str = ""
    message: str = ""


FAMILIES: dict[str, Family] = {}


def declared(made: Any, name: str, says: str, limit: float = 60.0) -> Family:
    """The family of a class or function."""
    if not isinstance(made, type):
        return Family(name, says, lambda draw: draw, made, None, limit)
    one = made()
    return Family(name, says, one.case, one.run, getattr(one, "test", None), limit)


def family(name: str, says: str, limit: float = 60.0) -> Callable[[Any], Any]:
    """Declares a family; it stands in `families/NAME.py`. Cases that take more than `limit` seconds are findings."""

    def register(made: Any) -> Any:
        FAMILIES[name] = declared(made, name, says, limit)
        return made

    return register


def names() -> list[str]:
    """The families that there are."""
    return sorted(p.stem for p in HERE.joinpath("families").glob("[a-z]*.py"))


def load(name: str) -> Family:
    """A family by its name."""
    importlib.import_module(f"fuzz.families.{name}")
    return FAMILIES[name]


# ---- one case


def source(seed: int, k: int) -> random.Random:
    """The randomness of case `k` of a seed."""
    return random.Random(f"{seed}/{k}")


def examine(of: Family, start: random.Random | Sequence[int]) -> Outcome:
    """Makes and runs one case, from new choices or from given ones."""
    draw = Choices(start)
    case: Any = None
    try:
        case = of.case(draw)
        return Outcome(of.run(case), draw.made)
    except Finding as found:
        return Outcome("found", draw.made, found.kind, found.message)
    except RelayError as error:
        return Outcome(f"refused {error.code}", draw.made)
    except Exception as error:
        said = "" if case is draw else f"{case}\n"[:3000]
        return Outcome("found", draw.made, f"foreign error: {place(error)}", said + traceback.format_exc(limit=-6))


def place(error: BaseException) -> str:
    """The type of an error and the last function of the package that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if "relaylab/" in f.filename.replace("\\", "/")] or frames
    where = Path(inside[-1].filename)
    return f"{type(error).__name__} in {where.parent.name}/{where.name}:{inside[-1].name}"


def replay(name: str, choices: Sequence[int]) -> None:
    """Runs the case of these choices; raises what it shows."""
    of = load(name)
    of.run(of.case(Choices(choices)))


# ---- smaller


def minimised(choices: list[int], fails: Callable[[list[int]], list[int] | None], seconds: float) -> list[int]:
    """The smallest choices found in a time for which `fails` still gives choices (those it used), not None."""
    end = time.monotonic() + seconds
    best = list(choices)
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in (_without, _zeroed, _lowered, _fewer):
            at = 0
            while time.monotonic() < end and (smaller := step(best, at)) is not None:
                used = fails(smaller) if smaller != best else None
                if used is not None and (len(used), used) < (len(best), best):
                    best, changed = used, True
                else:
                    at += 1
    return best


def _chunks(n: int) -> list[tuple[int, int]]:
    """Parts of a sequence, long ones first, each length from the end."""
    lengths = [length for length in (n // 2, n // 4, 16, 8, 4, 2, 1) if 0 < length <= n]
    return [(at, length) for length in dict.fromkeys(lengths) for at in range(n - length, -1, -length)]


def _without(best: list[int], at: int) -> list[int] | None:
    chunks = _chunks(len(best))
    return None if at >= len(chunks) else best[: chunks[at][0]] + best[sum(chunks[at]) :]


def _zeroed(best: list[int], at: int) -> list[int] | None:
    chunks = _chunks(len(best))
    return None if at >= len(chunks) else best[: chunks[at][0]] + [0] * chunks[at][1] + best[sum(chunks[at]) :]


def _lowered(best: list[int], at: int) -> list[int] | None:
    place, how = divmod(at, 3)
    if place >= len(best):
        return None
    value = best[place]
    return best[:place] + [max((1 if value > 1 else 0, value // 2, value - 1)[how], 0)] + best[place + 1 :]


def _fewer(best: list[int], at: int) -> list[int] | None:
    """One number less by 1 and one or two later ones left out: what it counted. For short sequences."""
    n = len(best)
    if n > 40 or at >= 2 * n * n:
        return None
    count, rest = divmod(at, 2 * n)
    first, length = divmod(rest, 2)
    if first <= count or best[count] == 0:
        return best
    return best[:count] + [best[count] - 1] + best[count + 1 : first] + best[first + length + 1 :]


# ---- many cases


@dataclass
class Report:
    """What a search counted and found: a finding of each kind, with the case it was first seen in."""

    of: Family
    seed: int
    tally: Counter[str] = field(default_factory=Counter)
    found: dict[str, tuple[int, Outcome]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, k: int, outcome: Outcome) -> None:
        self.tally[outcome.kind or outcome.key] += 1
        if outcome.kind and (outcome.kind not in self.found or k < self.found[outcome.kind][0]):
            self.found[outcome.kind] = k, outcome

    def text(self) -> str:
        """Counts, speed, findings."""
        n = sum(self.tally.values())
        lines = [f"{self.of.name}, seed {self.seed}: {n} cases, {n / max(self.seconds, 1e-9):.1f} a second"]
        lines += [f"  {count:7} {key}" for key, count in self.tally.most_common()]
        for k, outcome in self.found.values():
            short = ",".join(map(str, outcome.choices))
            lines += ["", f"FOUND {outcome.kind}", outcome.message.rstrip()]
            lines += [f"again: python tests/fuzz {self.of.name} --seed {self.seed} --only {k}"]
            lines += [f"small: python tests/fuzz {self.of.name} --choices {short}"] * bool(short)
        return "\n".join(lines)


Run = Callable[[random.Random | Sequence[int]], Outcome]


def search(of: Family, seed: int, seconds: float = 10.0, count: int | None = None) -> Report:
    """Runs cases 0, 1 … of a seed in this process, for a time or up to a number, and makes findings small."""
    report, start = Report(of, seed), time.monotonic()
    k = 0
    while (count is None or k < count) and time.monotonic() - start < seconds:
        report.add(k, examine(of, source(seed, k)))
        k += 1
    report.seconds = time.monotonic() - start
    shrink(report, lambda choices: examine(of, choices))
    return report


def shrink(report: Report, run: Run, seconds: float = 20.0) -> None:
    """Makes every finding of a report small."""
    for kind, (k, outcome) in report.found.items():
        best = {tuple(outcome.choices): outcome}

        def fails(choices: list[int], kind: str = kind, best: dict = best) -> list[int] | None:
            again = run(choices)
            best[tuple(again.choices)] = again
            return again.choices if again.kind == kind else None

        small = minimised(outcome.choices, fails, seconds) if outcome.choices else outcome.choices
        report.found[kind] = k, best[tuple(small)]


def as_test(of: Family, outcome: Outcome) -> str:
    """A pytest test that fails as long as the finding is there: the family's own text, or the choices once more."""
    if of.test is not None and outcome.choices:
        try:
            return of.test(of.case(Choices(outcome.choices)))
        except Exception as error:  # the case itself cannot be made
            note = f"# no text of its own: {type(error).__name__}\n"
    else:
        note = ""
    said = f'"""{outcome.kind}"""\n\nfrom fuzz.search import replay\n\n\n'
    return f"{note}{said}def test_{of.name}():\n    replay({of.name!r}, {outcome.choices})\n"


def write(report: Report, folder: Path) -> list[Path]:
    """Writes a test for every finding into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for k, outcome in report.found.values():
        path = folder / f"test_{report.of.name}_{report.seed}_{k}.py"
        path.write_text(as_test(report.of, outcome), encoding="utf-8")
        paths.append(path)
    return paths
