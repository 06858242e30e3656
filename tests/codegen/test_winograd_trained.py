"""The error of minimal filtering on the weights of trained networks, against float64."""

from __future__ import annotations

import os
from pathlib import Path

import conv_reference as reference
import numpy as np
import pytest
from kernel_runner import TARGETS, convolved, framed, runnable_targets

from relaylab.codegen import templates as T
from relaylab.codegen.kernels.kernel import MemoryView

MODELS = Path(os.environ.get("RELAYLAB_MODELS", Path(__file__).parents[3] / "shared" / "models"))
BOUND = {2: 8e-7, 4: 1e-5}  # largest error over largest output, as the template documents


def trained_layers(name: str) -> list[np.ndarray]:
    onnx = pytest.importorskip("onnx", reason="reads trained weights from ONNX files")
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"needs {path.name} in RELAYLAB_MODELS")
    weights = [onnx.numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer if len(i.dims) == 4]
    return [w for w in weights if w.shape[2:] == (3, 3) and w.shape[1] >= 16][:8]


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("name", ["resnet20_cifar10", "squeezenet_fp32", "style_candy224"])
def test_error_on_trained_weights(name, m):
    target, rng = TARGETS[runnable_targets()[-1]], np.random.default_rng(0)
    for w in trained_layers(name):
        out = MemoryView.dense((1, 12, 12, w.shape[0]))
        arguments = out, (3, 3), (1, 1), (1, 1), (1, 1)
        halo = T.MINIMAL[m, 3].reads(T.ConvSpec(MemoryView.dense((1, 12, 12, w.shape[1])), *arguments))
        spec = T.ConvSpec(framed((1, 12, 12, w.shape[1]), halo), *arguments)
        x = np.maximum(rng.standard_normal(spec.data.shape), 0).astype("f")  # as after a ReLU
        got, _ = convolved(T.MINIMAL[m, 3], spec, target, x, w.astype("f"))
        want = reference.conv(x, w, (12, 12), (1, 1), (1, 1), (1, 1), 1)
        assert abs(got - want).max() < BOUND[m] * abs(want).max()
