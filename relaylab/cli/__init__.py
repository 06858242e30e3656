"""The command `relaylab`: a thin mirror of the public functions. A file here is one or a few words after it."""

from __future__ import annotations

import argparse
import io
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from relaylab import __version__
from relaylab.cli import (
    bisect,
    compare,
    diff,
    draw,
    explain,
    explore,
    figure,
    kernels,
    notebooks,
    passes,
    run,
    schedule,
    site,
    sweep,
    tune,
    why,
)
from relaylab.lab.options import Entry, actions, listed
from relaylab.support.errors import RelayError
from relaylab.support.table import did_you_mean

COMMANDS = (
    explore.COMMAND,
    draw.COMMAND,
    figure.COMMAND,
    passes.COMMAND,
    diff.COMMAND,
    compare.COMMAND,
    bisect.COMMAND,
    why.COMMAND,
    kernels.PROFILE,
    kernels.ASM,
    schedule.COMMAND,
    tune.COMMAND,
    sweep.COMMAND,
    run.RUN,
    explain.COMMAND,
    site.COMMAND,
    notebooks.COMMAND,
    run.RUN_TVM,
)
"""All commands, in the order of the help."""
_python_warning: Callable[..., str] = warnings.formatwarning
EXAMPLES = "\n".join(["examples:", *(f"  {written:<63} {words}" for written, words in (c.example for c in COMMANDS))])


class _Parser(argparse.ArgumentParser):
    """A parser that says what a mistyped word may have been."""

    def error(self, message: str) -> NoReturn:
        found = re.match(r".*invalid choice: '?(.*?)'? \(choose from (.*)\)", message)
        known = re.findall(r"[\w.-]+", found[2]) if found else []
        near = did_you_mean(found[1], known) if found else ""
        if found and not near and _is_network(found[1]):
            near = f"did you mean `relaylab explore {found[1]}`?"
        if option := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            near = did_you_mean(option[1], [o for a in actions(self) for o in a.option_strings if o.startswith("--")])
        super().error(f"{message}\n  help: {near}" if near else message)


def _is_network(name: str) -> bool:
    from relaylab.zoo.catalog import NETWORKS

    return name in NETWORKS


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    top = _Parser(
        prog="relaylab",
        description="Explore tensor compilers by hand.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"relaylab {__version__}")
    _commands(top)
    return top


def _commands(top: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    """A parser for each command, in their order."""
    words = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    found = []
    for command in COMMANDS:
        sub = words.add_parser(command.name, help=command.summary, description=command.summary)
        sub.set_defaults(run=command.run, parser=sub)
        for option in command.options:
            sub.add_argument(*option.names, **option.settings)
        found.append(sub)
    return found


def reference() -> list[Entry]:
    """Every command with its usage, example and arguments, for a page of reference."""
    made = _commands(_Parser(prog="relaylab"))
    return [
        Entry(c.name, _usage(sub), c.summary, c.example[0], listed(sub)) for c, sub in zip(COMMANDS, made, strict=True)
    ]


def _usage(sub: argparse.ArgumentParser) -> str:
    return " ".join(sub.format_usage().removeprefix("usage: ").split())


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; errors of users are one message on stderr and exit status 1."""
    if not (sys.argv[1:] if argv is None else argv):
        parser().print_help()
        sys.exit(0)
    args, rest = parser().parse_known_args(argv)
    if rest and args.command != "lab":  # what it does not know is JupyterLab's
        listed = any(word.endswith(",") for word in argv or sys.argv)
        near = "\n  help: write lists without blanks: A,B" if listed else ""
        if args.command == "run" and (given := re.match(r"(\w+)=", rest[0])):
            near = f"\n  help: inputs are files: --input {given[1]}=FILE.npy"
        args.parser.error(f"unrecognized arguments: {' '.join(rest)}{near}")
    args.rest = [*getattr(args, "rest", ()), *rest]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without `…` shows `?`
    format_before, warnings.formatwarning = warnings.formatwarning, _written_warning
    status, told = 1, None
    try:
        status = args.run(args)
    except RelayError as error:
        told = error
    except MemoryError as error:
        told = RelayError(f"the program does not fit into memory: {error}", code="cli.memory")
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 0
    except OSError as error:
        told = RelayError(f"the system says: {error}", code="cli.system")
    finally:
        warnings.formatwarning = format_before
    if told is not None:
        print(told, file=sys.stderr)
    sys.exit(status)


def _written_warning(message: Warning | str, category: type[Warning], *place: object, **more: object) -> str:
    """A warning of relaylab as its errors are written; of others as Python writes it, with the line of the program."""
    if category.__module__.partition(".")[0] == "relaylab":
        return f"warning: {message}\n"
    return _python_warning(message, category, *place, **more)
