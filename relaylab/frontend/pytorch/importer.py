"""From a `torch.export` program to Relay, node by node.

Choices: docs/choices.md, Importing.
"""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from relaylab.frontend.pytorch.expansion import Expansion, Fx, attribute, needed
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.guards import fixed_sizes
from relaylab.frontend.pytorch.node import AtenNode, part_dtype, size_of, type_of
from relaylab.frontend.pytorch.parts import OF_COMPLEX, ComplexParts, complex_of, has_complex
from relaylab.frontend.pytorch.program import dim_names
from relaylab.frontend.pytorch.table import TABLE, Convert, name_of, spellings, unsupported
from relaylab.ir import Constant, Expr, TensorType, TupleWrapper, Var
from relaylab.ir.dims import IntImm
from relaylab.support.dtypes import BFLOAT16
from relaylab.support.errors import RelayError, RelayValueError

if TYPE_CHECKING:
    from torch import SymInt, Tensor
    from torch.export import ExportedProgram
    from torch.fx import Node

_CAUGHT = (RelayError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError)
_PLACES = frozenset("device layout pin_memory memory_format non_blocking".split())  # noqa: SIM905
"""Where and how torch would store a result: they change no value."""
_WRITTEN = "USER_INPUT_MUTATION"
_TENSORS = frozenset(("PARAMETER", "BUFFER"))


class TorchImporter:
    """Imports the nodes of one program; `custom` are a user's converters (inputs, types) by the operators' names.

    `parts` has the graph, where it is not the program's own.
    """

    def __init__(
        self, program: ExportedProgram, friendly: bool, custom: Mapping[str, Convert], parts: Expansion | None = None
    ):
        self.program, self.friendly, self.custom = program, friendly, custom
        self.nodes: list[Any] = needed((parts or program).graph)
        self.held: Mapping[str, Any] = parts.held if parts else {}
        self.g = TorchGraph(dim_names(program), program.range_constraints)
        self.g.open.update({symbol: IntImm(size) for symbol, size in fixed_sizes(program).items()})
        self.g.convert_body = self._body
        self.values: dict[str, Any] = {}

    def check_operators(self) -> None:
        """Raise one error that names all operators without converter, and one if the model changes itself."""
        missing: dict[str, str] = {}
        for node in self._all_nodes():
            if node.op == "call_function":
                name = name_of(node.target)
                if name not in TABLE and self._custom(name) is None:
                    missing.setdefault(name, AtenNode(node, name).place)
        if missing:
            raise unsupported(missing)
        specs = self.program.graph_signature.output_specs
        changed = [str(s.target) for s in specs if "MUTATION" in s.kind.name and s.kind.name != _WRITTEN]
        if changed:
            raise RelayValueError(
                f"the model changes {', '.join(changed)} while it runs",
                code="import.mutation",
                help="a model in training mode does: model.eval(); state that must be kept is an input and an output",
            )

    def _all_nodes(self) -> Iterator[Any]:
        """The nodes of the program, and of the bodies of its branches and loops."""
        graphs: list[tuple[Any, list[Any]]] = [(self.program.graph_module, self.nodes)]
        for module, nodes in graphs:
            yield from nodes
            held = [attribute(module, n.target) for n in nodes if n.op == "get_attr" and n.target not in self.held]
            graphs += [(m, needed(m.graph)) for m in held if hasattr(m, "graph")]

    def inputs(self, names: Sequence[str], types: Sequence[TensorType]) -> list[Var]:
        """Variables for the user's inputs, under the given names and types or torch's; parameters become known."""
        specs = self.program.graph_signature.input_specs
        nodes = [n for n in self.nodes if n.op == "placeholder"]
        found: list[Var] = []
        for node, spec in zip(nodes, specs):
            kind = spec.kind.name
            if kind in _TENSORS or kind == "CONSTANT_TENSOR":
                self.values[node.name] = self._weight(str(spec.target), kind in _TENSORS)
            elif kind == "USER_INPUT":
                value = node.meta.get("val")
                if hasattr(value, "shape"):
                    name = names[len(found)] if len(found) < len(names) else node.name
                    found.append(Var(name, self._input(name, value, types[len(found) :])))
                    self.values[node.name] = found[-1]
                elif value is None or isinstance(value, (bool, int, float, str)):
                    self.values[node.name] = value
                else:
                    found.append(Var(node.name, TensorType((), "int64")))
                    self.values[node.name] = found[-1]
            else:
                raise RelayValueError(f"the input `{node.name}` is of the kind {kind}", code="import.input")
        if types and len(types) != len(found):
            raise RelayValueError(
                f"the model has {len(found)} inputs, {len(types)} given",
                code="import.input",
                help=f"its inputs are {', '.join(v.name_hint for v in found)}",
            )
        return found

    def _input(self, name: str, value: Tensor, given: Sequence[TensorType]) -> TensorType:
        """The type of an input, its open dimensions under torch's names where no number is given."""
        agreed = _agreed(name, type_of(value, f"the input `{name}`"), given)
        dims = [self.g.opened(size_of(d), known) for d, known in zip(value.shape, agreed.shape)]
        return TensorType(dims, agreed.dtype)

    def outputs(self) -> list[Expr]:
        """The expressions of the program's outputs, then what the inputs are that it writes to (caches)."""
        last = self._converted(self.program.graph_module, self.nodes)
        kinds = [s.kind.name for s in self.program.graph_signature.output_specs]
        given = [n for wanted in (False, True) for n, k in zip(last or (), kinds) if (k == _WRITTEN) == wanted]
        found = [self._argument(n) for n in given if n is not None]
        if any(isinstance(v, ComplexParts) for v in found):
            raise RelayValueError(
                "the model gives complex numbers, which Relay has not",
                code="import.output",
                help="give torch.view_as_real(…) of them",
            )
        if not found:
            raise RelayValueError("the model has no output that is a tensor", code="import.output")
        return [v if isinstance(v, Expr) else Constant(np.asarray(v)) for v in found]

    def _converted(self, module: Fx, nodes: Sequence[Any]) -> Fx:
        """Convert the nodes of a module, in their order; what its output names."""
        last: Any = None
        for node in nodes:
            if node.op == "call_function":
                self._node(node)
            elif node.op == "get_attr":
                name = str(node.target)
                held = self.held[name] if name in self.held else attribute(module, name)
                self.values[node.name] = held if hasattr(held, "graph") else _constant(array_of(held, "it"))
            elif node.op == "output":
                last = node.args[0]
        return last

    def _body(self, module: Fx, given: Mapping[str, Any], where: str) -> list[Any]:
        """What the body of a branch or loop gives for values of its inputs."""
        outer, self.values = self.values, dict(given)
        try:
            last = self._converted(module, needed(module.graph))
            return [self._argument(n) for n in (last if isinstance(last, (list, tuple)) else [last])]
        finally:
            self.values = outer

    def _weight(self, name: str, param: bool) -> Expr | ComplexParts:
        tensors: Any = {**self.program.constants, **self.program.state_dict}
        value = array_of(tensors[name], f"`{name}`")
        if not param or value.dtype.kind == "c":
            return _constant(value)
        var = Var(name.replace(".", "_") if self.friendly else name, Constant(value).type)
        self.g.params[var] = value
        return var

    def _node(self, node: Node) -> None:
        name = name_of(node.target)
        here = AtenNode(node, name)
        try:
            args = [self._argument(a) for a in node.args]
            more = {k: self._argument(v) for k, v in node.kwargs.items() if k not in _PLACES}
            custom = self._custom(name)
            if custom is not None:
                types = [self.g.dtype(a) if isinstance(a, Expr) else type(a).__name__ for a in args]
                result = custom([*args, *more.values()], types)
            else:
                result = self._converter(name, here, [*args, *more.values()])(self.g, here, *args, **more)
            self.values[node.name] = self._settled(result, here, here.value)
        except _CAUGHT as error:
            raise _as_relay_error(error, here) from (None if isinstance(error, RelayError) else error)

    def _converter(self, name: str, node: AtenNode, args: Sequence[object]) -> Convert:
        if not has_complex(args):
            return TABLE[name]
        if name not in OF_COMPLEX:
            raise node.error(
                "it is not imported for complex numbers",
                "import.unsupported",
                "compute with real and imaginary parts: torch.view_as_real, .real, .imag",
            )
        return OF_COMPLEX[name]

    def _settled(self, result: object, node: AtenNode, meta: object) -> object:
        """What a converter gave, folded, under the node's place, and of the type that torch has found."""
        if isinstance(result, (list, tuple, TupleWrapper)):
            metas = meta if isinstance(meta, (list, tuple)) else [None] * len(result)
            return [self._settled(r, node, m) for r, m in zip(result, metas)]
        of_complex = str(getattr(meta, "dtype", "")).startswith("torch.complex")
        if isinstance(result, ComplexParts) or (of_complex and isinstance(result, Expr)):
            parts = complex_of(self.g, result, node.dtype)
            return ComplexParts(*(cast(Expr, self._tensor(p, node, meta)) for p in (parts.real, parts.imag)))
        return self._tensor(result, node, meta) if isinstance(result, Expr) else result

    def _tensor(self, result: Expr, node: AtenNode, meta: object) -> object:
        if hasattr(meta, "shape"):
            tensor, what = cast("Tensor", meta), f"the result of {node.name}"
            found, wanted = self.g.tensor(result), type_of(tensor, what, part_dtype(tensor.dtype, what))
            if len(found.shape) == len(wanted.shape):
                result = self.g.refined(result, [*map(size_of, tensor.shape)])
                found = self.g.tensor(result)
            if not fits(found, wanted):
                raise node.error(f"the result is {found}, torch says {wanted}", code="import.mismatch")
            return self.g.settle(result, node.span)
        value = self.g.value(result)
        if value is not None:
            return value.item()
        settled = self.g.settle(result, node.span)
        known = self.g.dim(size_of(cast("SymInt", meta))) if type(meta).__name__ == "SymInt" else None
        return self.g.follow(settled, known)

    def _argument(self, value: object) -> object:
        """An argument of a node: values for nodes, in lists too."""
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if hasattr(value, "meta") and hasattr(value, "name"):
            return self.values[str(getattr(value, "name"))]  # noqa: B009
        return value

    def _custom(self, name: str) -> Convert | None:
        return next((self.custom[k] for k in spellings(name) if k in self.custom), None)


def _agreed(name: str, found: TensorType, given: Sequence[TensorType]) -> TensorType:
    """The type that is given for an input; it may say what the program leaves open, and nothing else."""
    if given and not fits(given[0], found):
        raise RelayValueError(f"the input `{name}` is {found} in the program, {given[0]} is given", code="import.input")
    return given[0] if given else found


def _constant(value: np.ndarray) -> Constant | ComplexParts:
    if value.dtype.kind != "c":
        return Constant(value)
    return ComplexParts(*(Constant(np.ascontiguousarray(part)) for part in (np.real(value), np.imag(value))))


def array_of(tensor: Tensor, what: str) -> np.ndarray:
    """The values of a tensor of torch."""
    part_dtype(tensor.dtype, what)
    if tensor.layout.__str__() != "torch.strided" or tensor.is_quantized or str(tensor.device) == "meta":
        raise RelayValueError(f"{what} is not a dense tensor with values", code="import.tensor")
    dense = tensor.detach().cpu().resolve_conj().resolve_neg()
    if str(dense.dtype) == "torch.bfloat16":  # numpy has none: its bits
        import torch

        return np.array(dense.view(torch.int16).numpy()).view(BFLOAT16)
    return np.array(dense.numpy())


def fits(found: TensorType, wanted: TensorType) -> bool:
    """Whether two types are equal but for dimensions that one of them does not know."""
    if found.dtype != wanted.dtype or len(found.shape) != len(wanted.shape):
        return False
    pairs = [(_known(a), _known(b)) for a, b in zip(found.shape, wanted.shape)]
    return all(a is None or b is None or a == b for a, b in pairs)


def _known(dim: object) -> int | None:
    try:
        return int(cast(int, dim))
    except (TypeError, ValueError):
        return None


def _as_relay_error(error: Exception, node: AtenNode) -> RelayError:
    if isinstance(error, RelayError):
        if node.place in error.place:
            return error
        return RelayValueError(
            f"{node.name}: {error.message}", code=error.code, place=f"  --> {node.place}", help=error.help
        )
    return node.error(
        f"the node cannot be read: {error}", code="import.malformed", help=f"raised as {type(error).__name__}"
    )
