"""The public face of the Relay language: what programs write as `from relaylab import relay`. Re-exports only.

Its modules, such as `relay.transform`, are in `compat/table.py`. What compiles and runs programs loads when it is
first used.

Choices: docs/choices.md, The house.
"""

import importlib as _importlib
from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from relaylab import text as _text
from relaylab.analysis import infer_module as _infer
from relaylab.analysis.infer import untold as _untold
from relaylab.compat.face import PublicNames as _Names
from relaylab.compat.face import explained as _explained
from relaylab.compat.older import old_name as _old_name
from relaylab.compat.table import SAME as _SAME
from relaylab.ir import *  # noqa: F403
from relaylab.ir import AnyDim as Any
from relaylab.ir import GlobalVar, Op, const, var
from relaylab.ir.display import rich_display as _rich_display
from relaylab.ir.functor import ExprFunctor, ExprMutator, ExprVisitor
from relaylab.ir.scope_builder import while_loop
from relaylab.op import *  # noqa: F403
from relaylab.op.vm import annotation, memory
from relaylab.support.checked import checked as _checked
from relaylab.support.source import SourceName, Span
from relaylab.text import fromtext, parse, parse_expr
from relaylab.text import hooks as _hooks
from relaylab.text.prelude import Prelude

_hooks.typed.register(_infer)
_hooks.untold.register(_untold)
_names = _Names("relay")
globals().update({name: _checked(value) for name, value in globals().items() if isinstance(value, _FunctionType)})

for _name in _names.modules:  # names only: what is behind them loads when it is first used
    if f"relay.{_name}" in _SAME:  # a module with contents of its own
        continue
    _importlib.import_module(f"{__name__}.{_name}")

if _TYPE_CHECKING:
    from relaylab import analysis, frontend, op, transform
    from relaylab import zoo as testing
    from relaylab.codegen import build as build_module
    from relaylab.codegen import options as backend
    from relaylab.codegen import vm
    from relaylab.codegen.build import build, optimize
    from relaylab.codegen.executors import create_executor
    from relaylab.ir import adt, expr, scope_builder
    from relaylab.ir import expr as function
    from relaylab.ir import functor as expr_functor
    from relaylab.ir import functor as type_functor
    from relaylab.ir import scope_builder as loops
    from relaylab.ir import types as ty
    from relaylab.op import image, nn, qnn, random, vision
    from relaylab.runtime import params as param_dict
    from relaylab.runtime.params import load_param_dict, save_param_dict
    from relaylab.text import prelude
    from relaylab.transform import pattern as dataflow_pattern
    from relaylab.transform.bind import bind
    from relaylab.transform.engine.context import build_config


def __getattr__(name: str) -> object:
    if name not in _names.named and name not in _names.modules:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if (former := _old_name(f"relay.{name}")) is not None:
            return former
        raise _explained("relay", name, {*__dir__(), *(f"nn.{n}" for n in dir(nn))})
    value = globals()[name] = _names.find(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_names.named, *_names.modules})


def _picture(program: _Any) -> dict[str, str]:
    """What a notebook shows of a program; pictures load when the first one is drawn."""
    from relaylab import viz

    return viz.show(program)._repr_mimebundle_()


_rich_display.register(_picture)
