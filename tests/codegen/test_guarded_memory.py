"""The buffers of the kernels' tests end before memory that nobody may read: a kernel that goes on is found out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

READ = """
import sys
sys.path[:0] = {places!r}
import ctypes
from kernel_runner import PAGE, aligned
x = aligned(100)
assert x.size == 100 and x.ctypes.data % 64 == 0 and not x.any()
x[-1] = 5
ctypes.string_at(x.ctypes.data + {offset}, 4)
print("read")
"""


@pytest.mark.skipif(os.name != "posix", reason="protects memory with mprotect")
@pytest.mark.parametrize("offset, code", ((99 * 4, 0), (112 * 4, -signal.SIGSEGV)))
def test_a_read_behind_the_last_line_ends_the_process(offset: int, code: int) -> None:
    program = READ.format(places=[str(Path(__file__).parents[up]) for up in (0, 1)], offset=offset)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code and ("read" in done.stdout) == (code == 0), done.stderr
