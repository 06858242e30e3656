# tvm.testing as a package: fixtures, parameters, marks.
import pathlib
import subprocess
import sys

import numpy as np
import tvm
import tvm.testing
from tvm.testing import requires_cuda, requires_gpu, requires_llvm, utils

pathlib.Path("conftest.py").write_text(
    "import relaylab\nrelaylab.install_as_tvm()\npytest_plugins = ['tvm.testing.plugin']\n"
)
pathlib.Path("test_it.py").write_text(
    """
import numpy as np
import tvm
import tvm.testing
from tvm import relay

size = tvm.testing.parameter(2, 3)
low, high = tvm.testing.parameters((0, 1), (2, 3))

def test_targets(target, dev, size):
    x = relay.var("x", shape=(size,))
    lib = relay.build(tvm.IRModule.from_expr(relay.nn.relu(x)), target=target)
    tvm.testing.assert_allclose(tvm.nd.array(lib.run(x=np.ones(size, "float32")), dev), np.ones(size))

def test_device(dev):
    assert dev == tvm.cpu(0)

def test_rows(low, high):
    assert low < high

@tvm.testing.requires_cuda
def test_gpu():
    raise AssertionError

@tvm.testing.requires_llvm
@tvm.testing.exclude_targets("cuda")
@tvm.testing.known_failing_targets("cuda")
def test_here():
    pass

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_named(target, dev):
    assert target == "llvm"

made = []

class TestKept:
    length = tvm.testing.parameter(1, 2)
    left, right = tvm.testing.parameters((0, 1), (2, 3))

    @tvm.testing.fixture(cache_return_value=True)
    def kept(self, length):
        made.append(length)
        return [0] * length

    def test_a_copy(self, kept, length, left, right):
        assert kept == [0] * length and made.count(length) == 1 and left < right
        kept.append(1)

if __name__ == "__main__":
    tvm.testing.main()
"""
)
run = subprocess.run(
    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], capture_output=True, text=True
)
assert "11 passed, 2 skipped" in run.stdout, run.stdout + run.stderr
assert utils.install_request_hook(depth=3) is None and tvm.testing.enabled_targets()[0][0] == "llvm"
assert requires_llvm.marks() == [] and len(requires_cuda.marks()) == len(requires_gpu.marks()) == 1
assert tvm.testing.strtobool("on") and not tvm.testing.strtobool("0")
tvm.testing.assert_allclose(tvm.nd.array(np.ones(2)), np.ones(2) + 1e-9)
print("ok")
