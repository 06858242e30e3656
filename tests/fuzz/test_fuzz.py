"""The search: a planted fault is found, made small, told by a test that fails; then every family, briefly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz import search, worker
from fuzz.choices import Choices
from fuzz.search import Family, Finding

from relaylab.compat import uninstall_tvm
from relaylab.ir import OPERATORS
from relaylab.support.errors import RelayError

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("RELAYLAB_FUZZ_SECONDS", "0"))
"""A longer search; 0: the cases below."""

CASES = dict(
    api=1500,
    artefacts=1000,
    control=25,
    faults=4,
    lengths=25,
    loops=300,
    messages=120,
    operators=20,
    passes=50,
    texts=300,
)  # of each family in about a second; as many everywhere: what passes on one machine passes on all


@pytest.fixture(autouse=True, scope="module")
def without_tvm() -> Iterator[None]:
    """Families may have asked for the name `tvm`."""
    yield
    uninstall_tvm()


class Sums:
    """Numbers that are added, wrongly if one is over 60 and another 7."""

    def case(self, draw: Choices) -> list[int]:
        return [draw.randrange(100) for _ in range(draw.randrange(30))]

    def run(self, numbers: list[int]) -> str:
        if numbers == [1, 2]:
            raise RelayError("no", code="type.relation")
        if len(numbers) > 3 and numbers[2] == 3:
            raise ValueError("three")
        if max(numbers, default=0) > 60 and 7 in numbers:
            raise Finding("wrong sum", str(numbers))
        return "empty" if not numbers else "ran"


def planted(made: object = Sums) -> Family:
    return search.declared(made, "planted", "a fault that was put there")


def test_a_planted_fault_is_found_and_made_small() -> None:
    report = search.search(planted(), seed=1, seconds=60, count=1500)
    assert sum(report.tally.values()) == 1500 and report.tally["ran"] > 500 and report.tally["empty"] > 5
    assert set(report.found) == {"wrong sum", "foreign error: ValueError in fuzz/test_fuzz.py:run"}
    k, small = report.found["wrong sum"]
    assert sorted(Sums().case(Choices(small.choices))) == [7, 61]
    assert "--seed 1 --only" in report.text() and "--choices 2," in report.text()
    again = search.examine(planted(), search.source(1, k))
    assert again.kind == "wrong sum" and len(again.choices) >= len(small.choices)
    assert Sums().case(Choices(report.found["foreign error: ValueError in fuzz/test_fuzz.py:run"][1].choices)) == [
        0,
        0,
        3,
        0,
    ]


def test_a_finding_becomes_a_test_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = search.search(planted(), seed=1, seconds=60, count=500)
    monkeypatch.setattr(search, "load", lambda name: planted())
    paths = search.write(report, tmp_path)
    assert len(paths) == 2
    for path, kind in zip(paths, report.found):
        made: dict = {}
        exec(path.read_text(), made)
        with pytest.raises(Finding if kind == "wrong sum" else ValueError):
            made["test_planted"]()


@pytest.mark.filterwarnings("ignore")
def test_a_fault_planted_in_an_operator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = search.load("loops")
    monkeypatch.setattr("fuzz.families.loops.NAMES", ["nn.leaky_relu"])
    assert not search.search(loops, seed=0, seconds=20, count=40).found
    monkeypatch.setattr(OPERATORS["nn.leaky_relu"].definition, "scalar", lambda self, b, x: x)
    report = search.search(loops, seed=0, seconds=20, count=40)
    assert set(report.found) == {"nn.leaky_relu is wrong"}
    assert "the loop form gives" in report.text()


@pytest.mark.parametrize("name", ["operators", "control", "passes"])
@pytest.mark.filterwarnings("ignore")
def test_the_tests_of_programs_run(name: str) -> None:
    of = search.load(name)
    for k in range(3):
        outcome = search.examine(of, search.source(2, k))
        made: dict = {}
        exec(search.as_test(of, outcome), made)
        if not outcome.key.startswith("refused"):
            made[f"test_{name}"]()


def test_the_same_seed_gives_the_same_cases() -> None:
    a, b = (search.examine(planted(), search.source(5, 17)).choices for _ in range(2))
    assert a == b != search.examine(planted(), search.source(6, 17)).choices
    draw = Choices(search.source(0, 0))
    drawn = [draw.random(), draw.randint(3, 9), draw.sample(range(9), 4), draw.getrandbits(40), draw.chance(0.5)]
    more = Choices(draw.made)
    assert drawn == [
        more.random(),
        more.randint(3, 9),
        more.sample(range(9), 4),
        more.getrandbits(40),
        more.chance(0.5),
    ]
    assert more.randrange(5) == 0 and not more.chance(0.9)


PLANTED = """
import os, signal, time
from fuzz.search import family

@family("planted", "ends or hangs", limit=3.0)
class Planted:
    def case(self, draw):
        return [draw.randrange(8) for _ in range(6)]

    def run(self, numbers):
        if 5 in numbers:
            os.kill(os.getpid(), signal.SIGSEGV)
        if numbers[0] == 7:
            time.sleep(100)
        return "ran"
"""


def test_a_process_that_ends_or_hangs_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "fuzz"
    package.joinpath("families").mkdir(parents=True)
    for path in (*Path(search.__file__).parent.glob("[!t]*.py"),):
        package.joinpath(path.name).write_text(path.read_text())
    package.joinpath("families", "planted.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, str(package), "planted", "--count", "4", "--seed", "0", "--small", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stderr
    assert f"FOUND crash: {signal.SIGSEGV.name}" in done.stdout and "--choices" in done.stdout


@pytest.mark.parametrize("name", search.names())
@pytest.mark.filterwarnings("ignore")
def test_family(name: str) -> None:
    report = search.search(search.load(name), seed=0, seconds=30, count=CASES[name])
    assert not report.found and report.tally, report.text()


@pytest.mark.slow
@pytest.mark.parametrize("name", search.names())
@pytest.mark.filterwarnings("ignore")
def test_family_for_longer(name: str) -> None:
    count = None if SECONDS else 2 * CASES[name]
    report = worker.search_in_processes(search.load(name), seed=1, seconds=SECONDS or 50, count=count)
    assert not report.found and report.tally, report.text()
