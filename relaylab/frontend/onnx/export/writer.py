"""What rules write to: the nodes, constants, inputs and names of one ONNX graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from relaylab.ir import TensorType, TupleType, Type
from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

OPSET, IR_VERSION = 18, 8

Value: TypeAlias = Union[str, list["Value"]]
"""The name of an ONNX value, or those of a tuple's fields."""
Attribute: TypeAlias = int | float | str | Sequence[int]


_NAMES = {"float32": "float", "float64": "double"}  # of data types in ONNX's schemas, where they are others
_OURS = {theirs: ours for ours, theirs in _NAMES.items()}


def tensors_of(type_: Type) -> list[Type]:
    """The types in a type of tuples, in order."""
    found, stack = [], [type_]
    while stack:
        t = stack.pop()
        if isinstance(t, TupleType):
            stack += reversed(t.fields)
        else:
            found.append(t)
    return found


def flat(value: Value) -> list[str]:
    """The names in a value, in order."""
    found, stack = [], [value]
    while stack:
        v = stack.pop()
        if isinstance(v, str):
            found.append(v)
        else:
            stack += reversed(v)
    return found


class Writer:
    """One ONNX graph as it grows; `taken` are the names that are spoken for, those of the parameters."""

    def __init__(self, taken: Iterable[str]):
        self._taken = set(taken)
        self._nodes: list[NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._inputs: list[ValueInfoProto] = []
        self._dtypes: dict[str, str] = {}

    def emit(self, op_type: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Add a node with one output; its name."""
        return self.several(op_type, inputs, 1, **attributes)[0]

    def several(self, op_type: str, inputs: Sequence[str], outputs: int, **attributes: Attribute) -> list[str]:
        """Add a node with several outputs; their names."""
        from onnx import helper

        self._require_dtypes(op_type, inputs)
        names = [self._fresh(f"v{len(self._nodes)}" + (f"_{k}" if k else "")) for k in range(outputs)]
        node = helper.make_node(op_type, list(inputs), names, name=f"{op_type}_{len(self._nodes)}")
        node.attribute.extend(helper.make_attribute(k, v) for k, v in sorted(attributes.items()))
        self._nodes.append(node)
        self._type_results(node)
        return names

    def typed(self, value: Value, type_: Type) -> None:
        """Say what type a value has; nodes that take it are checked."""
        tensors = [t for t in tensors_of(type_) if isinstance(t, TensorType)]
        self._dtypes |= {name: t.dtype for name, t in zip(flat(value), tensors)}

    def _require_dtypes(self, op_type: str, inputs: Sequence[str]) -> None:
        """An error if ONNX's operator does not take a data type."""
        from onnx import defs

        schema = defs.get_schema(op_type, OPSET)
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        for k, name in enumerate(inputs):
            kind, dtype = schema.inputs[min(k, len(schema.inputs) - 1)].type_str, self._dtypes.get(name)
            if dtype and kind in allowed and f"tensor({_NAMES.get(dtype, dtype)})" not in allowed[kind]:
                raise RelayValueError(
                    f"ONNX's {op_type} takes no {dtype}", code="export.dtype", help="cast the program to another type"
                )

    def _type_results(self, node: NodeProto) -> None:
        """Note the data types of results that follow from those of the inputs, or from the operator alone."""
        from onnx import defs, helper

        schema = defs.get_schema(node.op_type, OPSET)
        kinds = [i.type_str for i in schema.inputs]
        known = {kinds[min(k, len(kinds) - 1)]: d for k, n in enumerate(node.input) if (d := self._dtypes.get(n))}
        for k, name in enumerate(node.output):
            kind = schema.outputs[min(k, len(schema.outputs) - 1)].type_str
            if node.op_type == "Cast":
                self._dtypes[name] = helper.tensor_dtype_to_np_dtype(node.attribute[0].i).name
            elif kind in known or kind.startswith("tensor("):
                self._dtypes[name] = known.get(kind) or _OURS.get(kind[7:-1], kind[7:-1])

    def number_of(self, dtype: str) -> int:
        """ONNX's number of a data type."""
        return _number_of(dtype)

    def constant(self, value: np.ndarray) -> str:
        """The name of a constant."""
        return self._initialized(self._fresh(f"c{len(self._initializers)}"), value)

    # ---- what rules write often

    def numbers(self, values: Iterable[int] | np.ndarray) -> str:
        """A constant of int64: shapes, axes, places."""
        return self.constant(np.array([int(v) for v in values], "int64"))

    def scalar(self, value: float, dtype: str) -> str:
        """A constant number."""
        return self.constant(np.array(value, dtype))

    def cast(self, name: str, dtype: str) -> str:
        """A value as another data type."""
        return self.emit("Cast", [name], to=self.number_of(dtype))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """A value in another shape."""
        return self.emit("Reshape", [name, self.numbers(shape)], allowzero=1)

    def transposed(self, name: str, axes: Sequence[int]) -> str:
        """A value with its axes in another order."""
        return name if list(axes) == sorted(axes) else self.emit("Transpose", [name], perm=[int(a) for a in axes])

    def along(self, name: str, axis: int, rank: int) -> str:
        """A vector in the shape in which it stands along an axis of a tensor of that rank."""
        after = rank - 1 - axis % rank
        return self.reshape(name, [-1, *[1] * after]) if after else name

    def either(self, condition: str, a: str, c: str) -> str:
        """`a` where a condition holds, else `c`."""
        return self.emit("Where", [condition, a, c])

    def floored(self, ins: list[str]) -> str:
        """The quotient of integers, rounded down; ONNX's is rounded towards zero."""
        return self.emit("Div", [self.emit("Sub", [ins[0], self.emit("Mod", ins)]), ins[1]])

    # ---- the graph

    def input(self, name: str, type_: TensorType) -> str:
        """A parameter that the model takes as an input; its name."""
        self._inputs.append(_info(name, type_))
        return name

    def parameter(self, name: str, value: np.ndarray, type_: TensorType) -> str:
        """A parameter whose value is part of the model; its name."""
        if value.shape != type_.concrete_shape or value.dtype.name != type_.dtype:
            raise RelayValueError(
                f"the value of `{name}` is {value.dtype} of shape {value.shape}, the parameter is {type_}",
                code="export.parameter",
            )
        return self._initialized(name, value)

    def model(self, name: str, outputs: Sequence[tuple[str, TensorType]]) -> ModelProto:
        """The whole model; constants that nothing uses are left out."""
        from onnx import helper

        made = {o for node in self._nodes for o in node.output}
        infos: dict[str, ValueInfoProto] = {}
        for value, type_ in outputs:  # an output is made by a node, and is there once
            if value not in made or value in infos:
                value = self.emit("Identity", [value])
            infos[value] = _info(value, type_)
        used = {i for node in self._nodes for i in node.input}
        initializers = [tensor for n, tensor in self._initializers.items() if n in used]
        graph = helper.make_graph(self._nodes, name, self._inputs, list(infos.values()), initializers)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="relaylab")

    def _initialized(self, name: str, value: np.ndarray) -> str:
        from onnx import numpy_helper

        self._initializers[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        self._dtypes[name] = value.dtype.name
        return name

    def _fresh(self, name: str) -> str:
        found, number = name, 0
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found


def _number_of(dtype: str) -> int:
    from onnx import helper

    try:
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    except (TypeError, KeyError, ValueError):
        raise RelayValueError(f"ONNX has no data type {dtype} here", code="export.dtype") from None


def _info(name: str, type_: TensorType) -> ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, _number_of(type_.dtype), type_.concrete_shape)
