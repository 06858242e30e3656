"""A program in which data decides sizes as compiled parts, each for all sizes, and what is found between them.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from relaylab.analysis.infer.sizes import sized
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.native_function import NativeFunction, flat
from relaylab.codegen.network.open_sizes import InputSizes, evaluated
from relaylab.codegen.open.batch import form_of
from relaylab.codegen.open.choices import program_of, sizes_said, turning
from relaylab.codegen.open.cut import Part, SizeFinding, StagedProgram, cut, leaves_of
from relaylab.codegen.open.types import dims_of
from relaylab.codegen.specialize import Shape, input_tensors, tensors_of
from relaylab.codegen.vm_straight import evaluation
from relaylab.interp.machine import REFUSALS, Machine
from relaylab.interp.values import Value
from relaylab.ir.dims import AnyDim, SizeVar, SymbolicDim
from relaylab.ir.equal import StructuralTable
from relaylab.ir.expr import Constant, Expr, Function, If, Var
from relaylab.ir.free import sizes_in
from relaylab.ir.module import IRModule
from relaylab.ir.op import op_name
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import substitute, walk
from relaylab.runtime.memory import OutOfMemory, aligned_copy
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError, RelayTypeError
from relaylab.support.progress import part
from relaylab.transform import InferType, Sequential, default_passes

GUESS = 16
"""For how many found elements memory is planned first; it is planned again for more."""

MULTIPLY = frozenset({"nn.dense", "nn.matmul", "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d"})

Run = Callable[[Sequence[np.ndarray]], "Sequence[np.ndarray] | None"]


class Form(Protocol):
    """What is compiled for all sizes."""

    @property
    def called(self) -> list[str]:
        """The kernels that it calls."""
        ...

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs."""
        ...


Maker = Callable[[IRModule, CpuTarget, Sequence[Shape]], Form]


@dataclass(eq=False)
class StagedStep:
    """What runs, the registers of its arguments, and those of its results."""

    run: Run
    ins: list[int]
    outs: slice


class StagedForm:
    """One compiled form for all sizes, those that data decides too. Calls from several threads take turns."""

    def __init__(
        self,
        mod: IRModule,
        target: CpuTarget,
        first: Sequence[Shape],
        controlled: Maker,
        whole: StagedForm | None = None,
    ):
        """Compile the typed `mod` in the current PassContext; `first` are the shapes that memory is planned for.
        `controlled` compiles a choice or loop; `whole` is the form of the program of which it is a branch.

        Raises RelayError for a program of which a part has no form for all sizes.
        """
        start = time.perf_counter()
        self.target, self.mod, self.controlled = target, mod, controlled
        self.chosen: StructuralTable[Run] = StructuralTable() if whole is None else whole.chosen
        plan = cut(mod)
        self.wanted = InputSizes([t for _, t in input_tensors(plan.params)])
        self.named = self.wanted.named
        self.known = self.wanted.known(first)
        self.registers: list[np.ndarray | None] = []
        self.at: dict[Expr, range] = {}
        for p in plan.params:
            self._register(p)
        self.lock = threading.RLock()
        self.names: dict[Run, str] = {}
        self.borrowed: set[Run] = set()
        self.called: list[str] = []
        """The kernels of all parts."""
        self.multiplies = _multiplies(plan) if whole is None else whole.multiplies
        """Whether the program has products: what is compiled of it is then worth more than what is evaluated."""
        self.steps = [self._step(step) for step in plan.steps]
        self.lines = [self._line(step, made.run) for step, made in zip(plan.steps, self.steps)]
        self.results = [k for r in plan.results for k in self._places(r)]
        own = [made for step, made in zip(plan.steps, self.steps) if isinstance(step, Part)]
        self.outs = {k for made in own if made.run not in self.borrowed for k in range(made.outs.start, made.outs.stop)}
        """The registers of what open parts give: arrays of their own. What known parts give the next run overwrites."""
        names = Counter(map(_name, (step for step in plan.steps if isinstance(step, SizeFinding))))
        found = ", ".join(f"{name} x{n}" if n > 1 else f"{name}" for name, n in names.items())
        self.found = f"found by {found}" if found else ""
        """Which operators' values say sizes, in words."""
        self.seconds = time.perf_counter() - start

    # ---- compiling

    def _register(self, var: Var) -> range:
        """Registers for the tensors of a value."""
        first = len(self.registers)
        self.registers += [None] * len(tensors_of(var.checked_type) or ())
        self.at[var] = range(first, len(self.registers))
        return self.at[var]

    def _places(self, value: Expr) -> Sequence[int]:
        """The registers of a value between parts."""
        found: list[int] = []
        for leaf in leaves_of(value):
            if leaf not in self.at:
                numbers = cast(Constant, leaf).data.numpy()
                self.at[leaf] = range(len(self.registers), len(self.registers) + 1)
                self.registers.append(aligned_copy(numbers, numbers.dtype))
            found += self.at[leaf]
        return found

    def _step(self, step: Part | SizeFinding) -> StagedStep:
        if isinstance(step, SizeFinding):
            ins = [k for a in step.takes for k in self._places(a)]
            outs = self._register(step.var)
            run = self._chosen(step, step.call.op) if isinstance(step.call.op, Function) else _finding(step)
            return StagedStep(run, ins, slice(outs.start, outs.stop))
        ins = [k for p in step.function.params for k in self._places(p)]
        run = self._compiled(InferType()(IRModule.from_expr(step.function)))
        places = [self._register(var) for var in step.gives]
        return StagedStep(run, ins, slice(places[0].start, places[-1].stop))

    def _compiled(self, mod: IRModule) -> Run:
        """A part as machine code."""
        types = [t for _, t in input_tensors(mod["main"].params)]
        if not any(map(is_dynamic, types)):
            native = NativeFunction(Sequential(default_passes())(mod)["main"], self.target)
            run: Run = native.in_place
            self.names[run] = native.name
            self.borrowed.add(run)
            self.called += native.library.kernels()
            return run
        form = form_of(mod, self.target, list(map(self._first, types)), caches=False)
        self.called += form.called
        run = lambda leaves: _read(form, leaves)
        self.names[run] = f"{type(form).__name__} for {', '.join(map(str, form.named))}"
        return run

    def _chosen(self, step: SizeFinding, function: Function) -> Run:
        """A choice or loop. One that several branches contain is compiled once, whatever its sizes are called there."""
        sizes = sizes_in([d for a in step.takes for d in dims_of(a.checked_type)])
        names = {} if sizes.keys() & sizes_said(function.body) else {n: SizeVar(f"n{k}") for k, n in enumerate(sizes)}
        params = [Var(f"p{k}", sized(a.checked_type, names)) for k, a in enumerate(step.takes)]
        body = substitute(function.body, dict(zip(function.params, params)))
        return self.chosen.at(Function(params, body), lambda _: self._control(params, body))

    def _control(self, params: Sequence[Var], body: Expr) -> Run:
        """A choice or loop over these: native as a whole if that is possible, else the form of each branch."""
        shapes = [self._first(t) for p in params for t in tensors_of(p.type_annotation) or ()]
        made = lambda e: program_of(self.mod, e, params, {})
        try:
            form = self.controlled(made(body), self.target, shapes)
            self.called += form.called
            return lambda leaves: _read(form, leaves)
        except RelayError as error:
            if isinstance(error, OutOfMemory) or error.code.startswith("schedule"):
                raise
        if not isinstance(body, If):
            turns = self._turning(params, body)
            if turns is not None:
                return turns
            if self.multiplies:
                return _evaluating(made(body))  # a loop whose turns change sizes
            raise RelayTypeError("a loop whose turns change sizes, and little beside it", code="codegen.open-operator")
        true, false = (self._branch(params, e) for e in (body.true_branch, body.false_branch))
        at = [p for p, _ in input_tensors(params)].index(cast(Var, body.cond))
        return lambda leaves: _read(true if leaves[at] else false, leaves)

    def _turning(self, params: Sequence[Var], loop: Expr) -> Run | None:
        """A loop whose turns change sizes, a turn at a time; None if a turn has no form."""
        parts = turning(loop)
        if parts is None:
            return None
        own = [*params, *parts.variables]
        try:
            first = self._branch(params, parts.first)
            goes_on, turn, result = (self._branch(own, e) for e in (parts.goes_on, parts.turn, parts.result))
        except RelayError as error:
            if isinstance(error, OutOfMemory) or error.code.startswith("schedule"):
                raise
            return None

        def run(leaves: Sequence[np.ndarray]) -> Sequence[np.ndarray] | None:
            state = _read(first, leaves)
            while state is not None:
                alive = _read(goes_on, [*leaves, *state])
                if alive is None or not alive[0]:
                    return None if alive is None else _read(result, [*leaves, *state])
                state = _read(turn, [*leaves, *state])
            return None

        return run

    def _branch(self, params: Sequence[Var], body: Expr) -> StagedForm:
        """A part of a choice or loop as a form of its own."""
        shapes = [self._first(t) for p in params for t in tensors_of(p.type_annotation) or ()]
        form = StagedForm(program_of(self.mod, body, params, {}), self.target, shapes, self.controlled, self)
        self.called += form.called
        return form

    def _first(self, t: TensorType) -> Shape:
        """The shape that memory is planned for first."""
        sizes = dict.fromkeys(sizes_in(t.shape), GUESS) | self.known
        number = lambda d: GUESS if type(d) is AnyDim else int(cast(int, d))
        return tuple([evaluated(d, sizes) if isinstance(d, SymbolicDim) else number(d) for d in t.shape])

    def _line(self, step: Part | SizeFinding, run: Run) -> str:
        """A step as a line of text."""
        typed = lambda v: f"{v.name_hint}: {v.checked_type}"
        if isinstance(step, Part):
            given, takes = ", ".join(map(typed, step.gives)), [p.name_hint for p in step.function.params]
            return f"{given} = {self.names[run]}({', '.join(takes)})"
        takes = [leaf.name_hint if isinstance(leaf, Var) else "constant" for a in step.takes for leaf in leaves_of(a)]
        return f"{typed(step.var)} = {_name(step)}({', '.join(takes)})"

    def listing(self) -> str:
        """The steps as text: parts, what is found between them, and which sizes that says."""
        return "\n".join(["main, in parts between which sizes are found:", *(f"  {line}" for line in self.lines)])

    # ---- running

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types, or an operator refuses."""
        if self.wanted.fit(leaves) is None:
            return None
        registers = self.registers.copy()
        registers[: len(leaves)] = leaves
        with self.lock, np.errstate(all="ignore"):
            for number, step in enumerate(self.steps, 1):
                part("step", number, len(self.steps))
                found = step.run([cast(np.ndarray, registers[k]) for k in step.ins])
                if found is None:
                    return None
                registers[step.outs] = found
            return self._given(registers)

    def _given(self, registers: Sequence[np.ndarray | None]) -> list[NDArray]:
        """The results, each with memory of its own."""
        given: dict[int, NDArray] = {}
        results: list[NDArray] = []
        for k in self.results:
            x = cast(np.ndarray, registers[k])
            results.append(NDArray(x if k in self.outs and k not in given else aligned_copy(x, x.dtype)))
            given[k] = results[-1]
        return results


def _multiplies(plan: StagedProgram) -> bool:
    """Whether there are products in the parts of a program or in its branches; a loop's own are evaluated with it."""
    parts: list[Expr] = []
    for step in plan.steps:
        body = step.function.body if isinstance(step, Part) else getattr(step.call.op, "body", None)
        if isinstance(step, Part) or isinstance(body, If):
            parts.append(cast(Expr, body))
    return any(op_name(n) in MULTIPLY for n in walk(parts))


def _name(step: SizeFinding) -> str:
    """What finds something, in words."""
    if isinstance(step.call.op, Function):
        return "if" if isinstance(step.call.op.body, If) else "loop"
    return str(op_name(step.call))


def _read(form: Form, leaves: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    found = form.run(leaves)
    return None if found is None else [x.read() for x in found]


def _finding(step: SizeFinding) -> Run:
    """What is found, as the operator's semantics say it; None where they refuse: the virtual machine says where."""
    if step.padded:
        return _with_rows_that_are_meant
    reference, types = evaluation(step.call), [a.checked_type for a in step.takes]
    is_plain = not any(isinstance(t, TupleType) for t in types)

    def run(leaves: Sequence[np.ndarray]) -> Sequence[np.ndarray] | None:
        rest = iter(leaves)
        args = leaves if is_plain else [_nested(t, rest) for t in types]
        try:
            return flat(reference(*args))
        except REFUSALS:
            return None

    return run


def _with_rows_that_are_meant(leaves: Sequence[np.ndarray]) -> Sequence[np.ndarray] | None:
    *fields, numbers = leaves
    return None if min(numbers) < 0 else [field[:n] for field, n in zip(fields, numbers)]


def _evaluating(mod: IRModule) -> Run:
    """What the evaluator gives for `main`; None where it refuses: the virtual machine says where."""
    machine, types = Machine(mod), [p.checked_type for p in mod["main"].params]
    entry = machine.global_closure(mod.get_global_var("main"))

    def run(leaves: Sequence[np.ndarray]) -> Sequence[np.ndarray] | None:
        rest = iter(leaves)
        try:
            return flat(machine.call(entry, tuple([_nested(t, rest) for t in types])))
        except RelayError:
            return None

    return run


def _nested(t: Type, leaves: Iterator[np.ndarray]) -> Value:
    return tuple([_nested(f, leaves) for f in t.fields]) if isinstance(t, TupleType) else next(leaves)
