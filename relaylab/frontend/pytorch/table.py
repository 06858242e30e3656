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

_TRAINING = "the model is in training mode: model.eval()"
_RANDOM = "random numbers are not drawn in imported programs: make them an input"
_GRADIENT = "gradients are not imported: export the model alone, relay.transform.gradient makes its gradient"
_MATRICES = "eigenvalues are computed of symmetric matrices (torch.linalg.eigh): give others, or a custom_convert_map"

_HELP = {
    "_batch_norm_with_update_functional": _TRAINING,
    "_native_batch_norm_legit": _TRAINING,
    "_native_batch_norm_legit_functional": _TRAINING,
    "bernoulli": f"{_TRAINING}; what is drawn on purpose has to be an input",
    "native_batch_norm": _TRAINING,
    **dict.fromkeys(
        ("normal", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "multinomial"), _RANDOM
    ),
    **dict.fromkeys(("linalg_eig", "_linalg_eigvals", "linalg_lstsq"), _MATRICES),
    "out": "it writes into an argument: torch.export leaves the form that gives a new tensor",
    "resize_": "a tensor is not resized in its place: reshape, slices and torch.cat make a new one",
}
"""The way on, by the operator's name (`out`: by that of its overload)."""


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


def spellings(name: str) -> tuple[str, ...]:
    """How a user may name an operator: `add.Tensor`, `aten::add`."""
    base = name.removesuffix(".default").partition(".")[0]
    return name, f"aten::{name}", base, f"aten::{base}"


def name_of(target: object) -> str:
    """The name of what a node calls: `add.Tensor`, `operator.getitem`, `math.ceil`."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        module = getattr(target, "__module__", None) or ""
        word = getattr(target, "__name__", str(target))
        if module in ("_operator", "math", "torch") or word == "pow":
            return f"operator.{word}"
        return f"{word}.default"  # what takes graphs
    space, _, name = str(schema.name).partition("::")
    return f"{'' if space == 'aten' else space + '.'}{name}.{schema.overload_name or 'default'}"


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


def way_on(name: str) -> str:
    """What to do about an operator that is never imported; empty if nothing is known."""
    base, _, overload = name.partition(".")
    return _HELP.get(base, "") or (_GRADIENT if base.endswith("_backward") else _HELP.get(overload, ""))


def _help(name: str) -> str:
    known = way_on(name)
    if known:
        return known
    close = did_you_mean(name, TABLE)
    return f"{name}: {close}" if close else f"give one: custom_convert_map={{{name!r}: function}}"
