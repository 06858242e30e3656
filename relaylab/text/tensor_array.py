"""Tensor arrays: lists of tensors, of any shape (`TensorArrayOps`) or of one (`StaticTensorArrayOps`), in Relay.

The functions for a data type are written when they are first asked for: names end with the data type, those for one
shape also with the shape. An element is a value of the type `tensor_<dtype>_t`, whose constructors hold a tensor of
rank 0 to 6 or nothing, or of `static_tensor_<dtype>_<shape>_t`, whose constructors hold one of that shape or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import TYPE_CHECKING

from relaylab.ir.expr import Expr, Function
from relaylab.ir.free import free_vars
from relaylab.ir.types import AnyDim, GlobalTypeVar, TensorType, TypeCall, dtype_name
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.text import hooks
from relaylab.text.library import import_text

if TYPE_CHECKING:
    from relaylab.text.prelude import Prelude

RANKS = 6
Shape = tuple[int | None, ...]
"""The extents of a tensor; None: not known before the program runs."""


def _tensor(dtype: str, shape: Iterable[object]) -> str:
    dims = ["?" if d is None else str(d) for d in shape]
    return f"Tensor[({', '.join(dims)}{',' if len(dims) == 1 else ''}), {dtype}]" if dims else dtype


INDICES = _tensor("int32", [None])

_LISTS = """
def @tensor_array_$N(%n: int32) -> List[$T] {
  if (%n == 0) { Nil } else { Cons(tensor_nil_$N, @tensor_array_$N(%n - 1)) }
}
def @tensor_array_read_$N(%ta: List[$T], %n: int32) -> $T { @nth(%ta, %n) }
def @tensor_array_write_$N(%ta: List[$T], %n: int32, %v: $T) -> List[$T] { @update(%ta, %n, %v) }
def @tensor_array_scatter_from_$N(%ta: List[$T], %i: int32, %n: int32, %at: $I, %vs: List[$T]) -> List[$T] {
  if (%i == %n) { %ta } else {
    let %done = @tensor_array_write_$N(%ta, take(%at, %i), @tensor_array_read_$N(%vs, %i));
    @tensor_array_scatter_from_$N(%done, %i + 1, %n, %at, %vs)
  }
}
def @tensor_array_scatter_$N(%ta: List[$T], %at: $I, %vs: List[$T]) -> List[$T] {
  @tensor_array_scatter_from_$N(%ta, 0, take(shape_of(%at, dtype="int32"), 0), %at, %vs)
}
def @tensor_array_gather_from_$N(%ta: List[$T], %found: List[$T], %n: int32, %at: $I) -> $S {
  if (%n == 0) { @tensor_array_stack_$N(%found) } else {
    let %more = Cons(@tensor_array_read_$N(%ta, take(%at, %n - 1)), %found);
    @tensor_array_gather_from_$N(%ta, %more, %n - 1, %at)
  }
}
def @tensor_array_gather_$N(%ta: List[$T], %at: $I) -> $S {
  @tensor_array_gather_from_$N(%ta, Nil, take(shape_of(%at, dtype="int32"), 0), %at)
}
"""
"""For a kind of elements: N ends the names, T is the type of an element, S that of a stack, I that of indices."""

_SPLIT = """
def @tensor_array_split_from_$N(%ta: List[$O], %v: $T, %by: $I, %i: int32, %n: int32, %at: int32) -> List[$O] {
  if (%i == %n) { %ta } else {
    let %size = take(%by, %i);
    let %rest = @tensor_array_split_from_$N(%ta, %v, %by, %i + 1, %n, %at + %size);
    @update(%rest, %i, @tensor_take_$N(%v, %at, %at + %size))
  }
}
def @tensor_array_split_$N(%ta: List[$O], %v: $T, %by: $I) -> List[$O] {
  @tensor_array_split_from_$N(%ta, %v, %by, 0, take(shape_of(%by, dtype="int32"), 0), 0)
}
"""

_UNSTACK = """
def @tensor_array_unstack_from$U(%i: int32, %n: int32, %t: $A) -> List[$T] {
  if (%i == %n) { Nil } else {
    Cons($C(take(%t, %i, axis=0)), @tensor_array_unstack_from$U(%i + 1, %n, %t))
  }
}
def @tensor_array_unstack$U(%t: $A) -> List[$T] {
  @tensor_array_unstack_from$U(0, take(shape_of(%t, dtype="int32"), 0), %t)
}
"""

_JOINED = """
def @tensor_array_concat_$N(%ta: List[$T]) -> $T {
  match (%ta) {
    Cons(%one, Nil) => { %one },
    Cons(%one, %rest) => { @tensor_concatenate_$N(%one, @tensor_array_concat_$N(%rest)) },
    Nil => { tensor_nil_$N },
  }
}
"""
_STACK = """
def @tensor_array_stack_$N(%ta: List[$T]) -> $S { @tensor_array_concat_$R(@map(@tensor_expand_dims_$N, %ta)) }
"""
_ONE_SHAPE = """
def @tensor_get_data_$N(%t: $T) -> $D { match? (%t) { $C(%x) => { %x } } }
def @tensor_expand_dims_$N(%t: $T) -> $S {
  match? (%t) { $C(%x) => { tensor_constructor_$R(expand_dims(%x, axis=0)) } }
}
"""
_ROWS = """
def @tensor_widen_$N(%t: $T) -> $O { match? (%t) { $C(%x) => { $W(%x) } } }
def @tensor_take_$N(%t: $T, %lower: int32, %upper: int32) -> $O {
  match? (%t) { $C(%x) => { $W(take(%x, arange(%lower, %upper, 1, dtype="int32"), axis=0)) } }
}
def @tensor_concatenate_$N(%a: $T, %b: $T) -> $O {
  match? ((%a, %b)) { ($C(%x), $C(%y)) => { $W(concatenate((%x, %y), axis=0)) } }
}
"""
_CONCAT = """
def @tensor_array_concat_$N(%ta: List[$T]) -> $O { @tensor_array_concat_$P(@map(@tensor_widen_$N, %ta)) }
"""
"""For elements of one shape, of which O are those of any length: C and W are the constructors, P ends O's names."""


def _filled(text: str, **parts: str) -> str:
    for key, value in parts.items():
        text = text.replace(f"${key}", value)
    return text


def _by_rank(name: str, dtype: str, params: str, of: str, clauses: Iterable[str]) -> str:
    return f"def @{name}_{dtype}({params}) -> tensor_{dtype}_t {{ match? ({of}) {{ {' '.join(clauses)} }} }}\n"


def dynamic_text(dtype: str) -> str:
    """The library of tensor arrays for a data type, of elements of any shape."""
    made = f"tensor_{dtype}_t"

    def any_(k: int) -> str:
        return _tensor(dtype, [None] * k)

    def ctor(k: int) -> str:
        return f"tensor{k}_{dtype}"

    holds = [f"{ctor(k)}({any_(k)})" for k in range(RANKS + 1)]
    text = f"type {made} {{ tensor_nil_{dtype}, {', '.join(holds)} }}\n"
    slices = 'take(%x, arange(%lower, %upper, 1, dtype="int32"), axis=0)'
    ranks = range(1, RANKS + 1)
    bounds = f"%t: {made}, %lower: int32, %upper: int32"
    text += _by_rank(
        "tensor_take", dtype, bounds, "%t", [f"{ctor(k)}(%x) => {{ {ctor(k)}({slices}) }}," for k in ranks]
    )
    wider = [f"{ctor(k - 1)}(%x) => {{ {ctor(k)}(expand_dims(%x, axis=0)) }}," for k in ranks]
    text += _by_rank("tensor_expand_dims", dtype, f"%t: {made}", "%t", wider)
    joined = "concatenate((%x, %y), axis=0)"
    pairs = [f"({ctor(k)}(%x), {ctor(k)}(%y)) => {{ {ctor(k)}({joined}) }}," for k in ranks]
    text += _by_rank("tensor_concatenate", dtype, f"%a: {made}, %b: {made}", "(%a, %b)", pairs)
    parts = {"N": dtype, "T": made, "S": made, "I": INDICES, "O": made, "R": dtype}
    text += _filled(_JOINED + _STACK + _LISTS + _SPLIT, **parts)
    unstacked = (_filled(_UNSTACK, U=f"_tensor{k}_{dtype}", A=any_(k), T=made, C=ctor(k - 1)) for k in ranks)
    return text + "".join(unstacked)


@checked
class TensorArrayOps:
    """The library of tensor arrays of any shape in a module, for one data type; `get_global_var` asks for it."""

    def __init__(self, prelude: Prelude, dtype: str):
        self.prelude, self.dtype = prelude, dtype_name(dtype)

    def register(self) -> None:
        """Take the functions into the module, if they are not there."""
        _take_in(self.prelude, dynamic_text(self.dtype), f"tensor_array_{self.dtype}")


def _take_in(prelude: Prelude, text: str, source: str) -> None:
    """Add to the module what a text defines and the module does not have."""
    mod = prelude.mod
    known = {gv.name_hint for gv in (*mod.functions, *mod.type_definitions)}
    new: dict[str, str] = {}
    for piece in text.replace("def @", "\0def @").replace("type ", "\0type ").split("\0")[1:]:
        name = piece.removeprefix("def @").removeprefix("type ").replace("(", " ").split()[0]
        if name not in known:
            new.setdefault(name, piece)
    if new:
        import_text(mod, "\n".join(['#[version = "0.0.5"]', *new.values()]), source)


def static_shape(shape: Sequence[object]) -> Shape:
    """A shape as the names and types of tensor arrays have it; RelayTypeError if it is none."""
    found: list[int | None] = []
    for d in shape:
        if not isinstance(d, (int, AnyDim, NoneType)) or isinstance(d, bool):
            raise RelayTypeError(
                f"a dimension of a tensor array is an int or Any, not {d!r}", code="prelude.tensor-array"
            )
        found.append(int(d) if isinstance(d, int) else None)
    return tuple(found)


def static_name(name: str, dtype: str, shape: Sequence[object], batch_dim: int | None = None) -> str:
    """The full name of a type (`tensor_t`), constructor or function for elements of a shape."""
    dims = "_".join("any" if d is None else str(d) for d in static_shape(shape)) or "scalar"
    if name == "tensor_t":
        return f"static_tensor_{dtype}_{dims}_t"
    if batch_dim is None or name in ("tensor_constructor", "tensor_nil"):
        return f"{name}_{dtype}_{dims}"
    return f"{name}_{dtype}_batch{batch_dim}_{dims}"


def _element_type(dtype: str, shape: Shape) -> str:
    """The data type of elements of a shape, as text that defines it."""
    name, made = static_name("", dtype, shape), static_name("tensor_t", dtype, shape)
    return f"type {made} {{ tensor_nil{name}, tensor_constructor{name}({_tensor(dtype, shape)}) }}\n"


def static_text(dtype: str, shape: Shape, batch_dim: int | None = None) -> str:
    """The library of tensor arrays for a data type, of elements of one shape; functions may come twice."""
    stack, long = (None, *shape), (None, *shape[1:])

    def end(s: Shape, batch: int | None = None) -> str:
        return static_name("", dtype, s, batch)[1:]

    def name(kind: str, s: Shape) -> str:
        return static_name(kind, dtype, s)

    def parts(s: Shape, batch: int | None = None) -> dict[str, str]:
        long = (None, *s[1:])
        here = {
            "N": end(s, batch),
            "T": name("tensor_t", s),
            "C": name("tensor_constructor", s),
            "D": _tensor(dtype, s),
        }
        rows = {"O": name("tensor_t", long), "W": name("tensor_constructor", long), "P": end(long)}
        return here | rows | {"S": name("tensor_t", stack), "R": end(stack), "I": INDICES}

    rows = [stack, *([long, shape] if shape else [])]
    text = "".join(_element_type(dtype, s) for s in dict.fromkeys([shape, *rows]))
    for s in dict.fromkeys(rows):
        text += _filled(_ROWS + (_JOINED if s[0] is None else _CONCAT), **parts(s))
    lists = _ONE_SHAPE + _STACK + _LISTS.replace("tensor_nil_$N", f"tensor_nil_{end(shape)}")
    if shape:
        lists += _SPLIT + (_ROWS + _CONCAT if batch_dim is not None else "")
    here = parts(shape, batch_dim)
    unstack = _filled(_UNSTACK, U=f"_{here['N']}", A=_tensor(dtype, (batch_dim, *shape)), T=here["T"], C=here["C"])
    return text + _filled(lists, **here) + unstack


@checked
class StaticTensorArrayOps:
    """The library of tensor arrays in a module, for one data type and one shape of elements.

    Joined and stacked elements have an unknown first extent. `prelude.get_global_var_static` names the functions.
    """

    def __init__(self, prelude: Prelude, dtype: str, shape: Sequence[object], batch_dim: int | None = None):
        self.prelude, self.dtype, self.shape = prelude, dtype_name(dtype), static_shape(shape)
        self.batch_dim = batch_dim

    def register(self) -> None:
        """Take the functions into the module, as far as they are not there."""
        name = static_name("tensor_array", self.dtype, self.dims, self.batch_dim)
        _take_in(self.prelude, static_text(self.dtype, self.shape, self.batch_dim), name)

    def define_tensor_array_split(
        self, value_shape: Sequence[object] | None = None, lengths_shape: object = None, force_update: bool = False
    ) -> None:
        """Let `tensor_array_split` take values of another shape, whose rows are the elements' rows.

        The other arguments are taken for TVM's sake. RelayValueError for a shape whose pieces are no elements.
        """
        self.register()
        shape = self.shape if value_shape is None else static_shape(value_shape)
        if shape == self.shape:
            return
        if (None, *shape[1:]) != self.shape:
            text = f"pieces of a tensor of shape {tuple(value_shape or ())} are no elements of shape {tuple(self.dims)}"
            help = "elements have the value's shape but for the first extent, which is Any"
            raise RelayValueError(text, code="prelude.tensor-array", help=help)
        _take_in(self.prelude, static_text(self.dtype, shape), "split")
        end, take = (static_name("", self.dtype, s)[1:] for s in (self.shape, shape))
        made = [static_name("tensor_t", self.dtype, s) for s in (shape, self.shape)]
        mod, old = self.prelude.mod, (f"tensor_array_split_{end}", f"tensor_array_split_from_{end}")
        mod.functions = {gv: f for gv, f in mod.functions.items() if gv.name_hint not in old}
        text = _SPLIT.replace("@tensor_take_$N", f"@tensor_take_{take}")
        _take_in(self.prelude, _filled(text, N=end, T=made[0], O=made[1], I=INDICES), "split")

    def define_tensor_array_scatter(self, indices_shape: object = None, force_update: bool = False) -> None:
        """Take the functions into the module; `tensor_array_scatter` takes indices of any number."""
        self.register()

    def define_tensor_get_data(self, data_shape: object = None, force_update: bool = False) -> None:
        """Take the functions into the module; `tensor_get_data` gives the tensor of an element."""
        self.register()

    @property
    def dims(self) -> list[object]:
        """The shape with `Any` for what is not known."""
        return [AnyDim() if d is None else d for d in self.shape]


def get_tensor_array_shape(expr: Expr, dtype: str, prelude: Prelude) -> tuple[object, ...] | None:
    """The shape of the elements of a tensor array; None if they may be of any.

    RelayTypeError if the expression is no tensor array of the data type.
    """
    mod = prelude.mod.shallow_copy()
    mod["main"] = Function(free_vars(expr), expr)
    found = hooks.typed(mod)["main"].body.inferred
    element = found.args[0] if isinstance(found, TypeCall) and found.args else found
    name = element.func.name_hint if isinstance(element, TypeCall) and isinstance(element.func, GlobalTypeVar) else ""
    if name == f"tensor_{dtype}_t":
        return None
    if not name.startswith(f"static_tensor_{dtype}_"):
        raise RelayTypeError(f"{found} is no tensor array of {dtype}", code="prelude.tensor-array")
    holds = [c.inputs[0] for c in prelude.mod[prelude.mod.get_global_type_var(name)].constructors if c.inputs]
    return next((t.shape for t in holds if isinstance(t, TensorType)), ())
