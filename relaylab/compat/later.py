"""Functions of TVM that have another name or place in relaylab, or came with its releases after 0.10."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from relaylab.ir import Expr, IRModule, Type

if TYPE_CHECKING:
    from onnx import ModelProto

Made = TypeVar("Made")

__all__ = ["astext", "memoize", "pretty_print", "to_onnx"]


def astext(
    obj: Expr | IRModule | Type, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None
) -> str:
    """The text of a program with its version line, which `relay.parse` reads: `obj.astext(…)`."""
    return obj.astext(show_meta_data, annotate)


def pretty_print(obj: Expr | IRModule | Type) -> str:
    """The text of a program as it is shown, without the data of its constants: `str(obj)`."""
    return str(obj)


def to_onnx(
    relay_ir: IRModule | Expr,
    params: Mapping[str, object] | None,
    name: str,
    opset_version: int = 18,
    path: str | None = None,
) -> ModelProto:
    """`relay.frontend.to_onnx` as TVM's writer of ONNX is called. The opset is 18 whatever is asked for."""
    from relaylab.frontend import to_onnx as written

    mod = relay_ir if isinstance(relay_ir, IRModule) else IRModule.from_expr(relay_ir)
    model = written(mod, params, name=name)
    if path is not None:
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
    return model


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """A decorator for reference data of tests: the function is called once for each set of arguments.

    Nothing is written to files, so `key` and `save_at_exit` have no effect.
    """

    def decorate(function: Callable[..., Made]) -> Callable[..., Made]:
        known: dict[str, Made] = {}

        def remembered(*args: object, **kwargs: object) -> Made:
            call = repr((args, kwargs))
            if call not in known:
                known[call] = function(*args, **kwargs)
            return known[call]

        return remembered

    return decorate
