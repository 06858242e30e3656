"""One call of a `torch.export` program: its operator, what torch knows of its result, and the line that made it."""

# torch need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from relaylab.ir import AnyDim, TensorType
from relaylab.ir.trail import is_inner
from relaylab.support.errors import RelayValueError
from relaylab.support.source import SourceName, Span, python_place, readable

if TYPE_CHECKING:
    from torch import SymInt, Tensor
    from torch.fx import Node

DTYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()  # noqa: SIM905
)
REAL = {"complex64": "float32", "complex128": "float64"}
"""The data type of the two parts of a complex tensor."""
_FRAME = re.compile(r'File "(.+)", line (\d+), in ')
_INSIDE = re.compile(r"[\\/]site-packages[\\/]torch[\\/]")

_PARTED = "complex tensors are known inside a model: give and take real ones, torch.view_as_complex and view_as_real"

Size = Any
"""A dimension as torch knows it: an int, or a formula (of sympy) in the dimensions that stay open."""


def dtype_of(dtype: object, what: str) -> str:
    """The data type of torch by its name here."""
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise RelayValueError(
            f"{what} has the data type {name}, which Relay has not",
            code="import.dtype",
            help=_PARTED if name in REAL else "convert the model first: model.float()",
        )
    return name


def size_of(dim: int | SymInt) -> Size:
    """The formula of a dimension."""
    if isinstance(dim, int):
        return dim
    formula: Size = cast(Any, dim.node.expr)  # versions of torch say differently what it is
    return int(formula) if formula.is_number else formula.expand()


def part_dtype(dtype: object, what: str) -> str:
    """The data type of torch by its name here, that of the parts for a complex one."""
    return REAL.get(str(dtype).removeprefix("torch.")) or dtype_of(dtype, what)


def type_of(value: Tensor, what: str, dtype: str = "") -> TensorType:
    """The type of a tensor of torch; open dimensions are `Any`."""
    dims = [d if isinstance(d, int) else AnyDim() for d in map(size_of, value.shape)]
    return TensorType(dims, dtype or dtype_of(value.dtype, what))


class AtenNode:
    """A node of the graph as converters see it."""

    def __init__(self, node: Node, name: str):
        self.node, self.name = node, name
        self.value: Any = node.meta.get("val")
        self.module = _module(node.meta)
        self.file, self.line = _line(node.meta)
        where = ", ".join(x for x in (self.module, python_place(self.file, self.line) if self.file else "") if x)
        self.place = f"{name} `{node.name}`{f' ({where})' * bool(where)}"
        at = " at ".join(x for x in (self.module, readable(self.file)) if x) or node.name
        mark = 1 if self.line else 0
        self.span = Span(SourceName(at), self.line, self.line, mark, mark)

    @property
    def dtype(self) -> str:
        """The data type of the (first) result, of its parts if it is complex."""
        value = self.value[0] if isinstance(self.value, (tuple, list)) else self.value
        return part_dtype(value.dtype, f"the result of {self.name}")

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The dimensions of the result."""
        return tuple(map(size_of, self.value.shape))

    def sizes_of(self, argument: int = 0) -> tuple[Size, ...]:
        """The dimensions of an argument, which is a tensor."""
        given: Any = self.node.args[argument]
        return tuple(map(size_of, given.meta["val"].shape))

    def meta(self, argument: int) -> Tensor | float:
        """An argument as torch sees it: a tensor without values, or a number."""
        given: Any = self.node.args[argument]
        return given.meta["val"] if hasattr(given, "meta") else given

    def uses(self, number: int) -> bool:
        """Whether anything reads the result of that number."""
        return any(user.args[1] == number for user in self.node.users if len(user.args) > 1)

    def run(self, *given: object) -> Tensor:
        """What torch gives for these arguments, in float64."""
        import torch

        return cast("Tensor", cast(Any, self.node.target)(*given, dtype=torch.float64))

    def error(self, message: str, code: str = "import.node", help: str = "") -> RelayValueError:
        """An error about this node."""
        return RelayValueError(f"{self.name}: {message}", code=code, place=f"  --> {self.place}", help=help)


def _module(meta: dict[str, Any]) -> str:
    """The path of the module whose `forward` made a node: `layer1.0.conv1`."""
    stack = list((meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    return re.sub(r"^L\['self'\]\.?|^L__self___?", "", path)


def _line(meta: dict[str, Any]) -> tuple[str, int]:
    """File and line of the innermost frame of the model's code, torch's own if there is no other."""
    frames = [(m.group(1), int(m.group(2))) for m in _FRAME.finditer(meta.get("stack_trace") or "")]
    frames = [f for f in frames if not is_inner(f[0])]
    own = [f for f in frames if not _INSIDE.search(f[0])]
    return (own or frames or [("", 0)])[-1]
