"""Words of other releases and of documentation: what they are called here, and the edit to make."""

from __future__ import annotations

import re

import numpy as np

from relaylab.ir.expr import Constant, Expr
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
    "embedding": "take", "permute": "transpose", "view": "reshape", "cat": "concatenate", "concat": "concatenate",
    "identity": "copy", "clamp": "clip", "relu6": "clip", "reduce_mean": "mean", "reduce_sum": "sum",
    "unsqueeze": "expand_dims", "not": "logical_not", "image.resize": "image.resize2d",
}  # fmt: skip


_SAID = {
    "return": "write the value alone: the last expression of a body is its result",
    "true": "write True", "false": "write False", "nan": "write nanf", "NaN": "write nanf", "inf": "write inff",
    "None": "Relay has no such value: the empty tuple is ()", "gelu": "write x * 0.5f * (1f + erf(x * 0.70710678f))",
}  # fmt: skip


def renamed(name: str) -> str:
    """The name of an operator that had another one in TVM 0.6 or 0.7."""
    return _RENAMED.get(name, name)


def in_words(name: str) -> str:
    """The edit that makes an operator of a word that documentation uses; empty if there is none."""
    if name in _SAID:
        return _SAID[name]
    meant = next((found for spelled in (name, *_spelled(name)) if (found := _operator(spelled))), "")
    return f"write `{meant}` for `{name}`" if meant not in ("", name) else ""


def _operator(name: str) -> str:
    known = _MEANT.get(name, name)
    return next((candidate for candidate in (known, f"nn.{known}") if candidate in OPERATORS), "")


def _spelled(name: str) -> tuple[str, ...]:
    """`nn.ReLU` and `Conv2d` of PyTorch and ONNX as Relay might write them."""
    last = name.rpartition(".")[2]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    cut = re.sub(r"_?[123]d$", "", snake)
    return name.lower(), last.lower(), snake, cut


_ATTRIBUTES = {
    "device_copy": {
        "src_dev_type": "src_virtual_device", "dst_dev_type": "dst_virtual_device",
        "src_se_scope": "src_virtual_device", "dst_se_scope": "dst_virtual_device",
    },
    "memory.alloc_storage": {"device_type": "virtual_device", "device_id": "", "se_scope": "virtual_device"},
    "on_device": {"device_type": "virtual_device", "se_scope": "virtual_device", "is_fixed": "constrain_result"},
    "reshape": {"reverse": ""},
}  # fmt: skip
"""What attributes of operators were called in TVM 0.6 to 0.9, and are now; nothing for what has no meaning any more."""


def modernize(name: str, args: list[Expr], written: dict[str, tuple[object, int]]) -> None:
    """Rename the attributes of a call as older releases print them; the value that `nn.pad` fills in is an argument."""
    for old, new in _ATTRIBUTES.get(name, {}).items():
        if old not in written or (not new and written[old][0]):  # it would change the meaning: said where it stands
            continue
        value = written.pop(old)
        if new:
            written.setdefault(new, value)
    if name == "nn.pad" and len(args) == 1 and isinstance(written.get("pad_value", ("",))[0], (int, float)):
        args.append(Constant(np.asarray(written.pop("pad_value")[0], "float32")))
