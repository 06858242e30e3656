"""What loads when: `from relaylab import relay` brings the language and its passes, not what compiles and runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from relaylab import relay
from relaylab.compat.face import PublicNames

pytestmark = pytest.mark.slow

LATER = ("relaylab.codegen", "relaylab.runtime", "relaylab.viz", "relaylab.zoo", "llvmlite", "IPython", "onnx", "torch")


def test_relay_loads_no_compiler() -> None:
    code = "import sys; from relaylab import relay; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith(LATER)]


def test_the_package_alone_loads_no_library() -> None:
    code = "import sys; import relaylab; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "difflib", "hashlib"} & set(loaded)


@pytest.mark.parametrize(
    "use",
    [
        "relay.build",
        "relay.testing.mlp",
        "relay.vm.compile",
        "relay.bind",
        "relay.save_param_dict",
        'relay.transform.PassContext(config={"relay.codegen.winograd": False})',
    ],
)
def test_a_fresh_process_finds_what_loads_later(use: str) -> None:
    subprocess.run([sys.executable, "-c", f"from relaylab import relay; {use}"], check=True)


def test_the_names_are_listed_before_they_are_loaded() -> None:
    later = PublicNames("relay").public()
    assert {"build", "testing"} <= later <= set(dir(relay))
    assert all(getattr(relay, name) is not None for name in later)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="relay has no `bild`"):
        relay.bild  # noqa: B018
