"""Compiled forms of an open program: one for all sizes, and a bounded cache of those for shapes that were seen.

The form for all sizes (`OpenForm`) serves at once. A form for shapes is compiled when that one, or the virtual machine,
has spent as much time on them as a compilation takes (rent until the rent has paid the price: never more than twice
the time of the best choice made in hindsight). What was used longest ago is dropped.

Of a program that has no form for all sizes, shapes are compiled when they are first seen while there is room, and not
several forms were used once only.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from relaylab.codegen.build import build
from relaylab.codegen.flow.form import FlowForm
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.native_function import flat
from relaylab.codegen.network.network import is_static_graph
from relaylab.codegen.open.batch import BatchForm, form_of
from relaylab.codegen.open.cut import data_decides
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.open.staged import StagedForm
from relaylab.codegen.saved_program import ProgramContext, options_now
from relaylab.codegen.specialize import Shape, deciding_inputs, input_tensors, is_open, reason_of, sizes_of, specialized
from relaylab.interp.values import Value
from relaylab.ir.expr import If
from relaylab.ir.module import IRModule
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import walk
from relaylab.runtime.container import ADT
from relaylab.runtime.device import cpu
from relaylab.runtime.executor import GraphExecutor
from relaylab.runtime.memory import OutOfMemory
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayError
from relaylab.support.words import counted
from relaylab.transform import BindParams, InferType, PassContext

LIMIT = "relay.codegen.specializations"
"""The option of a PassContext: how many forms are kept; 0 for none."""
USUAL_LIMIT = 8
OPEN = "relay.codegen.open"
"""The option of a PassContext: whether a form for all sizes is compiled."""
UNTRIED = 3
"""How many forms may wait for their second use before a further one is made at first sight."""
WRITTEN_OUT = 512
"""How many instructions a run may have whose loops are written out for its shapes: compiling takes long for more."""
LARGEST_VALUE = 64
"""How many elements an input may have whose values are put in: shapes, axes, limits, conditions."""
FIRST_SIZE = 8
"""What sizes are when a form is made and nobody has said any."""
_REMEMBERED = 1024
"""Of how many sets of shapes without a form is known how long they took."""

Key = tuple[object, ...]
AnyForm = OpenForm | BatchForm | StagedForm | FlowForm


@dataclass
class Specialization:
    """One form: for which shapes it is, how long it took to compile, what runs it, how often it was used."""

    shapes: str
    seconds: float
    executor: GraphExecutor | FlowForm
    mod: IRModule
    """What it was compiled from: the program with numbers for sizes."""
    result: Type | None
    uses: int = 1

    def run(self, leaves: Sequence[np.ndarray]) -> Value | None:
        """The result for the arrays of the inputs; None if the virtual machine has to say it."""
        parts = self.executor
        try:
            outputs = _run_form(parts, leaves) if isinstance(parts, FlowForm) else _run_network(parts, leaves)
        except RelayError as error:
            if error.code != "vm.size":
                raise
            outputs = None
        return None if outputs is None else _nested(self.result, iter(outputs))


def _run_form(form: AnyForm, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
    """The results of a form; RelayError `vm.size` for sizes that it does not take."""
    try:
        return form.run(leaves)
    except MemoryError as error:  # numpy's, for results
        raise OutOfMemory(
            f"the results for these sizes need too much memory: {error}",
            code="runtime.out-of-memory",
            help="use smaller shapes or a smaller batch",
        ) from None


def _run_network(executor: GraphExecutor, leaves: Sequence[np.ndarray]) -> list[NDArray]:
    """The outputs of a network for arrays of its shapes and data types."""
    with executor.lock:
        for target, value in zip(executor.instance.inputs, leaves):
            np.copyto(target, value)
        executor.run()
        return [executor.get_output(i) for i in range(len(executor.plan.outputs))]


def _nested(t: Type | None, outputs: Iterator[NDArray]) -> Value:
    return ADT(0, tuple(_nested(f, outputs) for f in t.fields)) if isinstance(t, TupleType) else next(outputs)


@dataclass
class Specializations:
    """The forms of one program. `context` is what it is compiled in, `limit` how many are kept."""

    mod: IRModule
    target: CpuTarget
    context: ProgramContext
    limit: int
    forms: OrderedDict[Key, Specialization] = field(default_factory=OrderedDict)
    spent: OrderedDict[Key, list[float]] = field(default_factory=OrderedDict)
    """The seconds that were spent on shapes without a form, as a list of one: it is added to without looking again."""
    refused: OrderedDict[Key, str] = field(default_factory=OrderedDict)
    """For which inputs there is no form, and why."""
    beyond: OrderedDict[Key, str] = field(default_factory=OrderedDict)
    """Inputs that the form for all sizes does not take, and what it would take: its kernels rely on more than types."""
    never: str = ""
    """Why no form is ever made: something that no sizes can settle."""
    open: AnyForm | None = None
    closed: str = ""
    """Why there is no form for all sizes; "" while it is not known."""

    formless: str = ""
    """Why `form` made none."""

    def __post_init__(self) -> None:
        self.deciding = deciding_inputs(self.mod)
        self.params = self.mod["main"].params
        self.dtypes = [np.dtype(t.dtype) for _, t in input_tensors(self.params)]
        self.lock = threading.RLock()
        self.result = self.mod["main"].ret_type
        fields = self.result.fields if isinstance(self.result, TupleType) else ()
        self.flat = bool(fields) and all(isinstance(t, TensorType) for t in fields)
        self.closed = "" if self.context.config.get(OPEN, True) else "the build was told so"

    @staticmethod
    def of(mod: IRModule, params: Mapping[str, Any], target: CpuTarget) -> Specializations | None:
        """Those of a program in the current PassContext; None if it is closed, or no sizes can make it a graph."""
        limit = int(PassContext.current().get_config(LIMIT, USUAL_LIMIT))
        if limit <= 0:
            return None
        typed = InferType()(BindParams(params)(mod) if params else mod)
        if not is_open(typed):
            return None
        return Specializations(typed, target, options_now(), limit)

    @property
    def open_inputs(self) -> bool:
        """Whether there are sizes that only a call says."""
        return any(is_dynamic(p.checked_type) for p in self.params)

    @property
    def flows(self) -> bool:
        """Whether a form has control flow."""
        return any(isinstance(f, FlowForm) for f in (self.open, *[form.executor for form in self.forms.values()]))

    @property
    def hopeless(self) -> bool:
        """Whether it is known that the program has no form."""
        return bool(self.never) and self.open is None and not self.forms

    def repeated(self, args: Sequence[object]) -> Value | None:
        """The result for arrays as they came before, without looking at more than their shapes and data types.

        None where there is no form for them, or more has to be looked at: tuples, numbers, values that decide shapes.
        """
        if len(args) != len(self.params) or (self.open is None and (self.deciding or not self.forms)):
            return None
        arrays = [a.read() if type(a) is NDArray else a for a in args]
        for a in arrays:
            if type(a) is not np.ndarray:
                return None
        plain = cast("list[np.ndarray]", arrays)
        shapes = tuple([a.shape for a in plain])
        with self.lock:
            form = None if self.deciding else self.forms.get(shapes)
            if form is None or [a.dtype for a in plain] != self.dtypes:
                spent = self.spent.get(shapes)
                return None if self.open is None or self.is_time(shapes, spent) else self.opened(shapes, plain, spent)
            self.forms.move_to_end(shapes)
            form.uses += 1
        return form.run(plain)

    def opened(self, key: Key, leaves: Sequence[np.ndarray], spent: list[float] | None = None) -> Value | None:
        """The result of the form for all sizes; None if it does not take these arrays. `spent` is what was on them."""
        form = self.open
        if form is None:
            return None
        start = time.perf_counter()
        try:
            outputs = _run_form(form, leaves)
        except RelayError as error:
            if error.code != "vm.size":
                raise
            self.beyond[key], outputs = error.help, None
            _bound(self.beyond, _REMEMBERED)
        if outputs is None:
            return None
        if not isinstance(form, FlowForm) or form.ran <= WRITTEN_OUT:
            seconds = time.perf_counter() - start
            if spent is None:
                self.took(key, seconds)
            else:
                spent[0] += seconds
        return ADT(0, outputs) if self.flat else _nested(self.result, iter(outputs))

    def form(self) -> AnyForm | None:
        """The form for all sizes, if there is one; one that no call has made is made, not kept, and its code noted."""
        if self.open is not None:
            return self.open
        types = [t for _, t in input_tensors(self.params)]
        shapes = [tuple(d if isinstance(d, int) else FIRST_SIZE for d in t.shape) for t in types]
        with self.lock:
            tried = copy(self)
            found, self.formless = tried._open_form(shapes), tried.closed
            return found

    def _open_form(self, shapes: Sequence[Shape]) -> AnyForm | None:
        """The form for all sizes, made at the first call that has memory for it; None if there is none."""
        if self.open is None and not self.closed:
            try:
                with self.context:
                    self.open = self._for_all_sizes(shapes)
            except OutOfMemory:
                pass  # for these sizes: others may have a form
            except RelayError as error:
                if error.code.startswith("schedule"):
                    raise
                self.closed = error.message
        return self.open

    def prepared(self) -> bool:
        """Whether a program whose inputs have known sizes has a form, made now, for those that data decides."""
        if self.open_inputs or self.deciding or not data_decides(self.mod):
            return False
        with self.lock:
            return self._open_form([t.concrete_shape for _, t in input_tensors(self.params)]) is not None

    def _for_all_sizes(self, shapes: Sequence[Shape]) -> AnyForm:
        try:
            return (
                FlowForm(self.mod, self.target, shapes)
                if _has_choices(self.mod)
                else form_of(self.mod, self.target, shapes)
            )
        except RelayError as error:
            if isinstance(error, OutOfMemory) or error.code.startswith("schedule") or not data_decides(self.mod):
                raise
            return StagedForm(self.mod, self.target, shapes, FlowForm)

    def find(self, values: Sequence[Value]) -> tuple[Key, Specialization | None]:
        """The form for the shapes of these inputs, made if it is time for it."""
        shapes = tuple([x.shape for x in flat(tuple(values))])
        bound = {k: values[k] for k in self.deciding if values[k].size <= LARGEST_VALUE}
        key = *shapes, *[value.tobytes() for value in bound.values()]
        with self.lock:
            found = self.forms.get(key)
            if found is not None:
                self.forms.move_to_end(key)
                found.uses += 1
                return key, found
            sizes_of(self.params, shapes)  # says which inputs disagree
            self._open_form(shapes)
            if self.never or key in self.refused or not self.is_time(key, self.spent.get(key)):
                return key, None
            made = self.made(shapes, bound)
            if isinstance(made, str):
                self.refused[key] = made
                _bound(self.refused, _REMEMBERED)
                return key, None
            self.forms[key] = made
            self.spent.pop(key, None)
            _bound(self.forms, self.limit)
            return key, made

    def is_time(self, key: Key, spent: list[float] | None) -> bool:
        """Whether a form is made for shapes that have none.

        Values that decide shapes may be others at each call: those of known shapes have to come twice.
        """
        if self.never or (isinstance(self.open, FlowForm) and not self.open.named):
            return False
        seconds = 0.0 if spent is None else spent[0]
        if self.open is not None and key not in self.beyond:
            return seconds >= self.open.seconds and key not in self.refused
        shapes = len(self.dtypes)
        if spent is None and any(k[:shapes] == key[:shapes] for k in self.forms):
            return False
        idle = sum(f.uses == 1 for f in self.forms.values())
        if len(self.forms) < self.limit and idle < UNTRIED:
            return True
        price = sum(f.seconds for f in self.forms.values()) / len(self.forms)
        return seconds >= price

    def took(self, key: Key, seconds: float) -> None:
        """Note what a call took in the virtual machine or the form for all sizes."""
        with self.lock:
            spent = self.spent.setdefault(key, [0.0])
            spent[0] += seconds
            self.spent.move_to_end(key)
            _bound(self.spent, _REMEMBERED)

    def made(self, shapes: Sequence[Shape], bound: Mapping[int, np.ndarray]) -> Specialization | str:
        """The form for inputs of these shapes, with the values `bound` put in; or why there is none."""
        start = time.perf_counter()
        try:
            with self.context:
                mod = specialized(self.mod, shapes, bound)
                executor = self.compiled(mod, shapes)
                if executor is None:
                    self.never = reason_of(mod)
                    return self.never
        except RelayError as error:  # the virtual machine says where, if it cannot run it either
            if error.code.startswith("schedule") and self.open is None:
                raise  # nothing else has the schedule
            return error.message
        text = ", ".join(
            f"{p.name_hint}: {_text(p.type_annotation)}" + (f" = {bound[k].tolist()}" if k in bound else "")
            for k, p in enumerate(mod["main"].params)
        )
        seconds = time.perf_counter() - start
        return Specialization(text, seconds, executor, mod, mod["main"].ret_type)

    def compiled(self, mod: IRModule, shapes: Sequence[Shape]) -> GraphExecutor | FlowForm | None:
        """What runs a program of numbers for sizes; None if it is no graph."""
        if is_static_graph(mod):
            return build(mod, self.target)["default"](cpu(0)).executor
        try:
            return FlowForm(mod, self.target, shapes)
        except RelayError as error:
            if error.code.startswith("schedule"):
                raise
            return None

    def summary(self) -> str:
        """The forms that are kept, in words."""
        if self.never:
            return f"no specialization: {self.never}; the virtual machine runs it"
        if self.open is not None:
            named = ", ".join(map(str, self.open.named))
            of = f"for all sizes ({named})" if named else "with its control flow"
            if isinstance(self.open, StagedForm):
                of = f"for all sizes ({', '.join(filter(None, [named, self.open.found]))})"
            called = self.open.called
            runs = f"{counted(len(called), 'call')} of {counted(len({*called}), 'native kernel')}"
            head = f"one form {of}: {runs}, {self.open.seconds:.2f} s to compile\n"
        else:
            head = f"no form for all sizes: {self.closed}\n" if self.closed else "the first call makes a form\n"
        rows = [f"  {f.shapes}: {f.seconds:.2f} s to compile, {f.uses} calls" for f in self.forms.values()]
        return head + "\n".join([f"{len(rows)} of at most {self.limit} specializations", *rows])


def _has_choices(mod: IRModule) -> bool:
    return any(isinstance(node, If) for node in walk(mod.functions.values()))


def _bound(kept: OrderedDict[Key, Any], most: int) -> None:
    """Forget what was used longest ago."""
    while len(kept) > most:
        kept.popitem(last=False)


def _text(t: Type | None) -> str:
    """The shape of a tensor; of a tuple those of its fields."""
    if isinstance(t, TupleType):
        return f"({', '.join(map(_text, t.fields))})"
    return str(cast(TensorType, t).concrete_shape)
