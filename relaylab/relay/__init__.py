"""The public face of the Relay language: what programs write as `from relaylab import relay`. Re-exports only.

What compiles and runs programs loads when it is first used.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from relaylab import text as _text  # noqa: F401  (nodes learn to print themselves)
from relaylab.analysis import infer_module as _infer
from relaylab.ir import *  # noqa: F403
from relaylab.ir import GlobalVar, Op, const, var  # noqa: F401
from relaylab.ir.expr import printing as _printing
from relaylab.op import *  # noqa: F403
from relaylab.op import annotation, memory  # noqa: F401
from relaylab.relay import (
    adt,
    analysis,
    dataflow_pattern,
    expr,
    expr_functor,
    frontend,
    function,
    image,
    loops,
    nn,
    op,
    prelude,
    qnn,
    random,
    scope_builder,
    transform,
    ty,
    type_functor,
    vision,
)
from relaylab.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from relaylab.relay.loops import while_loop
from relaylab.relay.prelude import Prelude
from relaylab.relay.ty import *  # noqa: F403
from relaylab.support.missing import missing as _missing
from relaylab.support.source import SourceName, Span
from relaylab.text import fromtext, parse, parse_expr
from relaylab.text import hooks as _hooks

_hooks.infer = _infer

if _TYPE_CHECKING:
    from relaylab.relay import backend, build_module, param_dict, testing, vm
    from relaylab.relay.build_module import bind, build, build_config, create_executor, optimize
    from relaylab.relay.param_dict import load_param_dict, save_param_dict

# name: the module that has it, itself if it has the name
_LAZY = {
    **{name: name for name in ("backend", "build_module", "param_dict", "testing", "vm")},
    **dict.fromkeys(("bind", "build", "build_config", "create_executor", "optimize"), "build_module"),
    **dict.fromkeys(("load_param_dict", "save_param_dict"), "param_dict"),
}


def __getattr__(name: str) -> _Any:
    if name not in _LAZY:
        _missing(__name__, {*__dir__(), *(f"nn.{n}" for n in vars(nn))})(name)
    module = _importlib.import_module(f"relaylab.relay.{_LAZY[name]}")
    value = module if _LAZY[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


def _picture(program: object) -> dict[str, str]:
    """What a notebook shows of a program; pictures load when the first one is drawn."""
    from relaylab import viz

    return viz.show(program)._repr_mimebundle_()


_printing.rich = _picture
