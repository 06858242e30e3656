"""Which function converts which ATen operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylab.support.errors import RelayAttributeError, RelayValueError
from relaylab.support.table import did_you_mean

Convert = Callable[..., Any]
"""convert(g, node, *arguments): tensors are expressions, sizes are ints or (if they are not known) expressions."""

TABLE: dict[str, Convert] = {}
"""The overload's name, such as `add.Tensor`: its converter. Python's own functions are `operator.add`."""

IGNORED = frozenset(
    f"{name}.default"
    for name in ("_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size")
) | {"_assert_async.msg"}
"""Checks that torch wrote into the program; they compute nothing."""

_HELP = {
    "_local_scalar_dense": "the way depends on a value (.item(), int(tensor), if); torch.where chooses values",
    "as_strided": "say the view by slices, reshape or unfold",
    "bernoulli": "the model is in training mode: model.eval()",
    "cond": "control flow is not imported; torch.where chooses values",
    "native_batch_norm": "the model is in training mode: model.eval()",
    "_native_batch_norm_legit_functional": "the model is in training mode: model.eval()",
    "rand": "random numbers are not drawn in imported programs: make them an input",
    "randn": "random numbers are not drawn in imported programs: make them an input",
    "while_loop": "control flow is not imported; write the loop out",
}


def converts(*names: str) -> Callable[[Convert], Convert]:
    """Register the decorated function for ATen operators; without an overload's name the default one is meant."""

    def enter(run: Convert) -> Convert:
        for name in names:
            key = name if "." in name else f"{name}.default"
            if key in TABLE:
                raise RelayValueError(f"the ATen operator `{key}` has a converter", code="import.duplicate")
            TABLE[key] = run
        return run

    return enter


def operators() -> list[str]:
    """The names of all ATen operators that can be imported."""
    return sorted(name for name in TABLE if not name.startswith("operator."))


def unsupported(missing: dict[str, str]) -> RelayAttributeError:
    """One error that names all operators without converter, each with the place of its first use."""
    return RelayAttributeError(
        f"no converter for the PyTorch operator{'s' * (len(missing) > 1)} {', '.join(missing)}",
        code="import.unsupported",
        place="\n".join(f"  --> {place}" for place in missing.values()),
        help="; ".join(dict.fromkeys(h for name in missing if (h := _help(name)))),
    )


def _help(name: str) -> str:
    known = _HELP.get(name.partition(".")[0])
    if known:
        return known
    close = did_you_mean(name, TABLE)
    return f"{name}: {close}" if close else f"give one: custom_convert_map={{{name!r}: function}}"
