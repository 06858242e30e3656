"""ONNX models under construction, as exporters write them: nodes, seeded weights, layers that many networks share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

Shape = Sequence[int | str]
Model = Callable[[], "ModelProto"]
"""What makes a model."""


class OnnxGraph:
    """Nodes and weights; every method gives the name of a tensor."""

    def __init__(self) -> None:
        from onnx import helper

        self.helper, self.rng = helper, np.random.default_rng(0)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def call(self, kind: str, *ins: str, **attributes: object) -> str:
        """A node of one result; the name of it."""
        return self.several(kind, *ins, count=1, **attributes)[0]

    def several(self, kind: str, *ins: str, count: int, **attributes: object) -> list[str]:
        """A node of several results."""
        outs = [f"t{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(self.helper.make_node(kind, list(ins), outs, **attributes))
        return outs

    def weight(self, *shape: int, fan: int = 0) -> str:
        """Normal numbers over the root of how many are summed."""
        return self.constant((self.rng.standard_normal(shape) / math.sqrt(fan or shape[0])).astype("float32"))

    def constant(self, value: object, dtype: str = "") -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype or None)
        return name

    # ---- layers

    def scaled(self, x: str, factor: float) -> str:
        return self.call("Mul", x, self.constant(factor, "float32"))

    def linear(self, x: str, ins: int, outs: int, bias: bool = True) -> str:
        y = self.call("MatMul", x, self.weight(ins, outs))
        return self.call("Add", y, self.weight(outs)) if bias else y

    def norm(self, x: str, hidden: int) -> str:
        return self.call("LayerNormalization", x, self.weight(hidden), self.weight(hidden), axis=-1)

    def gelu(self, x: str) -> str:
        erf = self.call("Erf", self.call("Div", x, self.constant(math.sqrt(2), "float32")))
        return self.call("Mul", self.scaled(x, 0.5), self.call("Add", erf, self.constant(1, "float32")))

    def reshape(self, x: str, *shape: int) -> str:
        return self.call("Reshape", x, self.constant(shape, "int64"))

    def transpose(self, x: str, *axes: int) -> str:
        return self.call("Transpose", x, perm=list(axes))

    def conv(
        self, x: str, ins: int, outs: int, kernel: int = 1, stride: int = 1, groups: int = 1, *, axes: int = 2,
        dilation: int = 1, pads: Sequence[int] | None = None,
    ) -> str:  # fmt: skip
        """A convolution with a bias; without `pads` the size stays but for the stride."""
        taps = [kernel] * axes
        weight = self.weight(outs, ins // groups, *taps, fan=ins // groups * kernel**axes)
        pads = pads or [dilation * (kernel - 1) // 2] * 2 * axes
        attributes = {"strides": [stride] * axes, "dilations": [dilation] * axes, "kernel_shape": taps}
        return self.call("Conv", x, weight, self.weight(outs), pads=list(pads), group=groups, **attributes)

    def heads(self, x: str, count: int, size: int, length: int = 1, batch: int = 1) -> str:
        """(batch, length, count * size) as (batch, count, length, size)."""
        return self.transpose(self.reshape(x, batch, length, count, size), 0, 2, 1, 3)

    def mixed(self, scores: str, value: str, hidden: int, length: int = 1, batch: int = 1) -> str:
        """The values weighted by scores, their heads side by side."""
        y = self.call("MatMul", self.call("Softmax", scores, axis=-1), value)
        return self.reshape(self.transpose(y, 0, 2, 1, 3), batch, length, hidden)

    def attention(
        self, x: str, hidden: int, heads: int, length: int, batch: int = 1, *, bias: bool = True, added: str = ""
    ) -> str:
        """Attention of states to themselves; with `added`, what is added to the scores, these are not scaled."""
        size = hidden // heads
        query, key, value = (
            self.heads(self.linear(x, hidden, hidden, bias), heads, size, length, batch) for _ in range(3)
        )
        scores = self.call("MatMul", query, self.transpose(key, 0, 1, 3, 2))
        scores = self.call("Add", scores, added) if added else self.scaled(scores, size**-0.5)
        return self.linear(self.mixed(scores, value, hidden, length, batch), hidden, hidden, bias)

    def encoder(self, x: str, hidden: int, heads: int, length: int) -> str:
        """A layer with normalization before attention and before the two linear layers."""
        x = self.call("Add", x, self.attention(self.norm(x, hidden), hidden, heads, length))
        wide = self.gelu(self.linear(self.norm(x, hidden), hidden, 4 * hidden))
        return self.call("Add", x, self.linear(wide, 4 * hidden, hidden))

    # ---- the whole

    def model(self, inputs: Mapping[str, Shape], *outputs: str, whole: Sequence[str] = ()) -> ModelProto:
        """The model of inputs of these shapes: float32, but int64 what is named in `whole`, of the results too."""
        from onnx import TensorProto, numpy_helper

        def made(name: str, shape: Shape | None = None) -> object:
            kind = TensorProto.INT64 if name in whole else TensorProto.FLOAT
            return self.helper.make_tensor_value_info(name, kind, shape)

        ins, outs = [made(*named) for named in inputs.items()], [made(name) for name in outputs]
        stored = [numpy_helper.from_array(v, n) for n, v in self.weights.items()]
        graph = self.helper.make_graph(self.nodes, "net", ins, outs, stored)
        return self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", 17)], ir_version=8)


def declared(
    shape: Shape, whole: bool = False
) -> Callable[[Callable[[OnnxGraph, str], str]], Callable[[], ModelProto]]:
    """What writes a network of one input, of float32, and one result (int64 if `whole`) as what makes its model."""

    def decorate(write: Callable[[OnnxGraph, str], str]) -> Model:
        def model() -> ModelProto:
            g = OnnxGraph()
            out = write(g, "data")
            return g.model({"data": shape}, out, whole=[out] if whole else ())

        return model

    return decorate
