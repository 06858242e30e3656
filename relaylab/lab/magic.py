"""What a magic is: its arguments as data, and what all magics have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from relaylab.lab import options
from relaylab.lab.options import MagicOption

Method = TypeVar("Method", bound=Callable[..., object])
MODULE = MagicOption("program", help="a module, function, expression, a network's name, or a file")
LEVEL = options.LEVEL.but(default=None, help="which passes run: 0 to 4")
ALL = (
    MagicOption("-o", "--out", metavar="NAME", help="bind the result to NAME"),
    MagicOption("-q", "--quiet", action="store_true", help="show nothing"),
)
"""What all magics can be told."""


class Saves(Protocol):
    """A picture, or what has pictures."""

    def save(self, path: str, *, paper: str = "fit") -> Path: ...


class Magic(NamedTuple):
    """A magic in the list of all: the method, how it is written, what it does, an example."""

    method: str
    usage: str
    summary: str
    example: str


MAGICS = (
    Magic("relay_viz", "%relay_viz PROGRAM", "draw a module, a function, an expression, a network by name",
          "%relay_viz resnet8 --overlay MACs"),
    Magic("relay", "%%relay [NAME]", "the cell is Relay text; bind the module to NAME", "%%relay mod"),
    Magic("relay_passes", "%relay_passes PROGRAM", "step through the passes (also %%relay_passes over text)",
          "%relay_passes mod -p FoldConstant,FuseOps"),
    Magic("relay_diff", "%relay_diff A B", "what differs between two programs, as picture and text",
          "%relay_diff before after --view text"),
    Magic("relay_diff", "%relay_diff M --pipelines A B", "what differs between two pipelines over one program",
          "%relay_diff mod --pipelines default default-FuseOps"),
    Magic("relay_pass", "%%relay_pass [NAME] --on PROGRAM", "write a pass in the cell: registers, runs, shows a diff",
          "%%relay_pass --on mod"),
    Magic("relay_why", "%relay_why PROGRAM [PASS]",
          "which passes would change it now; why a pass does nothing to it", "%relay_why mod FuseOps -s op:nn.dense"),
    Magic("relay_build", "%relay_build PROGRAM [-o lib]", "compile", "%relay_build mod -o lib"),
    Magic("relay_run", "%relay_run PROGRAM|LIB x=expr …", "run on inputs (seeded where none are given)",
          "%relay_run mod x=np.ones((1, 8))"),
    Magic("relay_profile", "%relay_profile PROGRAM|LIB", "time per kernel", "%relay_profile mod --operators"),
    Magic("relay_asm", "%relay_asm LIB [KERNEL]", "a kernel: loops, reasons, LLVM, assembly; --picture: control flow",
          "%relay_asm lib dense --stage llvm"),
    Magic("relay_schedule", "%%relay_schedule PROGRAM KERNEL", "the cell's steps make a kernel's loops; times both",
          "%%relay_schedule mod dense"),
    Magic("relay_bisect", "%relay_bisect PROGRAM", "name the pass and the rewrite that first changed the numbers",
          "%relay_bisect mod --save reproducer.py"),
    Magic("relay_lesson", "%relay_lesson [LESSON]", "the lessons of the course, what is solved, hints and solutions",
          "%relay_lesson --hint share"),
)  # fmt: skip
"""All magics, in the order of `%relay_help`; one that answers two questions stands there twice."""


def takes(*wanted: MagicOption) -> Callable[[Method], Method]:
    """Give a magic its arguments and those of all; the line is never expanded: Relay text is full of % and {}."""

    def decorate(method: Method) -> Method:
        for option in reversed((*wanted, *ALL)):
            method = argument(*option.names, **option.settings)(method)
        return magic_arguments()(no_var_expand(method))

    return decorate
