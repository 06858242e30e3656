"""What importers of one's own share: tables of names, conversion of attributes, types and values that are known now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from relaylab.frontend.recurrent_cells import gru_cell, lstm_cell, rnn_cell
from relaylab.ir import OPERATORS, IRModule, const, var
from relaylab.ir.base import Expr
from relaylab.ir.expr import Constant, TupleWrapper, Var, as_expr
from relaylab.ir.free import free_vars
from relaylab.ir.types import AnyDim, TensorType, TupleType, Type
from relaylab.ir.visit import substitute
from relaylab.op import nn, split, squeeze
from relaylab.op import shape_of as dynamic_shape_of
from relaylab.op.base import call_operator
from relaylab.op.builder import OperatorBuilder
from relaylab.support.checked import checked
from relaylab.support.errors import RelayAttributeError, RelayError, RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform.engine.infer_type import typed
from relaylab.transform.simplify.fold_constant import ConstantFolder

__all__ = [
    "AttrCvt", "DuplicateFilter", "ExprTable", "Renamer", "RequiredAttr", "StrAttrsDict", "autopad",
    "ensure_scalar_shape", "fold_constant", "get_name", "get_relay_op", "gru_cell", "infer_channels", "infer_shape",
    "infer_type", "infer_value", "infer_value_simulated", "lstm_cell", "new_var", "rnn_cell", "shape_of",
    "to_int_list", "try_infer_value", "try_resolve_var_to_const", "unbind",
]  # fmt: skip
E_ = TypeVar("E_", bound=Expr)
Attributes = Mapping[str, Any]
Loose = Any
"""A value of an attribute, or what foreign graphs hold."""


@checked
class DuplicateFilter(logging.Filter):
    """Lets each message of a logger through once."""

    def __init__(self) -> None:
        super().__init__()
        self.msgs: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        new = record.getMessage() not in self.msgs
        self.msgs.add(record.getMessage())
        return new


class RequiredAttr:
    """Stands for a default where an attribute has none: it must be given."""


@checked
class StrAttrsDict:
    """Attributes that are all text, read as numbers, truth values and tuples; a missing one without a default raises
    `RelayAttributeError` (`import.attribute`).
    """

    def __init__(self, attrs: Mapping[str, str]):
        self.attrs = dict(attrs)

    def _read(self, key: str, default: object, convert: Callable[[str], Any]) -> Loose:
        if key in self.attrs:
            try:
                return convert(self.attrs[key])
            except ValueError:
                raise RelayValueError(
                    f"the attribute `{key}` cannot be {self.attrs[key]!r}", code="import.attribute"
                ) from None
        if isinstance(default, RequiredAttr):
            raise RelayAttributeError(
                f"the attribute `{key}` is missing", code="import.attribute", help=did_you_mean(key, self.attrs)
            )
        return default

    def has_attr(self, key: str) -> bool:
        """Whether the attribute is there."""
        return key in self.attrs

    def get_float(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A number."""
        return self._read(key, default, float)

    def get_int(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A whole number; `None` as text is None."""
        return self._read(key, default, lambda text: None if text == "None" else int(text))

    def get_str(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A text."""
        return self._read(key, default, str)

    def get_bool(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A truth value: True or 1."""
        return self._read(key, default, lambda text: text.strip().lower() in ("true", "1"))

    def _tuple(self, key: str, default: object, convert: Callable[[str], Any]) -> Loose:
        def read(text: str) -> tuple[Any, ...]:
            parts = text.strip(" ()[]").split(",")
            return tuple(None if p.strip() == "None" else convert(p) for p in parts if p.strip())

        return self._read(key, default, read)

    def get_int_tuple(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A tuple of whole numbers, `(1, 2)` or `[1, 2]`."""
        return self._tuple(key, default, int)

    def get_float_tuple(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A tuple of numbers."""
        return self._tuple(key, default, float)

    def get_tuple_tuple_int(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A tuple of tuples of whole numbers."""

        def read(text: str) -> tuple[tuple[int, ...], ...]:
            groups = text.replace(" ", "").strip("()[]").replace("[", "(").replace("]", ")").split("),(")
            return tuple(tuple(int(n) for n in group.split(",") if n) for group in groups)

        return self._read(key, default, read)

    def get_int_list(self, key: str, default: object = RequiredAttr()) -> Loose:
        """A tuple of whole numbers."""
        return self.get_int_tuple(key, default)


@checked
class ExprTable:
    """The expressions of an import by name; parameters beside them. `in_padding` marks those that are pads."""

    def __init__(self) -> None:
        self.exprs: dict[str, Expr] = {}
        self.params: dict[str, Any] = {}
        self.const_ctr = 1
        self.in_padding = False

    def new_const(
        self, value: object, shape: Sequence[int] | None = None, dtype: str = "float32", source_name: str | None = None
    ) -> Var:
        """A new parameter with a value."""
        name = f"_param_{self.const_ctr}" if source_name is None else f"{source_name}_param_{self.const_ctr}"
        self.const_ctr += 1
        self.params[name] = value
        self.exprs[name] = var(name, shape=np.shape(_array(value)) if shape is None else shape, dtype=dtype)
        return cast(Var, self.exprs[name])

    def get_expr(self, name: str) -> Expr:
        """The expression of a name; `RelayAttributeError` (`import.unknown-value`) if there is none."""
        if name not in self.exprs:
            raise RelayAttributeError(
                f"there is no expression named `{name}`",
                code="import.unknown-value",
                help=did_you_mean(name, self.exprs),
            )
        return self.exprs[name]

    def set_expr(self, name: str, expr: Expr | TupleWrapper, force_override: bool = False) -> None:
        """Keep an expression; a name that is taken stays as it is unless `force_override`."""
        if force_override or name not in self.exprs:
            self.exprs[name] = as_expr(expr)

    def has_expr(self, name: str) -> bool:
        """Whether there is an expression of that name."""
        return name in self.exprs

    def set_padding(self, paddings: Sequence[object]) -> None:
        """Keep paddings until `get_padding` is asked for them."""
        self.paddings, self.in_padding = paddings, True

    def get_padding(self) -> Sequence[object]:
        """The paddings, which are then forgotten."""
        self.in_padding = False
        return self.paddings

    def clear_padding(self) -> None:
        """Forget the paddings."""
        self.in_padding = False


def get_relay_op(op_name: str) -> OperatorBuilder:
    """The builder of an operator by its name, with or without its namespace: `relu`, `nn.relu`, `resize2d`.

    `RelayAttributeError` (`import.unknown-operator`) if there is none.
    """
    for prefix in ("", "nn.", "image.", "vision.", "contrib.", "qnn.", "random."):
        if (op := OPERATORS.get(prefix + op_name)) is not None:
            return OperatorBuilder(cast(Any, op.definition))
    raise RelayAttributeError(
        f"there is no operator `{op_name}`", code="import.unknown-operator", help=did_you_mean(op_name, OPERATORS)
    )


@checked
class AttrCvt:
    """Converts a foreign operator: `AttrCvt("conv2d", {"kernel_shape": "kernel_size"})(inputs, attrs)`.

    `op_name` is a name, or a function of the attributes that gives one. `transforms` renames attributes: to a new name,
    `(new name, default)` or `(new name, default, function)`. `excludes` must not be there, `disables` and
    `ignores` are dropped, `extras` are added, `custom_check` is (function of attributes, words).
    """

    def __init__(
        self,
        op_name: str | Callable[[Attributes], str],
        transforms: Mapping[str, Any] | None = None,
        excludes: Iterable[str] | None = None,
        disables: Iterable[str] | None = None,
        ignores: Iterable[str] | None = None,
        extras: Mapping[str, Any] | None = None,
        custom_check: tuple[Callable[[Attributes], bool], str] | None = None,
    ):
        self._op_name, self._transforms = op_name, dict(transforms or {})
        self._excludes, self._disables = set(excludes or ()), set(disables or ())
        self._ignores, self._extras, self._check = set(ignores or ()), dict(extras or {}), custom_check
        self._ignores |= {"_output_shapes", "_input_shapes", "T", "use_cudnn_on_gpu", "_node_name", "is_training"}
        self._ignores |= {"_target_layout", "tvm_custom"}

    def __call__(self, inputs: Sequence[Expr], attrs: Attributes, *args: object) -> Loose:
        if self._check is not None and not self._check[0](attrs):
            raise RelayError(f"check failed: {self._check[1]}", code="import.check")
        name = self._op_name if isinstance(self._op_name, str) else self._op_name(attrs)
        found: dict[str, Any] = {}
        for key, value in attrs.items():
            if key in self._excludes:
                raise RelayError(f"the attribute {key} in operator {name} is not supported", code="import.attribute")
            if key in self._disables or key in self._ignores:
                continue
            if key not in self._transforms:
                found[key] = value
        for key in self._transforms:
            renamed, default, convert = self._parse(key)
            if renamed and key in attrs:
                found[renamed] = convert(attrs[key])
            elif renamed and not isinstance(default, RequiredAttr):
                found[renamed] = default
        return get_relay_op(name)(*inputs, **{**found, **self._extras})

    def _parse(self, key: str) -> tuple[str, object, Callable[[Any], Any]]:
        given = self._transforms[key]
        if isinstance(given, str) or given is None:
            return given or "", RequiredAttr(), lambda value: value
        parts = tuple(given)
        return parts[0], parts[1] if len(parts) > 1 else RequiredAttr(), parts[2] if len(parts) > 2 else lambda v: v


@checked
class Renamer:
    """Converts a foreign operator that differs by its name only."""

    def __init__(self, new_name: str):
        self._new_name = new_name

    def __call__(self, inputs: Sequence[Expr], attrs: Attributes, *args: object) -> Loose:
        return get_relay_op(self._new_name)(*inputs, **{k: v for k, v in attrs.items() if k != "tvm_custom"})


def get_name(node: object) -> str:
    """The name of a node of a foreign graph, its `name` or `name_hint`; empty if it has none."""
    return str(getattr(node, "name", "") or getattr(node, "name_hint", ""))


def infer_type(node: E_, mod: IRModule | None = None) -> E_:
    """The expression with the types of all its parts. Raises `DiagnosticError` if they do not fit."""
    return typed(node, mod)


def fold_constant(node: E_, mod: IRModule | None = None) -> E_:
    """The expression with what is known now computed."""
    return cast(E_, ConstantFolder(fold_qnn=True)(typed(node, mod)))


def infer_shape(inputs: Expr, mod: IRModule | None = None) -> Loose:
    """The shape of an expression: ints, and `Any` where it is not known; of a tuple the shapes of its fields."""
    return _shape(typed(as_expr(inputs), mod).checked_type)


def _shape(t: Type) -> Loose:
    if isinstance(t, TensorType):
        return tuple(d if isinstance(d, AnyDim) else int(d) for d in t.shape)
    if isinstance(t, TupleType):
        return tuple(map(_shape, t.fields))
    raise RelayTypeError(f"a value of the type {t} has no shape", code="import.not-a-tensor")


def infer_channels(inputs: Expr, transpose: bool = False) -> int:
    """The channels of a convolution from its weight, (out, in, …), `transpose`d (in, out, …)."""
    return int(infer_shape(inputs)[1 if transpose else 0])


def infer_value(input_val: Expr, params: Mapping[str, Any] | None, mod: IRModule | None = None) -> Loose:
    """The value of an expression whose variables are parameters; `RelayValueError` (`import.unknown-value`) if it
    depends on others.
    """
    given = params or {}
    known = {v: Constant(_array(given[v.name_hint])) for v in free_vars(input_val) if v.name_hint in given}
    found = fold_constant(substitute(input_val, dict(known)), mod)
    if isinstance(found, Constant):
        return found.data
    unknown = ", ".join(f"%{v.name_hint}" for v in free_vars(found))
    raise RelayValueError(
        f"the value depends on {unknown or 'what only run time knows'}",
        code="import.unknown-value",
        help="give the parameters that it needs",
    )


def _array(value: Loose) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def infer_value_simulated(input_val: Expr, params: Mapping[str, Any] | None) -> Loose:
    """As `infer_value`, with ones for variables that are no parameters."""
    given = dict(params or {})
    for v in free_vars(input_val):
        if v.name_hint not in given:
            t = typed(v).checked_type
            if not isinstance(t, TensorType):
                raise RelayTypeError(f"%{v.name_hint} is no tensor", code="import.not-a-tensor")
            given[v.name_hint] = np.ones(t.concrete_shape, t.dtype)
    return infer_value(input_val, given)


def try_infer_value(
    val: Loose,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """The value of an expression and True if it is known now, else the expression (or what `on_failure` gives) and
    False.
    """
    if not isinstance(val, Expr):
        return val, True
    try:
        found = _array(infer_value(val, parameters))
    except RelayError:
        return (on_failure() if on_failure is not None else val), False
    return (on_success(found) if on_success is not None else found), True


def shape_of(x: Expr, dtype: str = "int64", start: int | None = None, end: int | None = None) -> Expr:
    """The shape of an expression as a tensor: a constant if it is known, else an operator's call."""
    dims = infer_shape(x)[start:end]
    if any(isinstance(d, AnyDim) for d in dims):
        whole = dynamic_shape_of(x, dtype)
        if start is None and end is None:
            return whole
        rank = len(infer_shape(x))
        first, last, _ = slice(start, end).indices(rank)
        return call_operator("strided_slice", whole, begin=[first], end=[last], strides=[1])
    return const(np.asarray(dims, dtype), dtype)


def new_var(
    name_hint: str, type_annotation: Type | None = None, shape: Sequence[object] | None = None, dtype: str = "float32"
) -> Var:
    """A variable, as `relay.var`."""
    return var(name_hint, type_annotation, shape, dtype)


def to_int_list(np_array: np.ndarray) -> list[int]:
    """The numbers of an array as Python's."""
    return [int(x) for x in np_array]


def unbind(data: Expr, axis: int = 0) -> list[Expr]:
    """The slices of a tensor along an axis, without that axis."""
    count = infer_shape(data)[axis]
    if isinstance(count, AnyDim):
        raise RelayValueError(f"axis {axis} is not known before run time", code="import.dynamic")
    return [squeeze(part, axis=[axis]) for part in cast(Iterator[Expr], iter(split(data, int(count), axis)))]


def autopad(
    data: Expr,
    strides: Sequence[int],
    kernel_shape: Sequence[int],
    dilations: Sequence[int] = (1, 1),
    pad_type: str = "constant",
    deconv: bool = False,
    mode: str = "SAME_UPPER",
    pad_value: float = 0.0,
) -> Expr:
    """`data` (N, C, spatial…) padded so that windows of `kernel_shape` give ceil(n / stride) results (SAME_UPPER:
    the odd element behind, SAME_LOWER: before).

    Raises `RelayValueError` for another mode and for spatial axes that are not known.
    """
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise RelayValueError(f"the mode of padding is SAME_UPPER or SAME_LOWER, not {mode!r}", code="import.padding")
    spatial = infer_shape(data)[2:]
    if any(isinstance(n, AnyDim) for n in spatial):
        raise RelayValueError("padding needs spatial axes that are known", code="import.dynamic")
    pads: list[tuple[int, int]] = [(0, 0), (0, 0)]
    for n, stride, kernel, dilation in zip(spatial, strides, kernel_shape, _each(dilations, len(spatial))):
        reach = (kernel - 1) * dilation + 1
        total = max(reach - (n % stride or stride), 0)
        total = kernel - 1 - total if deconv else total
        small, large = total // 2, total - total // 2
        pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return nn.pad(data, pads, pad_value, pad_type) if any(map(any, pads)) else data


def _each(values: Sequence[int], count: int) -> Sequence[int]:
    return values if len(values) == count else [values[0]] * count


def ensure_scalar_shape(x: Expr) -> Expr:
    """A tensor of one element as a scalar; `RelayValueError` for more elements."""
    shape = infer_shape(x)
    if shape == ():
        return x
    if any(isinstance(d, AnyDim) for d in shape) or int(np.prod(shape)) != 1:
        raise RelayValueError(f"a tensor of one element is needed, its shape is {shape}", code="import.shape")
    return squeeze(x, axis=list(range(len(shape))))


def try_resolve_var_to_const(x: Expr, graph_params: Mapping[str, Any]) -> Expr:
    """The constant of a variable that is a parameter of one element; anything else as it is."""
    if isinstance(x, Var) and x.name_hint in graph_params:
        value = _array(graph_params[x.name_hint])
        return const(value, value.dtype.name)
    return x
