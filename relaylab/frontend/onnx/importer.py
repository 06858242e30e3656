"""From a GraphProto to a Relay function: names to expressions, node by node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx import table
from relaylab.frontend.onnx.functions import body_of, called, definition
from relaylab.frontend.onnx.model import FEW_BITS, array_of, few_bits, in_order, nodes_below, type_of
from relaylab.frontend.onnx.node import LARGEST, OnnxNode
from relaylab.frontend.onnx.ratios import SizeRatio
from relaylab.frontend.onnx.results import as_relay_error, outputs_of
from relaylab.frontend.onnx.sizes import followed
from relaylab.frontend.onnx.texts import STRING, Texts, texts_of
from relaylab.interp.values import fits
from relaylab.ir import AnyDim, Constant, Expr, SizeVar, TensorType, Tuple, Var
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.source import Span
from relaylab.support.table import did_you_mean

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, ValueInfoProto

MAX_NESTING = 64
"""How deep graphs may lie in each other (protobuf files reach 100 messages, half as many graphs)."""

UNNAMED = ("", "?", "-1", "None")
"""What stands for a name where a size has none: two of them are two sizes."""

_UNPACKS = {"DequantizeLinear", "GatherBlockQuantized"}
"""Operators that know integers smaller than a byte as int8."""

_CAUGHT = (RelayError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError)


class OnnxImporter:
    """Imports the nodes of a graph and of the graphs in its nodes' attributes."""

    def __init__(
        self,
        graph: Graph,
        versions: Mapping[str, int],
        folder: Path | None = None,
        frozen: bool = True,
        weights: Mapping[str, memoryview] = MappingProxyType({}),
    ):
        self.g, self.versions, self.folder, self.frozen, self.weights = graph, versions, folder, frozen, weights
        self.depth = 0
        self.untaken: list[tuple[str, str, int, str]] = []
        """Operators without converter in branches that may never be taken."""
        self.inside: Span | None = None
        """The place of the node whose function body is being imported."""
        self.sizes: dict[str, SizeVar] = {}
        self.functions: dict[tuple[str, str], FunctionProto] = {}
        """Functions of the model that are written in other opsets than the model."""
        graph.convert_body = self.body

    # ---- what the model needs

    def check_operators(self, proto: GraphProto, inside: str = "") -> None:
        """Raise one error that names all operators that have neither a converter nor a definition by others.

        If they are only in branches of an `If`, it is kept for when such a branch is taken.
        """
        missing = self._missing(nodes_below(proto), inside)
        if missing and self._missing(nodes_below(proto, without=("If",)), inside):
            raise table.unsupported(missing)
        self.untaken = missing or self.untaken

    def _missing(self, nodes: Iterable[tuple[str, int, NodeProto]], inside: str) -> list[tuple[str, str, int, str]]:
        missing: dict[tuple[str, str], tuple[str, str, int, str]] = {}
        for where, number, node in nodes:
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = self.version(domain)
            known = table.is_known(domain, node.op_type, version) or (domain, node.op_type) in self.functions
            if not known and not definition(domain, node.op_type, version):
                name = node.name or next(iter(node.output), "")
                place = f"{node.op_type} `{name}` (node {number} of {inside or where})"
                missing.setdefault((domain, node.op_type), (domain, node.op_type, version, place))
        return list(missing.values())

    def version(self, domain: str) -> int:
        """The opset of a domain; the newest that is known if the model does not say."""
        return self.versions.get(domain, 1 if domain else max(self.versions.values(), default=18))

    # ---- values

    def initializers(self, proto: GraphProto) -> dict[str, Expr]:
        """Constants (or parameters) for the tensors that the graph carries."""
        read = _readers(proto) if any(t.data_type in FEW_BITS for t in proto.initializer) else {}
        weights = {} if self.depth else self.weights  # they are those of the model's own graph
        known: dict[str, Any] = {}
        for t in proto.initializer:
            small = t.data_type in FEW_BITS and read.get(t.name, {""}) <= _UNPACKS
            what = f"the initializer `{t.name}`"
            if t.data_type == STRING:
                known[t.name] = texts_of(t, what)
                continue
            values = (few_bits if small else array_of)(t, what, self.folder, weights.get(t.name))
            known[t.name] = self._initial(t.name, values)
        return known | {
            t.values.name: self._initial(t.values.name, dense(t, self.folder)) for t in proto.sparse_initializer
        }

    def _initial(self, name: str, value: np.ndarray) -> Expr:
        constant = Constant(value)
        if self.frozen or self.depth:
            return constant
        var = Var(name, constant.type)
        self.g.params[var] = value
        return var

    def given(self, proto: GraphProto, values: Mapping[str, Any]) -> dict[str, Expr]:
        """Constants for inputs of which the values are given; RelayValueError where the model has no such input."""
        infos = {i.name: i for i in proto.input}
        found: dict[str, Expr] = {}
        for name, value in values.items():
            if name not in infos:
                raise _no_input(name, list(infos))
            wanted = type_of(infos[name])
            array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
            array = array if isinstance(value, np.ndarray) else array.astype(wanted.dtype)
            if not fits(array, wanted):
                raise RelayValueError(
                    f"the value of the input `{name}` is {TensorType(array.shape, array.dtype)}, it is {wanted}",
                    code="import.shape",
                )
            found[name] = Constant(array)
        return found

    def inputs(
        self,
        proto: GraphProto,
        shapes: Mapping[str, Iterable[int | AnyDim]],
        dtypes: Mapping[str, str],
        known: Mapping[str, Expr],
    ) -> list[Var]:
        """Variables for the graph's inputs, but those that are initializers too."""
        infos = [i for i in proto.input if i.name not in known]
        names = [i.name for i in infos]
        for name in shapes:
            if name not in names and name not in known:
                raise _no_input(name, names)
        if len(set(names)) < len(names) or "" in names:
            raise RelayValueError("the inputs of the graph have no names of their own", code="import.input")
        return [Var(i.name, self.named(i, type_of(i, shapes.get(i.name), dtypes.get(i.name)))) for i in infos]

    def named(self, info: ValueInfoProto, t: TensorType) -> TensorType:
        """A type with names for the dimensions that are open: those of the model, which mean one size everywhere."""
        said = info.type.tensor_type.shape.dim
        dims: list[Any] = list(t.shape)
        for axis, d in enumerate(dims):
            if type(d) is AnyDim:
                name = said[axis].dim_param if len(said) == len(dims) else ""
                name = f"{info.name}_{axis}" if name in UNNAMED else name
                dims[axis] = self.sizes.setdefault(name, SizeVar("".join(c if c.isalnum() else "_" for c in name)))
        return TensorType(dims, t.dtype)

    # ---- nodes

    def main(self, proto: GraphProto, scope: Mapping[str, Expr], where: str = "the graph") -> list[Expr]:
        """The expressions of a graph's outputs, `scope` being what names mean in it."""
        values = dict(scope)
        made: set[str] = {i.name for i in proto.input} if not self.depth else set()
        for number, node in in_order(proto):
            domain = "" if node.domain == "ai.onnx" else node.domain
            self._node(OnnxNode(node, number, self.version(domain), where), values, proto)
            if twice := made.intersection(node.output):
                raise RelayValueError(
                    f"there are two values `{min(twice)}`",
                    code="import.duplicate",
                    place=f"  --> node {number} of {where}",
                )
            made.update(filter(None, node.output))
        found = [self._find(o.name, values, proto, f"an output of {where}") for o in proto.output]
        if self.depth:
            return found
        if any(isinstance(v, Texts) or (isinstance(v, list) and not v) for v in found):
            raise RelayValueError(
                "an output of the model is an empty sequence, or texts",
                code="import.output",
                help="outputs are tensors, or sequences of them",
            )
        return [Tuple(cast("list[Expr]", v)) if isinstance(v, list) else v for v in found]

    def body(self, proto: GraphProto, scope: Mapping[str, Expr], where: str) -> list[Expr]:
        """The same for a graph in an attribute, which may have initializers of its own."""
        if self.depth >= MAX_NESTING:
            raise RelayValueError(f"graphs lie more than {MAX_NESTING} deep in each other", code="import.nesting")
        self.depth += 1
        try:
            return self.main(proto, {**scope, **self.initializers(proto)}, where)
        finally:
            self.depth -= 1

    def _node(self, node: OnnxNode, values: dict[str, Expr], proto: GraphProto) -> None:
        ins = [self._find(n, values, proto, node.place) if n else None for n in node.inputs]
        if self.inside is not None:
            node.span = self.inside
        node.scope = values
        try:
            self._bind(node, self._results(node, ins), values)
            self._follow(node, ins, values)
        except _CAUGHT as error:
            raise as_relay_error(error, node) from (None if isinstance(error, RelayError) else error)

    def _results(self, node: OnnxNode, ins: list[Any]) -> list[Any]:
        which = node.domain, node.op_type, node.version
        if which[:2] in self.functions:
            return self._defined(node, ins)
        if not table.is_known(*which):
            if definition(*which):
                return self._defined(node, ins)
            raise table.unsupported(self.untaken or [(*which, node.place)])
        converter = table.lookup(*which)
        least, most = converter.arity()
        given = len(ins)
        while len(ins) > most and ins[-1] is None:
            ins.pop()
        if not least <= len(ins) <= most:
            raise node.error(
                f"takes {least}{f' to {most}' if most != least else ''} inputs, {given} given", code="import.arity"
            )
        if converter.lacks(ins):
            raise node.error("an input that it needs is left out", code="import.arity")
        for k, v in enumerate(ins):
            kind = "list" if isinstance(v, list) else "Texts"
            if isinstance(v, (list, Texts)) and not converter.takes(k, kind):
                what = "a sequence" if isinstance(v, list) else "texts"
                raise node.error(f"a tensor of numbers is needed here, not {what}", code="import.not-a-tensor")
        try:
            results = outputs_of(converter.run(self.g, node, *ins))
        except RelayError as error:
            if error.code != "import.dynamic" or not definition(*which):
                raise
            return self._without_known_values(node, ins, error)
        unread = node.unread(converter.unused)
        if unread:
            names = ", ".join(f"`{name}`" for name in unread)
            what = f"the attribute {names} of opset {node.version} is"
            if len(unread) > 1:
                what = f"the attributes {names} of opset {node.version} are"
            raise node.error(f"{what} not imported", code="import.attribute")
        return results

    def _defined(self, node: OnnxNode, ins: list[Any]) -> list[Any]:
        """The outputs of an operator that onnx defines by others: its body in the place of the node."""
        while ins and ins[-1] is None:
            ins.pop()
        function = self.functions.get((node.domain, node.op_type))
        graph, scope, versions = called(node, function, ins, {}) if function else body_of(self.g, node, ins)
        before = self.versions, self.inside
        self.versions, self.inside = {**self.versions, **versions}, node.span
        try:
            where = f"the body of {node.place}"
            self.check_operators(graph, where)
            found = iter(self.body(graph, {**node.scope, **scope}, where))  # its graphs see what is around the node
            return [next(found, None) if name else None for name in node.outputs]
        finally:
            self.versions, self.inside = before

    def _without_known_values(self, node: OnnxNode, ins: list[Any], refused: RelayError) -> list[Any]:
        """The outputs of an operator whose converter has to know more, by its definition; or the converter's error."""
        try:
            return self._defined(node, ins)
        except RelayError:
            raise refused from None

    def _bind(self, node: OnnxNode, results: list[Any], values: dict[str, Expr]) -> None:
        for k, name in enumerate(node.outputs):
            if not name:
                continue
            if k >= len(results) or results[k] is None:
                raise node.error(f"the output `{name}` (number {k}) is not imported", code="import.output")
            result = results[k]
            if not isinstance(result, Expr):
                values[name] = result  # a sequence, which is a list of tensors here
                continue
            values[name] = self.g.settle(result, node.span)
            self.g.type(values[name])

    def _follow(self, node: OnnxNode, ins: list[Any], values: dict[str, Expr]) -> None:
        """Note what a value is as an expression of open sizes; one without any is a constant."""
        out = values.get(node.outputs[0]) if node.outputs else None
        if not isinstance(out, Expr) or isinstance(out, Constant):
            return
        known = [self.g.symbolic(x) if isinstance(x, Expr) else None for x in ins]
        found = followed(self.g, node, ins, known)
        if found is None:
            return
        if any(isinstance(v, (AnyDim, SizeRatio)) for v in found.flat):
            self.g.symbols[out] = found
        else:
            values[node.outputs[0]] = Constant(np.array(found.tolist(), self.g.dtype(out)).reshape(found.shape))

    def _find(self, name: str, values: Mapping[str, Expr], proto: GraphProto, place: str) -> Expr:
        if name in values:
            return values[name]
        later = any(name in n.output for n in proto.node)
        help = "the nodes form a cycle" if later else did_you_mean(name, values)
        raise RelayValueError(f"there is no value `{name}`", code="import.no-value", place=f"  --> {place}", help=help)


def _no_input(name: str, names: list[str]) -> RelayValueError:
    return RelayValueError(
        f"the model has no input `{name}`",
        code="import.input",
        help=did_you_mean(name, names) or f"its inputs are {', '.join(names)}",
    )


def _readers(proto: GraphProto) -> dict[str, set[str]]:
    """The operators that read each value; an output is read by nobody known."""
    found: dict[str, set[str]] = {o.name: {""} for o in proto.output}
    for _, _, node in nodes_below(proto):
        for name in node.input:
            found.setdefault(name, set()).add(node.op_type)
    return found


def dense(sparse: SparseTensorProto, folder: Path | None) -> np.ndarray:
    """The tensor that a SparseTensorProto stands for."""
    what = f"the sparse initializer `{sparse.values.name}`"
    values, indices = array_of(sparse.values, what, folder), array_of(sparse.indices, what, folder)
    dims = [int(d) for d in sparse.dims]
    if math.prod(max(d, 1) for d in dims) > LARGEST:
        raise RelayValueError(
            f"{what} has the shape {dims}",
            code="import.tensor",
            help=f"{LARGEST} elements at most are made while a model is read",
        )
    try:
        out = np.zeros(dims, values.dtype)
        out.reshape(-1)[indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), out.shape)] = values
    except (IndexError, ValueError, MemoryError) as error:
        raise RelayValueError(f"{what}: {error}", code="import.tensor") from None
    return out
