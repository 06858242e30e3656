"""Arguments of magics and commands, as data: those that both have are declared here, once.

Nothing heavy is imported here: `relaylab --help` is quick.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

from relaylab.support.errors import RelayValueError
from relaylab.support.formats import words
from relaylab.support.language import LANGUAGES
from relaylab.support.options import natural, positive


class MagicOption:
    """An argument: its names, and what `ArgumentParser.add_argument` is told about it."""

    def __init__(self, *names: str, **settings: Any):
        self.names, self.settings = names, settings

    def but(self, **settings: Any) -> MagicOption:
        """The same argument with other settings."""
        return MagicOption(*self.names, **(self.settings | settings))


class Argument(NamedTuple):
    """An argument as a reference lists it."""

    names: str
    help: str


class Entry(NamedTuple):
    """A magic or a command in a reference: how it is written, what it does, an example, and its arguments."""

    name: str
    usage: str
    summary: str
    example: str
    arguments: tuple[Argument, ...]


def listed(parser: argparse.ArgumentParser) -> tuple[Argument, ...]:
    """The arguments of a parser with their help, for a reference; the help about itself is none."""
    named = ((a, ", ".join(a.option_strings) or a.metavar or a.dest) for a in actions(parser) if a.dest != "help")
    return tuple(Argument(f"{name}{_value(a)}", (a.help or "").replace("%%", "%")) for a, name in named)


def actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    """The arguments of a parser; argparse has no other way to ask for them."""
    return parser._actions  # noqa: SLF001


def _value(action: argparse.Action) -> str:
    """What an option wants after its name."""
    if not action.option_strings or action.nargs == 0:
        return ""
    shown = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    return f" {' '.join(shown) if isinstance(shown, tuple) else shown}"


PROGRAM = MagicOption(
    "program",
    metavar="NET|FILE",
    help="a network such as resnet18, a file of Relay text, an ONNX or PyTorch (.pt2) model, or module:factory; "
    "model.onnx:batch=4,image=1x3x64x64, net.relay:x=4x64 and mod:n=8 of a notebook's mod say sizes that a program "
    "leaves open (those of models are 1 otherwise)",
)
LEVEL = MagicOption("-O", "--opt-level", type=int, default=3, choices=range(5), help="which passes run (default 3)")
TARGET = MagicOption("--target", default="llvm", help="llvm, with options such as -mcpu=skylake-avx512")
PASSES = MagicOption("-p", "--passes", metavar="A,B(…)", help="these passes instead of the default ones")
FIRST = PASSES.but(help="run these passes first")
NO_VERIFY = MagicOption(
    "--no-verify", action="store_true", help="go on where a pass leaves a program whose scopes or types are wrong"
)
WORTH = MagicOption(
    "--worth", action="store_true", help="measure each pass: what it takes, and how much longer a run is without it"
)
PIPELINES = MagicOption(
    "--pipelines",
    nargs=2,
    metavar=("A", "B"),
    help="compare two pipelines over one program: A,B(…), default, default-A-B",
)
REWRITES = MagicOption(
    "--rewrites", metavar="PASS", help="the single rewrites of a pass over the program: pictures, names, changed lines"
)
TIME = MagicOption("--time", action="store_true", help="with --pipelines: also measure the time of what they give")
SELECT = MagicOption(
    "-s", "--select", metavar="QUERY", default="", help="with a pass: ask about these nodes, for example op:nn.dense"
)
MOST = MagicOption("-n", "--most", type=positive, default=5, help="with a pass: how many answers (default 5)")
NUMBER = MagicOption("-n", "--number", type=positive, default=20, help="how often")
OPERATORS = MagicOption(
    "--operators",
    metavar="COLUMN",
    nargs="?",
    const="time",
    help="the table of operators, sorted by operator, calls, macs, bytes, time (default)",
)
KERNEL = MagicOption("kernel", nargs="?", help="(part of) the name of a kernel; without it the kernels are listed")
CODE = MagicOption("--code", action="store_true", help="show the loops before and after, LLVM IR and assembly too")
TIMELINE = MagicOption("--timeline", action="store_true", help="the time and the error after each step")
LLVM_PASSES = MagicOption(
    "--llvm-passes",
    action="store_true",
    help="what LLVM's own passes would do to the kernel, each with what it changes",
)
SLIDES = MagicOption("--slides", action="store_true", help="one changing pass at a time, large, for a lecture")
LANGUAGE = MagicOption(
    "--lang", choices=LANGUAGES, help="the language of the explorer's words: English or Chinese (default: the locale's)"
)
SIDEWAYS = MagicOption(
    "--direction", choices=("TB", "LR"), help="top to bottom or left to right (default: as chosen last in the explorer)"
)
EXPLORER = LANGUAGE, SLIDES, SIDEWAYS
SEED = MagicOption("--seed", type=natural, default=0, help="for inputs that are not given (default 0)")
SAVE = MagicOption("--save", metavar="FILE", help=f"also write the picture: {words()}")
OUTPUT = MagicOption("-o", "--output", metavar="FILE", help=f"write the picture: {words()}")
A4 = MagicOption("--a4", action="store_true", help="a PDF on pages of A4: cut between boxes, cut lines name their page")
DRAWING = (
    MagicOption("--params", choices=("rows", "nodes", "hide"), default="rows", help="how parameters are drawn"),
    MagicOption("--direction", choices=("TB", "LR"), default="TB", help="top to bottom or left to right"),
    MagicOption("--engine", choices=("builtin", "dot"), default="builtin", help="who lays it out"),
)
"""How a picture is drawn."""
ARRANGING = (
    MagicOption("--fold", action="store_true", default=None, help="draw repeated blocks as one card"),
    MagicOption(
        "--collapse",
        metavar="KIND|LEVEL",
        help="draw groups as cards: a kind such as primitive, or how many levels stay open",
    ),
    MagicOption("--select", metavar="QUERY", help="mark nodes, for example 'op:nn.conv2d & cost>1e8'"),
    MagicOption("--focus", metavar="ID|QUERY", help="only these nodes and what is near them"),
    MagicOption("--hops", type=int, metavar="N", help="how many edges are near (default 1)"),
    MagicOption("--overlay", metavar="FIGURE", help="colour nodes by MACs, bytes, intensity, … or a figure of yours"),
)
"""What of a program is drawn; passed on to `viz.show` where it is given."""


def on_paper(args: argparse.Namespace) -> dict[str, Any]:
    """What `--a4` means to whatever saves pictures."""
    return {"paper": "a4"} if getattr(args, "a4", False) else {}


def chosen(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `ARRANGING` that were given; RelayValueError for one without the one that it belongs to."""
    found = vars(args)
    if found.get("hops") is not None and found.get("focus") is None:
        raise RelayValueError(
            "--hops says how far around --focus", code="viz.option", help="give --focus too, an id or a query"
        )
    names = [o.names[-1].lstrip("-") for o in ARRANGING]
    return {name: found[name] for name in names if found.get(name) is not None}
