"""Relay programs as they were written for TVM 0.8 to 0.10, run unmodified in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAMS = sorted(Path(__file__).parent.glob("programs/*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_program(program: Path, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "relaylab", "run-tvm", str(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.strip().endswith("ok"), run.stdout


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 8
