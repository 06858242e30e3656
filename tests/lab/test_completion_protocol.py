"""Completion as a front end asks for it: over the kernel protocol, with a real kernel."""

from __future__ import annotations

import pytest

manager = pytest.importorskip("jupyter_client.manager")


@pytest.fixture(scope="module")
def kernel():
    km, kc = manager.start_new_kernel(kernel_name="python3")
    kc.execute_interactive(
        "%load_ext relaylab\nfrom relaylab import relay\nmy_module = relay.testing.mlp.get_workload(1)[0]",
        timeout=300,
        output_hook=lambda m: None,
    )
    yield kc
    kc.stop_channels()
    km.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    "line, expected",
    [
        ("%relay_viz my_", "my_module"),
        ("%relay_passes my_module -p FuseO", "FuseOps"),
        ("%%relay_passes -p FoldConstant,ToANorm", "ToANormalForm"),
        ("%relay_viz my_module --par", "--params"),
        ("%relay_build resnet1", "resnet18"),
    ],
)
def test_completion(kernel, line, expected):
    content = kernel.complete(line, len(line), reply=True, timeout=300)["content"]
    assert expected in content["matches"]
    start, end = content["cursor_start"], content["cursor_end"]
    assert expected.startswith(line[start:end].lstrip("-") if not expected.startswith("-") else line[start:end])
