"""A fused program as the back end sees it: tensors, and operations (calls of Primitive functions) in order.

Tuples, projections and lets are resolved; what is not a static first-order graph is refused with the
construct named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, cast

import numpy as np

from relaylab import ir
from relaylab.codegen.network.names import KernelNames
from relaylab.codegen.network.open_sizes import OpenSizes
from relaylab.ir.expr import set_type
from relaylab.ir.visit import operands_of
from relaylab.loop.program import SIZES
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError
from relaylab.support.memory import check_files, files_under
from relaylab.transform.normal_forms.first_order import first_order


@dataclass(eq=False, slots=True)
class NetworkTensor:
    """A dense tensor that operations exchange.

    `origin` is "input", "constant" or "result"; `alias` is the tensor of other shape whose elements it has;
    `node` and `output` place it in the graph.
    """

    shape: tuple[int, ...]
    dtype: str
    origin: str
    name: str = ""
    data: np.ndarray | None = None
    alias: NetworkTensor | None = None
    node: int = -1
    output: int = 0
    recipe: Callable[[], np.ndarray] | None = None
    """Computes the numbers of a constant again that has been let go."""

    @property
    def constant(self) -> np.ndarray:
        """The numbers of a constant; RelayError for any other tensor."""
        if self.data is not None:
            return self.data
        if self.recipe is None:
            raise RelayError(f"the tensor `{self.name}` is no constant", code="codegen.not-a-constant")
        return self.recipe()

    @property
    def identity(self) -> int:
        """A number that tells a constant from others while the network lives."""
        return id(self.data if self.recipe is None else self)

    @property
    def root(self) -> NetworkTensor:
        """The tensor whose memory it is."""
        tensor = self
        while tensor.alias is not None:
            tensor = tensor.alias
        return tensor


NetworkValue: TypeAlias = "NetworkTensor | tuple[NetworkValue, ...]"


@dataclass(eq=False, slots=True)
class Operation:
    """One call of a Primitive function. `inputs` has one value per parameter; `outputs` is flat.

    `sizes` are those of an open program.
    """

    function: ir.Function
    inputs: tuple[NetworkValue, ...]
    outputs: tuple[NetworkTensor, ...]
    name: str
    node: int
    sizes: OpenSizes | None = None

    def shape(self, t: ir.TensorType) -> tuple[int, ...]:
        """The shape of a type within the function, for the loop level."""
        return t.concrete_shape if self.sizes is None else self.sizes.shape(t)

    @property
    def reshape_only(self) -> bool:
        """Does it only give its input another shape?"""
        return bool(self.inputs) and bool(self.function.attr("relay.reshape_only", 0))


@dataclass(eq=False, slots=True)
class Network:
    """A static graph. `nodes` are its inputs, constants and operations in the order of the graph's nodes."""

    inputs: list[NetworkTensor] = field(default_factory=list)
    constants: list[NetworkTensor] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    outputs: list[NetworkTensor] = field(default_factory=list)
    nodes: list[NetworkTensor | Operation] = field(default_factory=list)

    def let_go(self) -> int:
        """Lets the constants go that can be computed again; their bytes."""
        kept = [t for t in self.constants if t.recipe is not None and t.data is not None]
        freed = sum(t.constant.nbytes for t in kept)
        for tensor in kept:
            tensor.data = None
        return freed


def of_whole_batch(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """The shape that as many parts of a batch have together."""
    return (shape[0] * parts, *shape[1:]) if parts > 1 else shape


def flatten(value: NetworkValue) -> Iterator[NetworkTensor]:
    """The tensors in a value, left to right."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, NetworkTensor):
            yield top
        else:
            stack.extend(reversed(top))


def operator_of(call: ir.Call) -> ir.Op:
    """The operator of a call in a fused function, which has no other calls; else RelayTypeError."""
    if not isinstance(call.op, ir.Op):
        raise RelayTypeError("a fused function calls operators only", code="codegen.not-an-operator")
    return call.op


def tensor_type(expr: ir.Expr) -> ir.TensorType:
    """The type of an expression that is one tensor, as every operand of a contraction is; else RelayTypeError."""
    found = expr.checked_type
    if not isinstance(found, ir.TensorType):
        raise RelayTypeError(f"a tensor is needed, not a value of type {found}", code="codegen.not-a-tensor")
    return found


class NetworkConstants(Mapping[str, np.ndarray]):
    """The constants of a network by name; those that were let go are computed when they are asked for."""

    def __init__(self, network: Network):
        self._tensors = {tensor.name: tensor for tensor in network.constants}

    def __getitem__(self, name: str) -> np.ndarray:
        found = self._tensors[name].constant
        check_files(files_under([found]))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


Recipes = Mapping[ir.Constant, Callable[[], np.ndarray]]


def network_of(
    main: ir.Function,
    prefix: str = "tvmgen_default",
    sizes: OpenSizes | None = None,
    recipes: Recipes = MappingProxyType({}),
) -> Network:
    """The network that a fused, typed `main` describes; `sizes` are those of an open program, `recipes` compute
    constants again.

    Raises RelayError `build.not-static` for control flow, closures, data types, references and unknown shapes.
    """
    return _Reader(main, prefix, sizes, recipes).read()


def is_static_graph(mod: ir.IRModule) -> bool:
    """Can the graph executor run the `main` of a typed module?"""
    main = first_order(mod)["main"]
    typed = (node for node in ir.walk((mod["main"],)) if node.inferred is not None)
    return all(is_plain(node) for node in ir.walk((main.body,), operands_of)) and not any(
        ir.is_dynamic(n.checked_type) for n in typed
    )


def is_plain(expr: ir.Expr) -> bool:
    """Whether a graph can hold an expression, its parts left aside."""
    if isinstance(expr, ir.Call):
        return isinstance(expr.op, ir.Op) or (isinstance(expr.op, ir.Function) and expr.op.is_primitive)
    return isinstance(expr, (ir.Constant, ir.Op, ir.Tuple, ir.TupleGetItem, ir.Var))


class _Reader:
    """Gives every expression its value, operands first, without recursion."""

    def __init__(self, main: ir.Function, prefix: str, sizes: OpenSizes | None, recipes: Recipes):
        self.main, self.network, self.sizes, self.recipes = main, Network(), sizes, recipes
        self.names = KernelNames(prefix)
        self.values: dict[ir.Expr, NetworkValue] = {}
        self.bound: dict[ir.Var, ir.Expr] = {}

    def read(self) -> Network:
        """All of the function."""
        for param, name in zip(self.main.params, ir.parameter_names(self.main.params)):
            self.values[param] = self._input(param, param.checked_type, name)
        for expr in ir.walk((self.main.body,), self._below):
            if expr not in self.values:
                self.values[expr] = self._value(expr)
        self.network.outputs = list(flatten(self.values[self.main.body]))
        if self.sizes is not None:
            self.sizes.tensor = NetworkTensor((0,), "int64", "input", self._unique(SIZES))
            self.network.inputs.append(self._add(self.sizes.tensor))
        return self.network

    def _below(self, expr: ir.Expr) -> tuple[ir.Expr, ...]:
        """What must have a value before `expr` has one."""
        match expr:
            case ir.Let():
                self.bound[expr.var] = expr.value
                return (expr.value, expr.body)
            case ir.Var() if expr in self.bound:
                return (self.bound[expr],)
        return operands_of(expr)

    def _value(self, expr: ir.Expr) -> NetworkValue:
        match expr:
            case ir.Call(op=ir.Function() as function) if function.is_primitive:
                return self._operation(expr, function)
            case ir.Call(op=ir.Op()):
                return self._operation(expr, _as_primitive(expr))
            case ir.Let():
                return self.values[expr.body]
            case ir.Var() if self.bound.get(expr) in self.values:
                return self.values[self.bound[expr]]
            case ir.Tuple():
                return tuple(self.values[f] for f in expr.fields)
            case ir.TupleGetItem():
                return cast("tuple[NetworkValue, ...]", self.values[expr.tuple_value])[expr.index]
            case ir.Constant():
                return self._constant(expr)
            case ir.Var():
                help = "bind it before it is used, or make it a parameter"
                raise RelayValueError(f"%{expr.name_hint} has no value here", code="build.unbound", help=help)
        raise not_static(_construct(expr), expr)

    def _input(self, param: ir.Var, type: ir.Type, name: str) -> NetworkValue:
        if isinstance(type, ir.TupleType):
            return tuple(self._input(param, t, f"{name}.{k}") for k, t in enumerate(type.fields))
        tensor = _tensor(type, "input", param, self.sizes)
        tensor.name = self._unique(name)
        self.network.inputs.append(self._add(tensor))
        return tensor

    def _unique(self, name: str) -> str:
        """The name, or as the text prints a second parameter of that name: `data1`, `data2` …"""
        taken = {tensor.name for tensor in self.network.inputs}
        numbered = (f"{name}{k}" for k in itertools.count(1))
        return name if name not in taken else next(n for n in numbered if n not in taken)

    def _constant(self, expr: ir.Constant) -> NetworkTensor:
        tensor = NetworkTensor(expr.type.concrete_shape, expr.type.dtype, "constant", f"p{len(self.network.constants)}")
        if expr.later is None:
            tensor.data = np.asarray(expr.data)
        tensor.recipe = self.recipes.get(expr)
        self.network.constants.append(self._add(tensor))
        return tensor

    def _add(self, tensor: NetworkTensor) -> NetworkTensor:
        tensor.node = len(self.network.nodes)
        self.network.nodes.append(tensor)
        return tensor

    def _operation(self, call: ir.Call, function: ir.Function) -> NetworkValue:
        inputs = tuple(self.values[arg] for arg in call.args)
        value = _results(call.checked_type, call, self.sizes)
        name, node = self.names.of(function), len(self.network.nodes)
        operation = Operation(function, inputs, tuple(flatten(value)), name, node, self.sizes)
        for k, tensor in enumerate(operation.outputs):
            tensor.node, tensor.output = operation.node, k
        if operation.reshape_only:
            operation.outputs[0].alias = next(flatten(inputs))
        self.network.nodes.append(operation)
        self.network.operations.append(operation)
        return value


def _results(type: ir.Type, call: ir.Call, sizes: OpenSizes | None) -> NetworkValue:
    if isinstance(type, ir.TupleType):
        return tuple(_results(field, call, sizes) for field in type.fields)
    return _tensor(type, "result", call, sizes)


def _tensor(type: ir.Type, origin: str, place: ir.Expr, sizes: OpenSizes | None) -> NetworkTensor:
    if not isinstance(type, ir.TensorType):
        raise not_static(f"a value of type {type}", place)
    if sizes is not None:
        return NetworkTensor(sizes.shape(type), type.dtype, origin)
    if type.is_dynamic:
        raise not_static(f"a tensor of the unknown shape {type}", place)
    return NetworkTensor(type.concrete_shape, type.dtype, origin)


def _as_primitive(call: ir.Call) -> ir.Function:
    """A call of a bare operator as a Primitive function of one operator."""
    params = [ir.Var(f"p{k}", arg.checked_type) for k, arg in enumerate(call.args)]
    for param, arg in zip(params, call.args):
        set_type(param, arg.checked_type)
    body = ir.Call(call.op, params, call.attrs, call.type_args, span=call.span)
    set_type(body, call.checked_type)
    return ir.Function(params, body, call.checked_type, attrs={"Primitive": 1})


_WORDS = {
    ir.If: "an `if`",
    ir.Match: "a `match`",
    ir.RefCreate: "a reference",
    ir.RefRead: "a reference",
    ir.RefWrite: "a reference",
    ir.Constructor: "a data type",
    ir.GlobalVar: "a function as a value",
    ir.Function: "a closure",
    ir.Op: "an operator as a value",
}


def _construct(expr: ir.Expr) -> str:
    """What to call an expression that a graph cannot hold."""
    if isinstance(expr, ir.Call):
        match expr.op:
            case ir.GlobalVar():
                return f"a call of the function @{expr.op.name_hint}"
            case ir.Constructor():
                return f"a value of a data type ({expr.op.name_hint})"
            case ir.Function():
                return "a call of a function that is not one kernel"
        return "a call of a closure"
    return f"the variable %{expr.name_hint} that is not bound" if isinstance(expr, ir.Var) else _WORDS[type(expr)]


def not_static(construct: str, place: ir.Expr) -> RelayError:
    """The error for what only the other executors can run."""
    return RelayError(
        f"the graph executor cannot run {construct}",
        code="build.not-static",
        place=f"  --> {place.span}" if place.span is not None else "",
        help='it runs static graphs; use relay.create_executor("vm") or create_executor("debug") for this program',
    )
