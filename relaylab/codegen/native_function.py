"""Primitive functions as machine code for the virtual machine: which ones can be, and how they are called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.codegen.build import compile_main
from relaylab.codegen.isa.target import CpuTarget
from relaylab.interp.values import Value
from relaylab.ir.expr import Call, Expr, Function, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, facets
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import rewrite, walk
from relaylab.runtime.device import cpu
from relaylab.runtime.memory import ALIGNMENT, SMALL, address, fresh
from relaylab.transform import InferType


class NativeFunction:
    """A Primitive function, or a network of them, as machine code: takes and gives values of evaluation."""

    def __init__(self, func: Function, target: CpuTarget):
        self.takes_tuples = any(isinstance(p.inferred or p.type_annotation, TupleType) for p in func.params)
        main = func
        if func.is_primitive:
            func = without_tuples(func)
            params = [Var(p.name_hint, p.checked_type) for p in func.params]
            main = Function(params, Call(func, params))
        lib = compile_main(InferType()(IRModule.from_expr(main)), target, "vm")
        self.library = lib
        self.executor = lib["default"](cpu(0)).executor
        self.single = isinstance(func.body.inferred, TensorType)
        plan = self.executor.plan
        self.copies, self.bases = bool(plan.copies), [plan.input_base(k) for k in range(len(plan.inputs))]
        self.small = [
            (k, plan.output_base(k), info.shape, np.dtype(info.dtype), info.nbytes)
            for k, info in enumerate(plan.outputs)
            if info.nbytes <= SMALL
        ]

    @property
    def name(self) -> str:
        """What listings and reports call it: its kernel, or how many it has."""
        names = list(self.library.kernels())
        return f"network_of_{len(names)}_kernels" if len(names) > 1 else names[0] if names else "kernel"

    def __call__(self, *args: Value) -> Value:
        executor = self.executor
        with executor.lock:
            self.read([leaf for a in args for leaf in flat(a)] if self.takes_tuples else args)
            self.renew()
            executor.run()
            outputs = executor.instance.outputs
            leaves = [x if x.nbytes <= SMALL else executor.get_output(k).view() for k, x in enumerate(outputs)]
        return leaves[0] if self.single else tuple(leaves)

    def in_place(self, leaves: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results for arrays of the inputs, where the next call writes its own: for callers that take turns."""
        self.read(leaves)
        self.executor.run()
        return self.executor.instance.outputs

    def renew(self) -> None:
        """Let the code write small results into memory of their own."""
        instance = self.executor.instance
        for k, base, shape, dtype, nbytes in self.small:
            instance.outputs[k], place = fresh(shape, dtype, nbytes)
            instance.point(base, place)

    def read(self, leaves: Sequence[np.ndarray]) -> None:
        """Let the code read the arrays where they are, if they are aligned; else copies of them."""
        instance = self.executor.instance
        for base, own, value in zip(self.bases, instance.inputs, leaves):
            place = address(value)
            if self.copies or place % ALIGNMENT or not value.flags.c_contiguous:
                np.copyto(own, value)
                place = address(own)
            instance.point(base, place)


def flat(value: Value) -> list[np.ndarray]:
    """The arrays of a value made of arrays and tuples, left to right."""
    out, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def without_tuples(func: Function) -> Function:
    """A Primitive function that takes the tensors of which its arguments are made, one by one."""
    if not any(isinstance(p.checked_type, TupleType) for p in func.params):
        return func
    leaves: list[Var] = []

    def nest(t: Type, name: str) -> Expr:
        if isinstance(t, TupleType):
            return Tuple([nest(f, f"{name}_{k}") for k, f in enumerate(t.fields)])
        leaves.append(Var(name, t))
        return leaves[-1]

    def post(new: Expr, old: Expr) -> Expr:
        if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
            return new.tuple_value.fields[new.index]
        return new

    memo: dict[Expr, Expr] = {p: nest(p.checked_type, p.name_hint) for p in func.params}
    body = rewrite(func.body, post, memo=memo)
    return InferType()(IRModule.from_expr(Function(leaves, body, attrs=func.attrs)))["main"]


def with_native_code(func: Function) -> bool:
    """Whether a Primitive function is compiled: it has a loop form, known shapes and a flat result."""
    if not func.is_primitive:
        return False
    func = without_tuples(func)
    result = func.ret_type or func.body.inferred
    results = result.fields if isinstance(result, TupleType) else (result,)
    types = [*(p.inferred or p.type_annotation for p in func.params), *results]
    return all(isinstance(t, TensorType) and not is_dynamic(t) for t in types) and all(
        facets(node).native and not (node.inferred and is_dynamic(node.inferred))  # a size may come and go within
        for node in walk((func,))
        if isinstance(node, Call) and isinstance(node.op, Op)
    )
