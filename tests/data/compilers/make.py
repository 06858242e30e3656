"""Makes the recorded dumps of this folder from small programs of our own: `python tests/data/compilers/make.py`.

Needs onnx, onnxruntime, torch and a C++ compiler. `small.onnx` is the program, `small_optimized.onnx` what ONNX Runtime
writes of it; `net.relay` is the program of `inductor.json`, TorchInductor's file of origins. `make_xla.py` makes XLA's.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch

from relaylab import relay
from relaylab.frontend import to_onnx
from relaylab.frontend.pytorch import from_pytorch
from relaylab.study.compilers.inductor import FILE
from relaylab.study.compilers.onnxruntime import optimized

HERE = Path(__file__).parent


def small() -> relay.IRModule:
    """Convolution, batch norm, relu; a second one with a residual; a dense layer with a GELU by hand."""
    rng = np.random.default_rng(0)
    weight = lambda *shape: relay.const(rng.standard_normal(shape).astype("float32"))
    x = relay.var("x", shape=(1, 3, 8, 8))
    y = relay.nn.conv2d(x, weight(4, 3, 3, 3), padding=(1, 1))
    norm = [weight(4), weight(4), weight(4), relay.const(np.ones(4, "float32"))]
    y = relay.nn.relu(relay.nn.batch_norm(y, *norm)[0])
    y = relay.nn.relu(relay.add(y, relay.nn.conv2d(y, weight(4, 4, 1, 1))))
    z = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y))
    z = relay.nn.dense(z, weight(5, 4))
    z = z * (relay.erf(z / relay.const(1.4142135)) + relay.const(1.0)) * relay.const(0.5)
    return relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(z)))


class Net(torch.nn.Module):
    """Convolution, batch norm, relu, a gate, a mean, a linear layer, GELU, softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.c, self.b, self.l = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.b(self.c(x)))
        z = y * torch.sigmoid(y)
        z = z.mean((2, 3))
        return torch.softmax(torch.nn.functional.gelu(self.l(z)), -1)


def main() -> None:
    model = to_onnx(relay.transform.InferType()(small()))
    onnx.save(model, HERE / "small.onnx")
    (HERE / "small_optimized.onnx").write_bytes(optimized(model.SerializeToString()))
    net, x = Net().eval(), torch.rand(1, 3, 8, 8)
    (HERE / "net.relay").write_text(str(from_pytorch(net, (x,))[0]) + "\n")
    from torch._inductor import config

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        config.trace.enabled, config.trace.debug_dir, config.trace.provenance_tracking_level = True, folder, 1
        torch.compile(net)(x)
        shutil.copy(next(Path(folder).rglob(FILE)), HERE / "inductor.json")


if __name__ == "__main__":
    main()
