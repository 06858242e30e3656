"""One IPython shell with the magics loaded; every cell of a test runs in it."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")

RELU = "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(add(%x, %x)) }"


@pytest.fixture(scope="session")
def ip():
    from IPython.core.getipython import get_ipython
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython() or get_ipython()  # the notebooks of the course may have started it
    shell.run_line_magic("load_ext", "relaylab")
    shell.fresh = dict(shell.user_ns)
    return shell


@pytest.fixture
def cell(ip):
    """`cell(code)` runs a cell and gives its result, with what it printed or displayed as text in `.out` and `.err`."""
    from IPython.utils.capture import capture_output

    ip.user_ns.clear()  # not `ip.reset()`, which collects the garbage of all tests before
    ip.user_ns.update(ip.fresh)

    def run(code: str):
        with capture_output() as captured:
            result = ip.run_cell(code)
        shown = (o.data.get("text/plain", "") for o in captured.outputs)
        result.out, result.err = captured.stdout + "\n".join(shown), captured.stderr
        result.html = "".join(o.data.get("text/html", "") for o in captured.outputs)
        return result

    run(f"%%relay mod -q\n{RELU}")
    return run
