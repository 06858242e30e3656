"""ONNX Runtime's optimized model, read beside the model it was made from. Reading runs nothing.

The optimizer keeps the names of the tensors that it still computes. So a node of the optimized model stands for all
nodes of the first model that lead to its outputs from tensors which other nodes, or the model, give.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.frontend.onnx.model import read_model
from relaylab.study.compilers.compiled import Compiled, FusedKernel, SourceProgram
from relaylab.study.compilers.sources import name_of
from relaylab.support.errors import RelayError, RelayValueError

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

NAME = "onnxruntime"
LAYOUT = "com.microsoft.nchwc"
"""The domain of nodes in blocked layouts, whose tensors have names of their own."""


def optimized(model: bytes) -> bytes:
    """What ONNX Runtime makes of a model: all its graph rewrites but those of layouts; the model is not run."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        help = "pip install onnxruntime, or give the file that it wrote (optimized_model_filepath)"
        raise RelayError("the package onnxruntime is not installed", code="compilers.none", help=help) from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 3
        runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return path.read_bytes()


def read(model: object, first: GraphProto, program: SourceProgram) -> Compiled:
    """The kernels of an optimized model (a proto, its bytes or a path) of the program in the graph `first`."""
    graph = read_model(model).proto.graph
    if any(node.domain == LAYOUT for node in graph.node):
        raise RelayValueError(
            "the optimized model has blocked layouts, in which tensors lose their names",
            code="compilers.layout",
            help="write it with graph_optimization_level = ORT_ENABLE_EXTENDED",
        )
    makers = {o: (node, k) for k, node in enumerate(first.node) for o in node.output if o}
    known = {o for node in graph.node for o in node.output} | {t.name for t in (*graph.initializer, *graph.input)}
    kernels = tuple(_kernel(node, makers, known, program) for node in graph.node)
    if not any(kernel.members for kernel in kernels):
        raise RelayValueError(
            "no tensor of the optimized model is of this program",
            code="compilers.strangers",
            help="name the model that it was made from",
        )
    return Compiled(NAME, tuple(k for k in kernels if k.members))


def _kernel(
    node: NodeProto, makers: dict[str, tuple[NodeProto, int]], known: set[str], program: SourceProgram
) -> FusedKernel:
    """A node of the optimized model with the nodes that it stands for."""
    members: dict[str, None] = {}
    stack = [o for o in node.output if o in makers]
    while stack:
        made, number = makers[stack.pop()]
        name = name_of(made, number)
        if name not in members:
            members[name] = None
            stack += [i for i in made.input if i in makers and i not in known]
    ordered = tuple(o.name for o in program.operations if o.name in members)
    return FusedKernel(node.op_type, ordered)
