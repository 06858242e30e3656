"""ToMixedPrecision: heavy operators compute in half precision, delicate ones stay as they are.

Each operator is in one of three lists: ALWAYS (worth it), FOLLOW (as its arguments are), NEVER
(loses too much). A value is cast once for each precision in which it is used
(Micikevicius et al., "Mixed Precision Training", 2018). Functions inside a function keep their
types: their arguments and results are cast, so closures, recursion and data types are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Annotated, Any, cast

from relaylab import ir
from relaylab.ir.free import global_vars
from relaylab.ir.trail import derived, made_from
from relaylab.ir.types import dtype_name
from relaylab.support.errors import RelayError, RelayValueError, shown, warn
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.engine.let_rewrite import Bound, events
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, copied


class Category(IntEnum):
    """What becomes of an operator."""

    ALWAYS = 0
    FOLLOW = 1
    NEVER = 2


_ALWAYS = (
    "nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.dense nn.batch_matmul"
)
_FOLLOW = """
nn.pad nn.batch_flatten concatenate zeros split squeeze transpose expand_dims reshape dyn.reshape
broadcast_to_like dyn.broadcast_to strided_slice dyn.strided_slice take argwhere where tile dyn.tile
scatter full dyn.full nn.depth_to_space less greater less_equal greater_equal copy cast cast_like
add subtract multiply divide nn.bias_add nn.batch_norm sqrt shape_of max min maximum minimum argmax
argmin nn.relu nn.leaky_relu nn.prelu nn.dropout sigmoid tanh fast_tanh fast_exp fast_erf clip
nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d
nn.global_max_pool2d nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d
image.resize2d
"""
_NEVER = """
exp power nn.cross_entropy nn.cross_entropy_with_logits nn.softmax nn.l2_normalize erf arange
nn.global_avg_pool2d nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d sum mean
variance nn.layer_norm
"""
CATEGORIES: dict[str, Category] = {
    **dict.fromkeys(_ALWAYS.split(), Category.ALWAYS),
    **dict.fromkeys(_FOLLOW.split(), Category.FOLLOW),
    **dict.fromkeys(_NEVER.split(), Category.NEVER),
}


def category_of(name: str, missing_op_mode: int) -> Category:
    """The category of an operator; for one in no list the mode says: 0 raise, 1 warn and follow, 2 follow."""
    if name in CATEGORIES:
        return CATEGORIES[name]
    text = f"{name} has no category for mixed precision"
    if missing_op_mode == 0:
        raise RelayError(text, code="precision.unknown-op", help="use missing_op_mode=1 to let it follow its arguments")
    if missing_op_mode == 1:
        warn(f"{text}; it follows its arguments")
    return Category.FOLLOW


def converted(node: ir.Call, mixed: str) -> tuple[Category, str, str] | None:
    """What a function that a program registered says of a call: its category, and the data types in which it
    accumulates and which it gives. None if there is none.
    """
    own = node.op.get_attr("FTVMMixedPrecisionConversionType") if isinstance(node.op, ir.Op) else None
    if own is None:
        return None
    answer = list(cast(Callable[..., Sequence[Any]], own)(node, mixed))
    try:
        category, inner, outer = answer
        return Category(int(category)), dtype_name(str(inner)), dtype_name(str(outer))
    except ValueError:
        raise RelayValueError(
            f"the function for {ir.op_name(node)} gave {shown(answer)}",
            code="precision.rule",
            help="return [category 0 to 2, accumulation dtype, output dtype]",
        ) from None


def get_generic_out_dtypes(call_node: ir.Call, mixed_precision_type: str) -> list[str]:
    """In which data types an operator accumulates and which it gives: the mixed one, both."""
    return [mixed_precision_type, mixed_precision_type]


def generic_always_op(call_node: ir.Call, mixed_precision_type: str) -> list[int | str]:
    """The answer of an operator that is always lowered."""
    return [int(Category.ALWAYS), *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_follow_op(call_node: ir.Call, mixed_precision_type: str) -> list[int | str]:
    """The answer of an operator that is as its arguments are."""
    return [int(Category.FOLLOW), *get_generic_out_dtypes(call_node, mixed_precision_type)]


def generic_never_op(call_node: ir.Call, mixed_precision_type: str) -> list[int | str]:
    """The answer of an operator that keeps its precision."""
    return [int(Category.NEVER), *get_generic_out_dtypes(call_node, mixed_precision_type)]


def register_func_to_op_list(list_op: Sequence[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers `func(call, mixed_precision_type)` with each of these operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in list_op:
            ir.Op.get(name).set_attr("FTVMMixedPrecisionConversionType", function)
        return function

    return register


def _leaves(t: ir.Type | None) -> list[ir.TensorType]:
    if isinstance(t, ir.TupleType):
        return [leaf for f in t.fields for leaf in _leaves(f)]
    return [t] if isinstance(t, ir.TensorType) else []


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


class _Converter:
    """Rewrites one function; `precision` holds the data type that each float value has now, where it changed."""

    def __init__(self, mixed: str, mode: int, keep_output: bool):
        self.mixed, self.mode, self.keep_output = mixed, mode, keep_output
        self.memo: dict[ir.Expr, ir.Expr] = {}
        self.lowered: set[ir.Expr] = set()
        self.casts: dict[tuple[ir.Expr, str], ir.Expr] = {}

    def run(self, func: ir.Function) -> ir.Function:
        for node in events((func,), lambda n: isinstance(n, ir.Function) and n.is_primitive):
            if isinstance(node, Bound):
                self._bind(node.let)
            elif node not in self.memo:
                with made_from(node):
                    self.memo[node] = derived(self._rewritten(node, func), node)
        return as_function(self.memo[func])

    def _bind(self, let: ir.Let) -> None:
        """A variable has the type that its value has now."""
        self.memo.setdefault(let.var, let.var)
        if let.value in self.lowered:
            self.lowered.add(let.var)
            lowered = self._lowered_type(type_of(let.value))
            self.memo[let.var] = derived(ir.Var(let.var.name_hint, lowered, span=let.var.span), let.var)

    def _lowered_type(self, t: ir.Type | None) -> ir.Type | None:
        if isinstance(t, ir.TupleType):
            return ir.TupleType([cast(ir.Type, self._lowered_type(f)) for f in t.fields])
        return ir.TensorType(t.shape, self.mixed) if isinstance(t, ir.TensorType) and _is_float(t.dtype) else t

    def _rewritten(self, node: ir.Expr, root: ir.Function) -> ir.Expr:
        if isinstance(node, ir.Call) and isinstance(node.op, ir.Op):
            return self._call(node)
        if isinstance(node, ir.Function):
            return self._function(node, node is root)
        parts = ir.children(node)
        if isinstance(node, ir.Call):
            return ir.rebuild(node, [self._in(p, None) for p in parts])
        if isinstance(node, ir.Let):
            self._mark(node, node.body in self.lowered)
            return ir.rebuild(node, [self.memo[p] for p in parts])
        # both or none: a conditional has one type
        if isinstance(node, ir.If) and {node.true_branch, node.false_branch} <= self.lowered:
            self.lowered.add(node)
            return ir.rebuild(node, [self.memo[p] for p in parts])
        if isinstance(node, (ir.If, ir.Match, ir.RefCreate, ir.RefRead, ir.RefWrite)):
            return ir.rebuild(node, [self._in(p, None) if p in self.memo else p for p in parts])
        if isinstance(node, ir.Tuple):
            return self._tuple(node)
        if len(parts) == 1 and parts[0] in self.lowered:
            self._mark(node, any(_is_float(t.dtype) for t in _leaves(type_of(node))))
        return ir.rebuild(node, [self.memo[p] for p in parts])

    def _tuple(self, node: ir.Tuple) -> ir.Expr:
        """A tuple is lowered if all its floats are; else those that are become what they were."""
        floats = [f for f in node.fields if any(_is_float(t.dtype) for t in _leaves(type_of(f)))]
        lowered = bool(floats) and all(f in self.lowered for f in floats)
        self._mark(node, lowered)
        return ir.rebuild(node, [self.memo[f] if lowered else self._in(f, None) for f in node.fields])

    def _mark(self, node: ir.Expr, lowered: bool) -> None:
        if lowered:
            self.lowered.add(node)

    def _function(self, func: ir.Function, is_root: bool) -> ir.Expr:
        if func.is_primitive:
            return func
        body = self._in(func.body, None) if not is_root or self.keep_output else self.memo[func.body]
        changed = body is not self.memo[func.body] or func.body not in self.lowered
        return ir.FunctionWithFields(func, body=body, ret_type=func.ret_type if changed else None)

    # ---- one operator

    def _call(self, node: ir.Call) -> ir.Expr:
        category, inner, outer = converted(node, self.mixed) or (category_of(ir.op_name(node), self.mode), None, None)
        if category is Category.FOLLOW:
            ready = all(self._ready(a) for a in node.args)
            category = Category.ALWAYS if ready else Category.NEVER
        lower = category is Category.ALWAYS and self._touches_floats(node)
        args = [self._in(a, self.mixed if lower else None) for a in node.args]
        attrs = self._attrs(node, inner or self.mixed) if lower else node.attrs
        same = attrs is node.attrs
        new = ir.rebuild(node, (node.op, *args)) if same else ir.Call(node.op, args, attrs, node.type_args)
        if lower and inner != outer and isinstance(found := type_of(node), ir.TensorType):
            # a result of neither data type becomes what it was
            new = call("cast", new, dtype=outer if outer == self.mixed else found.dtype)
        floats = any(_is_float(t.dtype) for t in _leaves(type_of(node)))
        self._mark(node, lower and floats and outer in (None, self.mixed))
        return new

    def _touches_floats(self, node: ir.Call) -> bool:
        return any(_is_float(t.dtype) for a in (node, *node.args) for t in _leaves(type_of(a)))

    def _ready(self, arg: ir.Expr) -> bool:
        """Whether an argument is in the mixed precision already, or is not worth asking."""
        # variables and constants decide nothing: a weight is cast once, where it comes in
        if isinstance(arg, (ir.Var, ir.Constant)) or arg in self.lowered:
            return True
        if isinstance(arg, ir.Tuple):
            return all(self._ready(f) for f in arg.fields)
        return not any(_is_float(t.dtype) and t.dtype != self.mixed for t in _leaves(type_of(arg)))

    def _attrs(self, node: ir.Call, dtype: str) -> ir.Attrs | ir.DictAttrs | None:
        """Attributes that name a data type name `dtype`."""
        attrs = node.attrs
        if not isinstance(attrs, ir.Attrs):
            return attrs
        changes = {k: dtype for k in ("out_dtype", "dtype") if k in attrs.fields and self._names_float(k, attrs[k])}
        return attrs.replace(**changes) if changes else attrs

    def _names_float(self, field: str, value: str | None) -> bool:
        return _is_float(value) if value else field == "out_dtype"

    # ---- values in the precision that is asked for

    def _in(self, old: ir.Expr, dtype: str | None) -> ir.Expr:
        """A value in a data type (None: that of the original program)."""
        new, found = self.memo[old], type_of(old)
        if isinstance(old, ir.Tuple) and isinstance(found, ir.TupleType):
            return ir.rebuild(new, [self._in(f, dtype) for f in old.fields])
        if isinstance(found, ir.TupleType) and (old in self.lowered) != (dtype is not None):
            wanted = found if dtype is None else cast(ir.TupleType, self._lowered_type(found))
            return ir.Tuple([self._field(new, i, t) for i, t in enumerate(wanted.fields)])
        if not isinstance(found, ir.TensorType) or not _is_float(found.dtype):
            return new
        have = self.mixed if old in self.lowered else found.dtype
        want = dtype or found.dtype
        return new if have == want else self._cast(old, new, want)

    def _field(self, new: ir.Expr, index: int, wanted: ir.Type) -> ir.Expr:
        """A field of a tuple as it is wanted: lowered, or as the original program has it."""
        field = ir.TupleGetItem(new, index)
        if isinstance(wanted, ir.TupleType):
            return ir.Tuple([self._field(field, i, t) for i, t in enumerate(wanted.fields)])
        if isinstance(wanted, ir.TensorType) and _is_float(wanted.dtype):
            return call("cast", field, dtype=wanted.dtype)
        return field

    def _cast(self, old: ir.Expr, new: ir.Expr, dtype: str) -> ir.Expr:
        if (old, dtype) not in self.casts:
            self.casts[old, dtype] = copied(call("cast", new, dtype=dtype), old)
        return self.casts[old, dtype]


def mixed_precision(func: ir.Function, mixed: str, mode: int, keep_output: bool) -> ir.Function:
    """`func` with its heavy operators in the data type `mixed`."""
    return _Converter(mixed, mode, keep_output).run(func)


def check_arguments(mixed: str, mode: int) -> None:
    """Raise `RelayValueError` for a mode or a data type that there is not."""
    if mode not in (0, 1, 2):
        raise RelayValueError(f"missing_op_mode is 0, 1 or 2, not {mode}", code="precision.bad-mode")
    if not isinstance(mixed, str) or not _is_float(mixed):
        raise RelayValueError(f"`{mixed}` is not a float data type", code="precision.bad-dtype")


def _is_called(func: ir.Function, mod: ir.IRModule) -> bool:
    """Whether other functions rely on the type of this one."""
    own = next((gv for gv, f in mod.functions.items() if f is func), None)
    return own is not None and any(own in global_vars(f) for f in mod.functions.values())


@pass_(level=0, example={"missing_op_mode": 2})
class ToMixedPrecision(FunctionPass):
    """Computes convolutions and matrix products, and what follows them, in half precision.

    Products of float16 or bfloat16 are summed in float32, from weights that become float32 when the program is built:
    a CPU takes as long for them as for the float32 program (mlp, resnet18, mobilenet: within 10 %), and as much memory.
    It pays where inputs and outputs are to be half as large, or to see what a device with such arithmetic will give.
    Programs of float64 are lowered as well, as in TVM.
    """

    mixed_precision_type: Annotated[str, "The type of the numbers that operators take."] = "float16"
    missing_op_mode: Annotated[
        int, "An operator that no table has: 0 is an error, 1 warns, 2 follows its arguments."
    ] = 1

    def __post_init__(self) -> None:
        check_arguments(self.mixed_precision_type, self.missing_op_mode)

    def run(self, func: ir.Function, mod: ir.IRModule, ctx: PassContext) -> ir.Expr:
        keep = bool(ctx.get_config("relay.ToMixedPrecision.keep_orig_output_dtype")) or _is_called(func, mod)
        return mixed_precision(typed(func, mod), self.mixed_precision_type, self.missing_op_mode, keep)
