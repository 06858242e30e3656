"""The public face of the Relay language: what programs write as `from relaylab import relay`. Re-exports only."""

from relaylab import text as _text  # noqa: F401  (nodes learn to print themselves)
from relaylab.analysis import infer_module as _infer
from relaylab.codegen.build import build, optimize
from relaylab.codegen.executors import create_executor
from relaylab.ir import *  # noqa: F403
from relaylab.ir import GlobalVar, Op, const, var  # noqa: F401
from relaylab.ir.expr import printing as _printing
from relaylab.op import *  # noqa: F403
from relaylab.op import annotation, memory  # noqa: F401
from relaylab.relay import (
    adt,
    analysis,
    backend,
    build_module,
    dataflow_pattern,
    expr,
    expr_functor,
    frontend,
    function,
    image,
    loops,
    nn,
    op,
    param_dict,
    prelude,
    qnn,
    random,
    scope_builder,
    testing,
    transform,
    ty,
    type_functor,
    vision,
    vm,
)
from relaylab.relay.build_module import bind, build_config
from relaylab.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from relaylab.relay.loops import while_loop
from relaylab.relay.param_dict import load_param_dict, save_param_dict
from relaylab.relay.prelude import Prelude
from relaylab.relay.ty import *  # noqa: F403
from relaylab.support.source import SourceName, Span
from relaylab.text import fromtext, parse, parse_expr
from relaylab.text import hooks as _hooks

_hooks.infer = _infer


def _picture(program: object) -> dict[str, str]:
    """What a notebook shows of a program; pictures load when the first one is drawn."""
    from relaylab import viz

    return viz.show(program)._repr_mimebundle_()


_printing.rich = _picture
