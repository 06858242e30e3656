"""Binding parameters: weights become constants of the program.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from relaylab.ir import Constant, Expr, Function, FunctionWithFields, IRModule, TensorType, Var, free_vars, substitute
from relaylab.ir.trail import derived
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of, warn
from relaylab.support.table import did_you_mean
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import as_function

_LOOKED_AT = 16  # weights of another network are all unknown: comparing each name with each is slow


def bind(expr: Expr, binds: Mapping[Var, Expr]) -> Expr:
    """`expr` with free variables replaced; a function also loses the parameters that are bound.

    Variables that the new expressions bring in become parameters of the function, at the end.
    """
    binds = dict(binds)
    if not isinstance(expr, Function) or not binds:
        return substitute(expr, binds)
    kept = [p for p in expr.params if p not in binds]
    body = substitute(expr.body, binds)
    new = dict.fromkeys(v for value in binds.values() for v in free_vars(value) if v not in kept)

    return derived(FunctionWithFields(expr, params=[*kept, *new], body=body), expr)


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """`func` with the parameters of these names made constants; names that it does not have are ignored, with a
    warning where one that it has looks like it.

    `params` holds arrays (numpy or anything with `.numpy()`). A shape or a data type other than the parameter's
    annotation (but for the width of floats), or a name that two parameters share, raises `RelayValueError`.
    """
    if not isinstance(params, Mapping):
        raise RelayTypeError(
            f"parameters are a dict of arrays by name, not {kind_of(params)}",
            code="bind.params",
            help='write params={"weight": array}',
        )
    by_name: dict[str, list[Var]] = {}
    for p in func.params:
        by_name.setdefault(p.name_hint, []).append(p)
    binds: dict[Var, Expr] = {}
    for name, value in params.items():
        found = by_name.get(name, [])
        if len(found) > 1:
            raise RelayValueError(
                f"two parameters are named `{name}`", code="bind.ambiguous", help="rename one of them"
            )
        if found:
            binds[found[0]] = derived(_constant(name, found[0], value), found[0])
    _warn_of_slips([n for n in params if n not in by_name], [n for n in by_name if n not in params])
    return as_function(bind(func, binds))


def _warn_of_slips(unknown: list[str], left: list[str]) -> None:
    """Names of nothing are usual, of weights that are bound already or that no pass has left; slips are not."""
    for name in unknown[:_LOOKED_AT] if left else ():
        meant = did_you_mean(str(name), left)
        if meant:
            warn(f"the function has no parameter `{name}`: {meant}")


def _constant(name: str, var: Var, value: object) -> Constant:
    try:
        lent = getattr(value, "lend", None) or getattr(value, "numpy", lambda: value)  # an NDArray need not be copied
        made = Constant(value.data if isinstance(value, Constant) else np.asarray(lent()), span=var.span)
    except (TypeError, ValueError) as error:
        why = error.message if isinstance(error, RelayError) else str(error)
        raise RelayTypeError(
            f"the parameter `{name}` cannot be made of this {type(value).__name__}: {why}",
            code="bind.no-array",
            help="give a numpy array or an NDArray",
        ) from None
    wanted = var.type_annotation
    if isinstance(wanted, TensorType) and not wanted.is_dynamic and not _fits(made.type, wanted):
        raise RelayValueError(
            f"the parameter `{name}` is a {wanted}; the array given is a {made.type}",
            code="bind.wrong-type",
            help="give the parameters that belong to this program",
        )
    return made


def _fits(given: TensorType, wanted: TensorType) -> bool:
    """Floats of another width are taken: whether the program can use them is for type inference to say."""
    floats = "float" in given.dtype and "float" in wanted.dtype
    return given.shape == wanted.shape and (given.dtype == wanted.dtype or floats)


@pass_(level=0, idempotent=True, example={"params": {}})
class BindParams(ModulePass):
    """Makes the parameters of `main` that `params` has arrays for constants of the program."""

    params: Annotated[Mapping[str, object], "Arrays by the names of parameters."]
    function: Annotated[str, "Whose parameters."] = "main"

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        gv = mod.get_global_var(self.function)
        return mod.with_functions({**mod.functions, gv: bind_params_by_name(mod.functions[gv], self.params)})
