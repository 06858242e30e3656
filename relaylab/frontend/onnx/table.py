"""Which function converts which ONNX operator, by domain, name and the version it holds from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from relaylab.support.errors import RelayAttributeError, RelayValueError
from relaylab.support.table import did_you_mean

CONTRIB = "com.microsoft"
CLASSICAL = "ai.onnx.ml"
DOMAINS = {"": "ai.onnx", CONTRIB: CONTRIB, CLASSICAL: CLASSICAL}
"""The domains that are known; the default one has two spellings."""

Convert = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class OnnxConverter:
    """How one operator is said in Relay: `run(g, node, *inputs)`, for versions from `since` on.

    `unused` are attributes that change nothing here; any other one that `run` does not read is refused.
    """

    run: Convert
    since: int
    unused: frozenset[str] = field(default=frozenset())

    def inputs(self) -> list[inspect.Parameter]:
        """The parameters that stand for inputs; those annotated with `None` may be left out."""
        return _parameters(self.run)[2:]

    def arity(self) -> tuple[int, float]:
        """How many inputs it takes at least and at most."""
        params = self.inputs()
        if any(p.kind is p.VAR_POSITIONAL for p in params):
            return sum(p.kind is not p.VAR_POSITIONAL and p.default is p.empty for p in params), float("inf")
        return sum(p.default is p.empty for p in params), len(params)

    def lacks(self, given: Sequence[object]) -> bool:
        """Whether an input is left out (None) that must be given."""
        return any(
            v is None and p.default is p.empty and "None" not in str(p.annotation) for p, v in zip(self.inputs(), given)
        )

    def takes(self, k: int, kind: str) -> bool:
        """Whether its k-th input may be no tensor but a `kind`: a list (a sequence) or Texts."""
        params = self.inputs()
        return kind in str(params[min(k, len(params) - 1)].annotation)


@cache  # asked three times for each node
def _parameters(run: Convert) -> list[inspect.Parameter]:
    return list(inspect.signature(run).parameters.values())


TABLE: dict[tuple[str, str], list[OnnxConverter]] = {}
"""(domain, operator): its converters, the newest first."""


def register(name: str, run: Convert, since: int = 1, domain: str = "", unused: Iterable[str] = ()) -> None:
    """Enter a converter; a name and version that is taken is an error."""
    known = TABLE.setdefault((domain, name), [])
    known[:] = [c for c in known if c.since != since or _place(c.run) != _place(run)]  # a cell that is run again
    if any(c.since == since for c in known):
        raise RelayValueError(f"the ONNX operator `{name}` of version {since} has a converter", code="import.duplicate")
    known.append(OnnxConverter(run, since, frozenset(unused)))
    known.sort(key=lambda c: -c.since)


def _place(run: Convert) -> tuple[str, str]:
    return run.__module__, run.__qualname__


def converts(*names: str, since: int = 1, domain: str = "", unused: Iterable[str] = ()) -> Callable[[Convert], Convert]:
    """Register the decorated function for ONNX operators of these names, from opset `since` on."""

    def enter(run: Convert) -> Convert:
        for name in names:
            register(name, run, since, domain, unused)
        return run

    return enter


def operators() -> list[str]:
    """The names of all ONNX operators that have a converter, with their domain if it is not the default one.

    Those that onnx defines by others can be imported too.
    """
    return sorted(f"{domain}.{name}" if domain else name for domain, name in TABLE)


def is_known(domain: str, name: str, version: int) -> bool:
    """Whether there is a converter."""
    return any(c.since <= version for c in TABLE.get((domain, name), ()))


def lookup(domain: str, name: str, version: int) -> OnnxConverter:
    """The newest converter that holds for a version."""
    found = next((c for c in TABLE.get((domain, name), ()) if c.since <= version), None)
    if found is None:
        raise unsupported([(domain, name, version, "")])
    return found


def unsupported(missing: list[tuple[str, str, int, str]]) -> RelayAttributeError:
    """One error that names all operators of a model without converter, each with the place of its first use."""
    shown = [f"{DOMAINS.get(d, d)}.{n}" if d else n for d, n, _, _ in missing]
    places = "\n".join(f"  --> {p}" for *_, p in missing if p)
    return RelayAttributeError(
        f"no converter for the ONNX operator{'s' * (len(missing) > 1)} {', '.join(shown)}",
        code="import.unsupported",
        place=places,
        help="; ".join(dict.fromkeys(h for m in missing if (h := _help(*m[:3])))),
    )


def _help(domain: str, name: str, version: int) -> str:
    if domain == f"{CONTRIB}.nchwc":
        return "onnxruntime writes it for one kind of CPU: save the model at the level ORT_ENABLE_EXTENDED"
    if (domain, name) in TABLE:
        first = TABLE[domain, name][-1].since
        return f"{name} is known from opset {first} on, the model says {version}"
    elsewhere = [DOMAINS[d] for d, n in TABLE if n == name]
    if elsewhere:
        return f"{name} is known in the domain {elsewhere[0]}"
    close = did_you_mean(name, {n for _, n in TABLE})
    return f"{name}: {close}" if close else ""
