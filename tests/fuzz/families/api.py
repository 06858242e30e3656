"""Wrong and strange arguments to everything public: what comes out is a result or a RelayError."""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import traceback
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import relaylab
from fuzz.choices import Choices
from fuzz.search import Finding, family
from relaylab import relay
from relaylab.ir import Expr, TupleWrapper, as_expr
from relaylab.op.builder import OperatorBuilder
from relaylab.support.errors import RelayError

MODULES = """relaylab.relay relaylab.relay.adt relaylab.relay.analysis relaylab.relay.backend
relaylab.relay.build_module relaylab.relay.dataflow_pattern relaylab.relay.expr relaylab.relay.image
relaylab.relay.loops relaylab.relay.nn relaylab.relay.op.transform relaylab.relay.param_dict relaylab.relay.prelude
relaylab.relay.qnn.op relaylab.relay.random relaylab.relay.scope_builder relaylab.relay.transform relaylab.relay.ty
relaylab.relay.vision relaylab.relay.vm relaylab.op.dyn relaylab.op.vm
relaylab.contrib.graph_executor relaylab.contrib.target tvm tvm.nd tvm.parser tvm.runtime tvm.target tvm.ir
tvm.transform tvm.te tvm.tir""".split()
LEFT_OUT = {
    "op": "makes an operator that later cases would meet", "register_config": "the same, of options",
    "pass_": "the same, of passes", "register_pass": "the same", "register_legalize": "the same",
    "register_func": "the same", "register_op_attr": "the same", "collecting": "a context of the whole process",
    "facets": "internal", "get_global_func": "reads the same table", "NDArray": "made by tvm.nd.array",
    "Stage": "made by the engine", "History": "made by the engine",
    "Op": "made by `op`", "IntImm": "an int of Python", "Matcher": "internal",
}  # fmt: skip
METHODS = {
    "from_expr from_text update add __getitem__ __contains__ get_global_var get_global_vars get_constructor get_type "
    "functions_items shallow_copy astext with_attr import_from_std update_func __setitem__ get_global_type_var": "mod",
    "with_attr without_attr attr astext": "function",
    "copyfrom copyto asnumpy": "array",
    "set_input run get_output get_input get_num_outputs benchmark load_params": "graph",
    "evaluate": "executor",
    "__call__": "main",
    "export_library run get_params": "library",
    "let ret if_scope get": "scope",
    "get_config override_instruments": "context",
    "match partition rewrite has_attr has_dtype has_shape has_type optional dominates": "wildcard",
}


PACKAGE = str(Path(relaylab.__file__).parent)


@cache
def targets() -> list[tuple[str, Any]]:
    """The public callables by name."""
    relaylab.install_as_tvm()
    found: dict[int, tuple[str, Any]] = {}
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in sorted(getattr(loaded, "__all__", None) or dir(loaded)):
            if name[0] != "_" and name not in LEFT_OUT and callable(value := getattr(loaded, name)):
                foreign = not str(getattr(value, "__module__", "")).startswith("relaylab")
                if not foreign and not (isinstance(value, type) and issubclass(value, (BaseException, enum.Enum))):
                    found.setdefault(id(value), (f"{module}.{name}", value))
    return sorted(found.values(), key=lambda pair: pair[0])


@cache
def objects() -> dict[str, Any]:
    """What has public methods."""
    x = relay.var("x", shape=(2, 3))
    function = relay.Function([x], relay.nn.relu(x))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    library = relay.build(mod, target="llvm")
    from relaylab.runtime.graph_executor import GraphModule

    relaylab.install_as_tvm()
    import tvm  # type: ignore[import-not-found]

    executor = relay.create_executor("vm", mod=mod)
    return {
        "mod": mod, "function": function, "array": tvm.nd.array(np.ones((2, 3), "float32")), "library": library,
        "graph": GraphModule(library["default"](tvm.cpu())), "executor": executor, "main": executor.evaluate(),
        "scope": relay.ScopeBuilder(), "context": relay.transform.PassContext(),
        "wildcard": relay.dataflow_pattern.wildcard(),
    }  # fmt: skip


def _pool() -> list[Callable[[], Any]]:
    x = relay.var("x", shape=(2, 3))
    function = relay.Function([x], relay.nn.relu(x))
    plain = [
        None, 0, 1, -1, 3, True, 2**31, 2**63, 10**30, -(10**30), 10**400, 1.5, -0.0, float("nan"), float("inf"),
        1e300, 1j, "", "x", "float32", "float31", "NCHW", "main", "add", "\0", "\ud800", b"def", Ellipsis, range(3),
        slice(1), bool, list, str, np.dtype("int8"), np.int64(3), np.float64(2.5), (), (1, 2), (1, -1),
        (1.5,), (None,), ("a",), ((0, 1), (1, 0)), (10**30, 1), frozenset([1]), object(), Expr, relay.Any(),
        relay.Op.get("add"), relay.TensorType((2, 3)), relay.TupleType([]), relay.IncompleteType(),
        relay.FuncType([], relay.TensorType(())), relay.TypeVar("t"), relay.GlobalVar("main"), relay.const(1),
        relay.const([1.0, 2.0]), relay.const([[1, 2]], "int64"), x, relay.var("u"), relay.Tuple([x, x]), function,
        relay.split(x, 3, axis=1), relay.nn.relu(x), relay.dataflow_pattern.wildcard(), relay.PatternWildcard(),
    ]  # fmt: skip
    made: list[Callable[[], Any]] = [lambda value=value: value for value in plain]
    return made + [
        list, dict, set, lambda: [1, 2], lambda: [None], lambda: ["a", 1], lambda: [[]], lambda: {3: 1},
        lambda: {"x": np.ones((2, 3), "float32")}, lambda: {"a": None}, lambda: {"\ud800": 1}, lambda: iter([1, 2]),
        lambda: np.array(3), lambda: np.array([1, 2]), lambda: np.array(["a"]), lambda: np.zeros((0, 3)),
        lambda: np.array([object()]), lambda: np.ones((2, 3), "float32"), lambda: np.array(1j), lambda: [x, x],
        lambda: relay.IRModule(), lambda: relay.IRModule.from_expr(function), lambda: {x: relay.const(1.0)},
        lambda: (lambda *args: None), lambda: (lambda *args: args[0]), lambda: relay.transform.FoldConstant(),
        lambda: relaylab.runtime.cpu(), lambda: [x, 1],
    ]  # fmt: skip


@cache
def pool() -> list[Callable[[], Any]]:
    return _pool()


def likely(annotation: str) -> list[Any]:
    """Right arguments for a parameter annotated so."""
    x = relay.var("x", shape=(2, 3))
    function = relay.Function([x], relay.nn.relu(x))
    rows = {
        "IRModule": relay.IRModule.from_expr(function), "Function": function, "Var": x, "Expr": relay.nn.relu(x),
        "Type": relay.TensorType((2, 3)), "Pattern": relay.PatternWildcard(), "str": "x", "bool": True, "int": 1,
        "float": 0.5, "Mapping": {"x": np.ones((2, 3), "float32")}, "Callable": lambda *args: args[0] if args else x,
        "bytes": b"abc", "Iterable": [x], "Sequence": (1, 2), "object": 1,
    }  # fmt: skip
    return [value for key, value in rows.items() if key in annotation] or [x]


def arguments(draw: Choices, target: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments that are mostly right; one, two or all of them from the pool."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    if isinstance(target, OperatorBuilder) and (samples := target.definition.samples()):
        one = draw.choice(samples)
        args = [_given(a) for a in one.args]
        known = target.signature.parameters
        kwargs = {k: v for k, v in one.attrs.items() if k in known and list(known).index(k) >= len(args)}
    else:
        for name, p in _parameters(target):
            if p.kind is p.VAR_KEYWORD or (p.default is not p.empty and draw.chance(0.6)):
                continue
            value = draw.choice(likely(str(p.annotation)))
            if p.kind is p.KEYWORD_ONLY or kwargs or (p.default is not p.empty and draw.chance(0.3)):
                kwargs[name] = value
            else:
                args.append(value)
    places: list[Any] = [*range(len(args)), *kwargs]
    names = [n for n, p in _parameters(target) if p.kind is not p.VAR_POSITIONAL]
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        value = draw.choice(pool())()
        if places and not draw.chance(0.4):
            at = draw.choice(places)
            (args if isinstance(at, int) else kwargs)[at] = value
        elif names:
            kwargs[draw.choice(names)] = value
        else:
            args.append(value)
    return args, kwargs


def _parameters(target: Any) -> list[tuple[str, inspect.Parameter]]:
    try:
        found = inspect.signature(target).parameters.items()
    except (ValueError, TypeError):
        return []
    return [(n, p) for n, p in found if n != "self"]


def _given(sample: Any) -> Any:
    if isinstance(sample, tuple):
        return [_given(s) for s in sample]
    return relay.const(sample) if isinstance(sample, (np.ndarray, np.generic)) else relay.var("a", sample)


def used(result: Any) -> str:
    """What a program does next: an expression is typed and printed; an iterator or a context is left alone."""
    if isinstance(result, TupleWrapper):
        result = as_expr(result)
    if isinstance(result, Expr):
        try:
            str(result)
            relay.transform.InferType()(relay.IRModule.from_expr(result)).astext()
        except RelayError as error:
            return f"then {error.code}"
        return "an expression"
    repr(result)
    return "a result"


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Nothing is printed, and what is written is written elsewhere."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


@family("api", "wrong and strange arguments to public functions and methods: only RelayErrors", limit=20.0)
class Api:
    def case(self, draw: Choices) -> tuple[str, Any, list[Any], dict[str, Any]]:
        if draw.chance(0.15):
            words, key = draw.choice(sorted(METHODS.items()))
            word = draw.choice(words.split())
            method = getattr(objects()[key], word, None)
            if method is None:
                return f"{key}.{word}", None, [], {}
            return f"{key}.{word}", method, *arguments(draw, method)
        name, target = draw.choice(targets())
        return name, target, *arguments(draw, target)

    def run(self, case: tuple[str, Any, list[Any], dict[str, Any]]) -> str:
        name, target, args, kwargs = case
        if target is None:
            return "no such method"
        try:
            with aside():
                return used(target(*args, **kwargs))
        except RelayError as error:
            if not (error.code and error.message):
                raise Finding("an error without code or message", f"{name}: {error!r}") from error
            raise
        except Exception as error:
            inside = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(PACKAGE)]
            if isinstance(error, TypeError) and (not inside or list in args or list in kwargs.values()):
                return "Python's own: number or names of arguments"  # no gate, or a class as callback
            error.add_note(f"{name}(*{_words(args)}, **{_words(kwargs)})")
            raise


def _words(value: Any) -> str:
    try:
        return repr(value)[:300]
    except Exception as error:
        return f"<{type(error).__name__} in repr>"
