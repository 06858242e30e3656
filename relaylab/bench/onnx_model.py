"""From a Relay module and its parameters to an ONNX model, for the peers that read ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylab.analysis import infer_module
from relaylab.bench.onnx_rules import RULES
from relaylab.codegen.first_order import first_order
from relaylab.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    children,
    parameter_names,
    walk,
)
from relaylab.runtime.ndarray import as_numpy
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

OPSET, IR_VERSION = 17, 8


def to_onnx(mod: IRModule, params: Mapping[str, Any] | None = None) -> Any:
    """The `main` of a static module as an `onnx.ModelProto`, `params` (by name) as its initializers.

    Inputs of one name are numbered as the graph executor does: `data`, `data1` … RelayValueError names an operator
    that has no rule, ImportError says that onnx is not installed.
    """
    typed = infer_module(first_order(mod))
    return _Exporter(typed["main"], params or {}).model()


class _Exporter:
    """Gives every expression the name of its ONNX value, or a list of names; operands first, without recursion."""

    def __init__(self, main: Function, params: Mapping[str, Any]):
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.main, self.params = main, params
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.taken: set[str] = set()

    def model(self) -> Any:
        """The whole model, checked for its form by onnx."""
        values: dict[Expr, Any] = {p: self._param(p, name) for p, name in zip(self.main.params, parameter_names(self.main.params))}
        below = lambda e: e.args if isinstance(e, Call) else children(e)
        for expr in walk((self.main.body,), below):
            if expr not in values:
                values[expr] = self._value(expr, values)
        graph = self.helper.make_graph(self.nodes, "main", self.inputs, self._outputs(values), self.initializers)
        return self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)

    def emit(self, op_type: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node; the names of its outputs."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(self.helper.make_node(op_type, list(inputs), names, **attributes))
        return names

    def constant(self, value: np.ndarray, name: str | None = None) -> str:
        """The name of a constant."""
        name = name or f"c{len(self.initializers)}"
        self.initializers.append(self.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _param(self, param: Var, name: str) -> str:
        self.taken.add(name)
        if name in self.params:
            return self.constant(as_numpy(self.params[name]), name)
        self.inputs.append(self._info(name, param.checked_type))
        return name

    def _fresh(self, name: str) -> str:
        found, number = name, 0
        while found in self.taken:
            number += 1
            found = f"{name}{number}"
        self.taken.add(found)
        return found

    def _info(self, name: str, type_: Any) -> Any:
        dtype = self.helper.np_dtype_to_tensor_dtype(np.dtype(type_.dtype))
        return self.helper.make_tensor_value_info(name, dtype, type_.concrete_shape)

    def _value(self, expr: Expr, values: Mapping[Expr, Any]) -> Any:
        match expr:
            case Call(op=Op()):
                return self._call(expr, [values[arg] for arg in expr.args])
            case Tuple():
                return [values[f] for f in expr.fields]
            case TupleGetItem():
                return values[expr.tuple_value][expr.index]
            case Constant():
                return self.constant(np.asarray(expr.data))
        raise RelayValueError(f"a {type(expr).__name__} has no ONNX form here", code="onnx.not-static",
                              help="the exporter writes static graphs of operators")

    def _call(self, call: Call, ins: list[Any]) -> Any:
        name = call.op.name
        if name not in RULES:
            raise RelayValueError(f"the operator `{name}` has no ONNX form here", code="onnx.operator",
                                  help=did_you_mean(name, RULES))
        return RULES[name](self, call, ins)

    def _outputs(self, values: Mapping[Expr, Any]) -> list[Any]:
        found, types = values[self.main.body], self.main.body.checked_type
        pairs = zip(found, types.fields) if isinstance(found, list) else [(found, types)]
        return [self._info(name, type_) for name, type_ in pairs]
