"""Options and fixtures that all rooms' tests share."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from support.chromium import CHROMIUM, FLAGS

ROOT = Path(__file__).resolve().parents[1]

# a test run must neither read nor leave compiled kernels of the user's
os.environ.setdefault("RELAYLAB_CACHE_DIR", str(ROOT / "tests" / "artifacts" / "cache"))

# as many processes as processors: more threads for numpy's and torch's products only get in each other's way
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# tests start many processes: each would compile the package anew where bytecode is not kept
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

gc.disable()  # until all tests are collected


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite golden files with what is computed now; review with git diff",
    )


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector need not walk it again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # in place of 700: programs of tests are made of many small objects


@pytest.fixture(autouse=True, scope="module")
def threads_as_they_were():
    """Programs of a tutorial choose threads for their process, in which other files' tests run after them."""
    yield
    if (threads := sys.modules.get("relaylab.runtime.threads")) is not None:
        threads.set_num_threads(None)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return request.config.getoption("--update-golden")


@pytest.fixture
def golden(update_golden: bool):
    """`golden(path, text)` compares a text with tests/golden/<path>, or rewrites it."""

    def check(path: str, text: str) -> None:
        file = ROOT / "tests" / "golden" / path
        if update_golden:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"{file} is missing; run with --update-golden and review it"
        assert text == file.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, driven by Playwright; one at a time in a process, as its loop allows."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield chromium
        chromium.close()
