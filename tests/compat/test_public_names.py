"""Every name that programs can reach under `relaylab.relay`, `relaylab.contrib` and `tvm`: none is ever lost."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import relaylab
from relaylab.compat import install_as_tvm, uninstall_tvm

pytestmark = pytest.mark.slow


def recorded() -> dict[str, list[str]]:
    """The names of each module, as they were when the faces became tables; later ones need not be added."""
    names: dict[str, list[str]] = {}
    module = ""
    for line in (Path(__file__).parent / "public_names.txt").read_text().splitlines():
        if line.startswith(" "):
            names[module] += line.split()
        else:
            module = line
            names[module] = []
    return names


NAMES = recorded()
RELAY = [m for m in NAMES if m.startswith("relaylab.relay")]


@pytest.fixture
def tvm() -> Iterator[ModuleType]:
    yield install_as_tvm()
    uninstall_tvm()


@pytest.mark.parametrize("module", NAMES)
def test_names(tvm: ModuleType, module: str) -> None:
    loaded = importlib.import_module(module)
    lost = [name for name in NAMES[module] if not hasattr(loaded, name)]
    assert not lost, f"{module} has lost {lost}"
    assert not set(NAMES[module]) - set(dir(loaded)) and loaded.__doc__ and loaded.__name__


@pytest.mark.parametrize("module", RELAY)
def test_relay_is_one_object_under_both_names(tvm: ModuleType, module: str) -> None:
    assert importlib.import_module(module.replace("relaylab", "tvm", 1)) is importlib.import_module(module)


@pytest.mark.parametrize("module", NAMES)
def test_a_module_is_an_attribute_of_its_package(tvm: ModuleType, module: str) -> None:
    """`import a.b.c as d`, and `a.b.c` after it."""
    found = tvm if module.startswith("tvm") else relaylab
    importlib.import_module(module)
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    assert found is importlib.import_module(module)


@pytest.mark.parametrize(
    "program",
    [
        "from tvm.relay.testing import resnet; resnet.get_workload",
        "import tvm.relay.testing.resnet as net; net.get_workload",
        "import tvm; tvm.relay.testing.resnet.get_workload; tvm.contrib.graph_executor.create; "
        "tvm.runtime.vm.Executable",
        "import tvm.contrib.debugger.debug_executor as d; d.create",
        "from tvm.relay import *; nn.conv2d; FuncType",
        "from tvm.relay.op.nn import *; conv2d",
        "from tvm.contrib.relay_viz.dot import DotPlotter; DotPlotter",
    ],
)
def test_a_fresh_process_imports_below_tvm(program: str) -> None:
    code = f"import relaylab; relaylab.install_as_tvm(); {program.replace('; ', chr(10), 1)}".replace(
        "; from", "\nfrom"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "program",
    [
        "import relaylab.relay.testing.resnet as net; net.get_workload",
        "from relaylab.relay.op.nn import conv2d, dense",
        "from relaylab.relay.qnn.transform import *\nCanonicalizeOps",
        "from relaylab.contrib.graph_executor import GraphModule",
        "import relaylab.contrib.relay_viz.dot as d; d.DotPlotter",
        "from relaylab.contrib import relay_viz, graph_executor\nrelay_viz.RelayVisualizer",
        "import relaylab\nrelaylab.contrib.relay_viz.dot.DotPlotter; relaylab.relay.testing.mlp.get_net",
        "import importlib\nimportlib.import_module('relaylab.relay.dataflow_pattern').is_op",
        "import pydoc, relaylab.relay.nn as nn\nassert 'conv2d' in pydoc.plaintext.document(nn)",
        "import inspect, relaylab.relay.adt as adt\ndict(inspect.getmembers(adt))['Match']",
    ],
)
def test_a_fresh_process_imports_below_relaylab(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_not_there_is_an_import_error() -> None:
    with pytest.raises(ImportError):
        importlib.import_module("relaylab.relay.nonsense")
    with pytest.raises(ImportError):
        exec("from relaylab.relay.nn import nonsense")
    with pytest.raises(ImportError):
        exec("from relaylab.contrib import nonsense")
