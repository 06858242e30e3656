"""What cells and lines of a notebook say: programs as Relay text, passes by name or of the user's own."""

from __future__ import annotations

import argparse
import re

from IPython.core.error import UsageError

from relaylab import relay, study, transform
from relaylab.ir import IRModule
from relaylab.lab.arguments import Namespace, is_own_pass, one_line, program_of, value_of
from relaylab.lab.options import on_paper
from relaylab.study.compare import Passes
from relaylab.study.pipeline import is_default
from relaylab.support.errors import RelayError, kind_of
from relaylab.transform import Pass, create


def passes_of(text: str | None, namespace: Namespace) -> list[Pass | str] | None:
    """`A,B(option=1),my_pass` as passes: registered names, calls of factories, or pass objects of the notebook;
    `default` is left as it is.
    """
    if not text:
        return None
    return [part if is_default(part) else whole_pass(part, namespace) for part in study.split(text)]


def whole_pass(part: str, namespace: Namespace) -> Pass:
    """What `pass_of` gives, which must be a pass."""
    value = pass_of(part, namespace)
    if not isinstance(value, Pass):
        raise UsageError(f"`{part}` is {kind_of(value)}, expected a pass")
    return value


def pass_of(part: str, namespace: Namespace) -> Pass:
    """A pass of the notebook, a registered one by name, or the call of a factory."""
    if part in namespace:
        known = namespace[part]
        return known() if isinstance(known, type) else known
    if "(" not in part:
        try:
            return create(part)
        except RelayError as error:
            raise one_line(error) from None
    try:
        return value_of(part, {**vars(transform), **namespace})
    except TypeError as error:  # an argument that the factory does not have
        raise UsageError(f"{part}: {error}") from None


def tell(args: argparse.Namespace, text: str) -> None:
    """Print what a magic has to say, unless it was asked to be quiet."""
    if not args.quiet:
        print(text)


def module_of(text: str, name: str, check: bool = True) -> IRModule:
    """The module that a cell of Relay text describes; the version line may be left out."""
    if "#[version" not in text:
        text = f'#[version = "0.0.5"]\n{text}'
    return relay.parse(text, name) if check else relay.fromtext(text, name)


def find_pass(namespace: Namespace, name: str | None, before: set[str], cell: str) -> Pass:
    """The pass that a cell defined: the named one, or the last pass (or set of rules) that it binds."""
    if name is not None:
        return whole_pass(name, namespace)
    words = set(re.findall(r"\w+", cell))
    found = [n for n, v in namespace.items() if isinstance(v, Pass) or is_own_pass(v)]
    new = [n for n in found if n not in before] or [n for n in found if n in words]
    if not new:
        raise UsageError(
            "the cell defines no pass; decorate a function with @relay.transform.function_pass(opt_level=1)"
        )
    value = namespace[new[-1]]
    return value() if isinstance(value, type) else value


def nearest_misses(written: Pass, mod: IRModule) -> str:
    """For a pass whose rules did not fire: those that came nearest, and what failed; empty for a pass without rules."""
    try:
        return f"   0 × any rule; the nearest misses of {study.why_not(written, mod, most=3)}"
    except RelayError:
        return ""


def pipeline_of(text: str, namespace: Namespace) -> Passes:
    """What `study.compare` takes: passes of the notebook or one of them, else the text itself."""
    known = namespace.get(text, None if text == "default" else text)
    plain = known is None or isinstance(known, (str, list, tuple, study.Pipeline))
    return known if plain else [whole_pass(text, namespace)]


def compared(args: argparse.Namespace, names: Namespace, opt_level: int) -> object:
    """Two pipelines over one program, their figures printed."""
    first, second = (pipeline_of(text, names) for text in args.pipelines)
    try:
        comparison = study.compare(program_of(args.before, names), first, second, opt_level)
    except RelayError as error:
        raise one_line(error) from None
    tell(args, "\n".join(map(str, [comparison, *(comparison.measured() if args.time else ())])))
    if args.save:
        print(f"wrote {comparison.difference().save(args.save, **on_paper(args))}")
    return comparison.difference(style="both") if args.view == "graph" else comparison
