"""Products of matrices."""

from __future__ import annotations

from relaylab.frontend.onnx.export.rules.base import attributes, one_dtype, rule, shape_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call


@rule("nn.dense")
def _dense(w: Writer, call: Call, ins: list[str]) -> Value:
    one_dtype(call)
    if len(shape_of(call.args[0])) == 2:
        return w.emit("Gemm", ins, transB=1)
    return w.emit("MatMul", [ins[0], swapped(w, ins[1], 2)])


def swapped(w: Writer, name: str, rank: int) -> str:
    """A value with its last two axes exchanged."""
    return w.emit("Transpose", [name], perm=[*range(rank - 2), rank - 1, rank - 2])


@rule("nn.matmul", "nn.batch_matmul")
def _matmul(w: Writer, call: Call, ins: list[str]) -> Value:
    one_dtype(call)
    flags = (attributes(call)["transpose_a"], attributes(call)["transpose_b"])
    sides = zip(ins, call.args, flags)
    return w.emit("MatMul", [swapped(w, n, len(shape_of(a))) if swap else n for n, a, swap in sides])


@rule("einsum")
def _einsum(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Einsum", ins, equation=str(attributes(call)["equation"]))
