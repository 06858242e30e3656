"""Words of other releases and of documentation: what they are called here, and the edit to make."""

from __future__ import annotations

from relaylab.ir.op import OPERATORS

_RENAMED = {
    "contrib.adaptive_avg_pool2d": "nn.adaptive_avg_pool2d",
    "contrib.adaptive_max_pool2d": "nn.adaptive_max_pool2d",
    "contrib.ndarray_size": "ndarray_size",
    "memory.invoke_tvm_op": "vm.invoke_tvm_op",
}
_MEANT = {
    "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative", "pow": "power", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "relu": "nn.relu",
    "matmul": "nn.matmul", "gemm": "nn.dense", "linear": "nn.dense", "flatten": "nn.batch_flatten",
    "image.resize": "image.resize2d",
}  # fmt: skip


def renamed(name: str) -> str:
    """The name of an operator that had another one in TVM 0.6 or 0.7."""
    return _RENAMED.get(name, name)


def in_words(name: str) -> str:
    """The edit that makes an operator of a word that documentation uses; empty if there is none."""
    meant = _MEANT.get(name) or (f"nn.{name}" if f"nn.{name}" in OPERATORS else "")
    return f"write `{meant}` for `{name}`" if meant else ""
