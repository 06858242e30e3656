"""The evaluator: call by need within each activation, arguments from left to right, lets in order.

Control is an explicit stack of steps, so neither a long program nor a deep recursion in it uses
Python's own. Each activation of a function has one frame; a node's value is kept in the frame of
the function to whose scope it belongs (`Plan.level`), which makes sharing mean "computed once".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from relaylab import ir
from relaylab.interp.plan import Plan, used_once
from relaylab.interp.sizes import NO_SIZES, Sizes, named_sizes, with_known_sizes
from relaylab.interp.values import Array, Closure, ConstructorValue, RefValue, Value, fields_of, fits
from relaylab.ir.dims import SizeVar
from relaylab.ir.excerpt import place_of
from relaylab.op.base import Known, Operator
from relaylab.op.rounding import evaluated, type_of
from relaylab.support import progress
from relaylab.support.errors import RelayError


class EvaluationError(RelayError):
    """A program that cannot be evaluated on these values; names the expression and the operator."""


class Frame:
    """One activation of a function: the values computed in it, and the frame of the function around it."""

    __slots__ = ("plan", "level", "outer", "values", "left", "sizes")

    def __init__(self, plan: Plan, outer: Frame | None = None):
        self.plan, self.outer = plan, outer
        self.level: int = 0 if outer is None else outer.level + 1
        self.values: dict[ir.Expr, Value] = {}
        self.left: dict[ir.Expr, int] = {}
        self.sizes: Sizes = NO_SIZES

    def home(self, node: ir.Expr) -> Frame:
        """The frame in which the value of `node` is kept."""
        frame, level = self, self.plan.level[node]
        while frame.level > level and frame.outer is not None:
            frame = frame.outer
        return frame

    def value(self, node: ir.Expr) -> Value:
        """The value of a node that was computed."""
        return self.home(node).values[node]

    def release(self, node: ir.Expr) -> None:
        """Drop the values of which `node` was the last user."""
        for part in used_once(node):
            total = self.plan.uses.get(part)
            if total is not None:
                left = self.left[part] = self.left.get(part, total) - 1
                if left == 0:
                    self.values.pop(part, None)


Step = tuple[Callable[[Any, Frame], None], Any, Frame]


class Machine:
    """Evaluates expressions over one module."""

    def __init__(self, mod: ir.IRModule):
        self.mod = mod
        self.plans: dict[ir.Function, Closure] = {}
        self.stack: list[Step] = []
        self.named: dict[ir.Function, list[tuple[int, int, SizeVar]]] = {}
        self.outermost: Plan | None = None  # of the function whose calls are counted, if somebody listens
        self.calls, self.done = 0, 0

    def run(self, expr: ir.Expr, binds: dict[ir.Var, Value] | None = None) -> Value:
        """The value of an expression whose free variables have the values `binds`."""
        frame = Frame(Plan(expr))
        for var, value in (binds or {}).items():
            frame.values[var] = value
        return self._loop(expr, frame)

    def call(self, callee: Value, args: tuple[Value, ...]) -> Value:
        """The value of a function applied to values."""
        params = [ir.Var(f"arg{k}") for k in range(len(args))]
        callee_var = ir.Var("callee")
        return self.run(ir.Call(callee_var, params), {callee_var: callee, **dict(zip(params, args))})

    def _loop(self, expr: ir.Expr, frame: Frame) -> Value:
        outer, self.stack = self.stack, [(self.evaluate, expr, frame)]
        try:
            with np.errstate(all="ignore"):
                while self.stack:
                    step, what, at = self.stack.pop()
                    step(what, at)
        finally:
            self.stack = outer
        return frame.value(expr)

    def evaluate(self, node: ir.Expr, frame: Frame) -> None:
        """Compute `node` in the frame where it belongs, unless that was done."""
        home = frame.home(node)
        if node not in home.values:
            _START.get(type(node), _start_parts)(self, node, home)

    def global_closure(self, gv: ir.GlobalVar) -> Closure:
        """The value of a function of the module."""
        func = self.mod[gv]
        if func not in self.plans:
            self.plans[func] = Closure(func, Frame(self.plan_of(func, gv.name_hint)))
        return self.plans[func]

    def constant(self, node: ir.Constant) -> Value:
        """The value of a constant."""
        return node.data.numpy()

    def plan_of(self, func: ir.Function, name: str) -> Plan:
        """The facts about a function of the module."""
        return Plan(func, name)

    def finish(self, node: ir.Expr, frame: Frame) -> None:
        """Compute `node`, its parts being computed."""
        if frame.plan is self.outermost and isinstance(node, ir.Call):
            self.done += 1
            progress.part("operator", self.done, self.calls)
        value = _FINISH[type(node)](self, node, frame)
        if value is not _PENDING:
            frame.values[node] = value
            frame.release(node)

    def enter(self, call: ir.Call, frame: Frame, closure: Closure, args: list[Value]) -> None:
        """Start the activation of a function for a call of it."""
        func = closure.function
        if len(func.params) != len(args):
            raise self.error(f"a function of {len(func.params)} parameters is given {len(args)} arguments", call, frame)
        inner = Frame(closure.frame.plan, closure.frame)
        if self.outermost is None and progress.listened():
            self.outermost = inner.plan
            self.calls = sum(isinstance(node, ir.Call) for node in ir.post_order(func.body))
        inner.values.update(zip(func.params, args))
        inner.sizes = self.sizes(func, args, {**frame.sizes, **closure.frame.sizes})
        self.stack.append((self.leave, (call, func.body, frame), inner))
        self.stack.append((self.evaluate, func.body, inner))

    def sizes(self, func: ir.Function, args: list[Value], known: Sizes) -> Sizes:
        """The sizes that arguments give to the names in the shapes of parameters, besides those that are known."""
        if func not in self.named:
            self.named[func] = named_sizes(func)
        found: dict[SizeVar, int] = {}
        for k, axis, size in self.named[func]:
            given: tuple[int, ...] = getattr(args[k], "shape", ())
            if axis < len(given) and found.setdefault(size, given[axis]) != given[axis]:
                message = f"the size `{size}` is {found[size]} and {given[axis]} in the arguments of one function"
                raise EvaluationError(message, code="interp.failed")
        return {**known, **found} if found else known or NO_SIZES

    def leave(self, what: tuple[ir.Call, ir.Expr, Frame], inner: Frame) -> None:
        """Hand the result of an activation to its call."""
        call, body, frame = what
        frame.values[call] = inner.value(body)
        frame.release(call)

    def copy(self, what: tuple[ir.Expr, ir.Expr], frame: Frame) -> None:
        """The value of a part is that of the whole: a body, a branch, a clause."""
        whole, part = what
        frame.values[whole] = frame.value(part)

    def forward(self, whole: ir.Expr, part: ir.Expr, frame: Frame) -> None:
        """Compute `part` for `whole`."""
        self.stack.append((self.copy, (whole, part), frame))
        self.stack.append((self.evaluate, part, frame))

    def error(self, message: str, node: ir.Expr, frame: Frame, help: str = "") -> EvaluationError:
        """An error at `node`."""
        place = place_of(node, self.mod.source_map, frame.plan.name, frame.plan.root)
        return EvaluationError(message, code="interp.failed", place=place, help=help)


_PENDING = object()

# ---- how nodes start: what must be computed first


def _start_parts(m: Machine, node: ir.Expr, frame: Frame) -> None:
    m.stack.append((m.finish, node, frame))
    m.stack.extend((m.evaluate, part, frame) for part in reversed(ir.children(node)))


def _start_call(m: Machine, node: ir.Call, frame: Frame) -> None:
    m.stack.append((m.finish, node, frame))
    m.stack.extend((m.evaluate, part, frame) for part in reversed(node.args))
    m.stack.append((m.evaluate, node.op, frame))


def _start_var(m: Machine, node: ir.Var, frame: Frame) -> None:
    raise m.error(f"%{node.name_hint} has no value", node, frame, "give the free variables of the expression values")


def _start_let(m: Machine, node: ir.Let, frame: Frame) -> None:
    m.forward(node, node.body, frame)
    m.stack.append((_bind_let, node, frame))
    m.stack.append((m.evaluate, node.value, frame))


def _bind_let(let: ir.Let, frame: Frame) -> None:
    frame.home(let.var).values[let.var] = frame.value(let.value)
    frame.release(let)


def _start_if(m: Machine, node: ir.If, frame: Frame) -> None:
    def choose(node: ir.If, frame: Frame) -> None:
        m.forward(node, node.true_branch if bool(np.all(frame.value(node.cond))) else node.false_branch, frame)

    m.stack.append((choose, node, frame))
    m.stack.append((m.evaluate, node.cond, frame))


def _start_match(m: Machine, node: ir.Match, frame: Frame) -> None:
    def choose(node: ir.Match, frame: Frame) -> None:
        data = frame.value(node.data)
        for clause in node.clauses:
            binds: dict[ir.Var, Value] = {}
            if _matches(clause.lhs, data, binds):
                for var, value in binds.items():
                    frame.home(var).values[var] = value
                return m.forward(node, clause.rhs, frame)
        raise m.error(f"no clause matches {data!r}"[:300], node, frame)

    m.stack.append((choose, node, frame))
    m.stack.append((m.evaluate, node.data, frame))


def _matches(pattern: ir.Pattern, value: Value, binds: dict[ir.Var, Value]) -> bool:
    stack = [(pattern, value)]
    while stack:
        p, v = stack.pop()
        if isinstance(p, ir.PatternVar):
            binds[p.var] = v
        elif isinstance(p, ir.PatternConstructor):
            if not _made_by(v, p.constructor):
                return False
            stack.extend(zip(p.patterns, v.fields))
        elif isinstance(p, ir.PatternTuple):
            stack.extend(zip(p.patterns, v))
    return True


def _made_by(value: ConstructorValue, ctor: ir.Constructor) -> bool:
    return value.constructor is ctor or value.tag == ctor.tag != -1


def _start_leaf(value: Callable[[Machine, Any, Frame], Value]) -> Callable[[Machine, Any, Frame], None]:
    def start(m: Machine, node: ir.Expr, frame: Frame) -> None:
        frame.values[node] = value(m, node, frame)

    return start


_START: dict[type[ir.Expr], Callable[[Machine, Any, Frame], None]] = {
    ir.Var: _start_var,
    ir.Constant: _start_leaf(lambda m, node, f: m.constant(node)),
    ir.GlobalVar: _start_leaf(lambda m, node, f: m.global_closure(node)),
    ir.Op: _start_leaf(lambda m, node, f: node),
    ir.Constructor: _start_leaf(lambda m, node, f: node),
    ir.Function: _start_leaf(lambda m, node, f: Closure(node, f)),
    ir.Call: _start_call,
    ir.Let: _start_let,
    ir.If: _start_if,
    ir.Match: _start_match,
}

# ---- how nodes finish: the value from the values of the parts


def _finish_call(m: Machine, call: ir.Call, frame: Frame) -> Value:
    callee = frame.value(call.op)
    args = [frame.value(a) for a in call.args]
    if isinstance(callee, ir.Op):
        return _lowered(m, call, args, frame) if callee.name in LOWERED else _apply(m, call, callee, args, frame)
    if isinstance(callee, ir.Constructor):
        return ConstructorValue(callee.tag, args, callee)
    if isinstance(callee, Closure):
        m.enter(call, frame, callee, args)
        return _PENDING
    if callable(callee):
        return callee(*args)
    raise m.error(f"{type(callee).__name__} is not a function", call, frame)


LOWERED = ("call_lowered", "vm.invoke_tvm_op", "vm.shape_func")
"""Operators that call a function, their first argument, with the fields of a tuple, their second."""


def _lowered(m: Machine, call: ir.Call, args: list[Value], frame: Frame) -> Value:
    """Start the call of a lowered function; its results are the value, or are written into the given tensors."""
    callee, given, *outs = args
    fields = fields_of(given)
    if not isinstance(callee, Closure) or fields is None:
        raise m.error(f"{_kind(callee)} cannot be called with {_kind(given)}", call, frame)
    shapes = cast(ir.Op, frame.value(call.op)).name == "vm.shape_func"
    if outs:
        m.stack.append((_store, (m, call, outs[0], shapes), frame))
    m.enter(call, frame, callee, _of_shapes(m, call, callee, fields, frame) if shapes else list(fields))
    return _PENDING


def _of_shapes(m: Machine, call: ir.Call, callee: Closure, given: Sequence[Value], frame: Frame) -> list[Value]:
    """Arguments for a function whose result's shape is wanted: zeros of the given shapes, or the given tensors."""
    whole = cast("Sequence[object]", getattr(call.attrs, "is_input", None) or ())
    types = [cast(ir.TensorType, p.inferred or p.type_annotation) for p in callee.function.params]
    if not len(whole) == len(given) == len(types):
        raise m.error(f"`is_input` and `ins` need one entry for each of {len(types)} parameters", call, frame)
    return [v if is_whole else np.zeros(v.tolist(), t.dtype) for t, v, is_whole in zip(types, given, whole)]


def _store(what: tuple[Machine, ir.Call, Value, bool], frame: Frame) -> None:
    """Write what a lowered function gave, or the shapes of it, into the tensors that it was given for that."""
    m, call, outs, shapes = what
    result = frame.values[call]
    found: list[Array] = list(cast("tuple[Array, ...]", result)) if isinstance(result, tuple) else [result]
    if shapes:
        found = [np.array(a.shape, out.dtype) for a, out in zip(found, outs)]
    if len(found) != len(outs) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, outs)):
        raise m.error(f"a lowered call writes {_kind(tuple(found))} into {_kind(tuple(outs))}", call, frame)
    for array, out in zip(found, outs):
        np.copyto(out, array)
    frame.values[call] = ()


def _apply(m: Machine, call: ir.Call, op: ir.Op, args: list[Value], frame: Frame) -> Value:
    given = lambda: f"({', '.join(map(_kind, args))})"
    record: Any = None
    try:
        record = op.facets(call.attrs if op is call.op else None)
        record = with_known_sizes(record, frame.sizes) if frame.sizes else record
        result = cast("Value", evaluated(record, args, call.inferred))
    except REFUSALS as error:
        why = error.message if isinstance(error, RelayError) else f"{type(error).__name__}: {error}"
        why = refusal(record, args) or why
        raise m.error(f"{op.name} failed on {given()}: {why}", call, frame) from error
    value = arrays_of(result)
    if is_empty(value) and (why := refusal(record, args)):
        raise m.error(f"{op.name} failed on {given()}: {why}", call, frame)
    if call.inferred is not None and not agrees(value, call.inferred):
        raise m.error(f"{op.name} gave {_kind(value)}, its type is {call.inferred}", call, frame)
    return value


REFUSALS = (RelayError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError)
"""What the semantics of an operator raises for values that it does not take."""


def refusal(record: Operator | None, args: Sequence[Value]) -> str:
    """Why an operator's type relation does not take arrays of these shapes; "" if it does, or does not say.

    Sizes that were open when types were inferred are not refused before: a window that does not fit leaves nothing.
    """
    try:
        if record is not None:
            record.relation(Known(), *map(type_of, args))
    except RelayError as error:
        return error.message
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        pass
    return ""


def is_empty(value: Value) -> bool:
    """Whether a value is an array without elements."""
    return isinstance(value, np.ndarray) and not value.size


def arrays_of(result: Value) -> Value:
    """What an operator's reference gave, its numbers as arrays."""
    if isinstance(result, (tuple, list)):
        return tuple(map(arrays_of, cast("Sequence[Value]", result)))
    return np.asarray(result) if isinstance(result, (np.generic, int, float)) else result


def agrees(value: Value, t: ir.Type) -> bool:
    """Whether a value is of a type."""
    if isinstance(t, ir.TupleType):
        parts = fields_of(value)
        return parts is not None and len(parts) == len(t.fields) and all(map(agrees, parts, t.fields))
    return not isinstance(t, ir.TensorType) or fits(value, t)


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return str(ir.TensorType(array.shape, array.dtype)) if array.dtype != object else "an object array"
    parts = fields_of(value)
    return f"({', '.join(map(_kind, parts))})" if parts is not None else value.__class__.__name__


def _finish_projection(m: Machine, node: ir.TupleGetItem, frame: Frame) -> Value:
    value = frame.value(node.tuple_value)
    parts = fields_of(value)
    if parts is None or node.index >= len(parts):
        raise m.error(f"there is no field {node.index} in {_kind(value)}", node, frame)
    return parts[node.index]


def _finish_write(m: Machine, node: ir.RefWrite, frame: Frame) -> Value:
    frame.value(node.ref).value = frame.value(node.value)
    return ()


def _finish_tuple(m: Machine, node: ir.Tuple, frame: Frame) -> Value:
    return tuple(frame.value(x) for x in node.fields)


def _finish_create(m: Machine, node: ir.RefCreate, frame: Frame) -> Value:
    return RefValue(frame.value(node.value))


def _finish_read(m: Machine, node: ir.RefRead, frame: Frame) -> Value:
    return frame.value(node.ref).value


_FINISH: dict[type[ir.Expr], Callable[[Machine, Any, Frame], Value]] = {
    ir.Call: _finish_call,
    ir.Tuple: _finish_tuple,
    ir.TupleGetItem: _finish_projection,
    ir.RefCreate: _finish_create,
    ir.RefRead: _finish_read,
    ir.RefWrite: _finish_write,
}
