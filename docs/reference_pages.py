"""The reference, made from the declarations: operators, passes, magics, commands, figures, error codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from relaylab import cli, study, viz
from relaylab.ir import OPERATORS, Op
from relaylab.lab import magics
from relaylab.lab.options import Entry
from relaylab.loop.schedule import PRIMITIVES
from relaylab.op.builder import OperatorBuilder
from relaylab.op.reference import page
from relaylab.transform import PASSES, PassEntry

FAMILIES = {
    "tensor": "Tensors of any meaning",
    "nn": "Neural networks",
    "qnn": "Quantized networks",
    "image": "Images",
    "vision": "Vision",
    "dyn": "Shapes that are values",
    "random": "Random numbers",
    "vm": "Annotations and the virtual machine's own",
}
FIGURES = tuple(viz.FIGURES.values())  # those of the package: pages and tests declare others later


def cell(text: str) -> str:
    """Text that can stand in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, with an empty line after it."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return [*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows), ""]


def operators(family: str) -> str:
    """The operators of one room of `op`: the page of each, as `help` shows it."""
    named = sorted((name, OPERATORS.lookup(name)) for name in OPERATORS)
    here = [(name, op) for name, op in named if _family(op) == family]
    lines = [f"# {FAMILIES[family]}", "", f"{len(here)} operators; `help(relay.nn.conv2d)` shows the same page.", ""]
    for name, op in here:
        text = page(op.definition, OperatorBuilder(op.definition).signature)
        lines += [f"## `{name}`", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _family(op: Op) -> str:
    module = op.definition.__module__.split(".")
    return module[2] if module[:2] == ["relaylab", "op"] else ""


def own_passes() -> dict[str, PassEntry]:
    """The passes of the package: those of cells and tests are in the table too."""
    return {name: entry for name, entry in PASSES.items() if entry.factory.__module__.startswith("relaylab.")}


def passes() -> str:
    """All passes with their options."""
    lines = [
        "# Passes",
        "",
        "`relay.transform.NAME(option=…)` makes one; its text is what commands and the explorer take.",
        "",
    ]
    for name, entry in sorted(own_passes().items()):
        required = f"; requires {', '.join(entry.info.required)}" if entry.info.required else ""
        again = "; a second run changes nothing" if entry.idempotent else ""
        kept = "" if entry.preserves else "; what the program computes changes"
        pure = "" if entry.effects else "; refuses functions with effects"
        lines += [f"## `{name}`", "", entry.doc, "", f"Level {entry.info.opt_level}{required}{again}{kept}{pure}.", ""]
        if entry.options:
            rows = (
                (f"`{o.name}`", f"`{o.type}`", f"`{o.default_text}`" * bool(o.default_text), o.doc)
                for o in entry.options
            )
            lines += table(("option", "type", "default", "what it does"), rows)
    return "\n".join(lines)


def entries(title: str, words: str, found: Iterable[Entry]) -> str:
    """Magics or commands."""
    lines = [f"# {title}", "", words, ""]
    for entry in found:
        lines += [f"## `{entry.name}`", "", entry.summary, "", "```text", entry.usage, "", entry.example, "```", ""]
        if entry.arguments:
            lines += table(("argument", "what it does"), ((f"`{a.names}`", a.help) for a in entry.arguments))
    return "\n".join(lines)


def figures() -> str:
    """What pictures can be coloured by and queries can ask for."""
    kinds = {"a ratio, without sums": "ratio", "measured": "measured"}
    rows = (
        (f"`{f.name}`", f.unit, ", ".join(k for k, flag in kinds.items() if getattr(f, flag)), ", ".join(f.also))
        for f in FIGURES
    )
    words = "`viz.show(mod, overlay=NAME)` colours nodes by one, a query such as `MACs>1e6` asks for it."
    return "\n".join(["# Figures", "", words, "", *table(("name", "unit", "kind", "also called"), rows)])


def steps() -> str:
    """The steps of schedules, beside their words in TE and TIR."""
    rows = (
        (f"`{p.usage}`", p.says, *(f"`{words}`" if words else "" for words in (p.te, p.tir)))
        for p in PRIMITIVES.values()
        if p.rewrite.__module__.startswith("relaylab.")
    )
    words = "What [schedules](../schedules.md) are made of; `relaylab schedule NET --steps` prints them."
    return "\n".join(["# Steps of schedules", "", words, "", *table(("step", "what it does", "TE", "TIR"), rows)])


def errors() -> str:
    """Every code of an error with what it says, read from where it is raised, and the lesson about it."""
    lines = [
        "# Errors",
        "",
        "Every error has a code, says where and why, and often what to do. Braces stand for what is known there.",
        "`relaylab explain CODE` shows the same.",
        "",
    ]
    room = ""
    for code, says in sorted(study.errors().items()):
        if code.split(".")[0] != room:
            room = code.split(".")[0]
            lines += [f"## `{room}`", ""]
        lines += [f"### `{code}`", ""]
        if lesson := study.LESSONS.get(code):
            lines += [lesson.meaning, "", "```text", lesson.example, "```", "", "Mended:", ""]
            lines += ["```text", lesson.mended, "```", ""]
        lines += table(("what it says", "help"), says.items())
    return "\n".join(lines)


def index() -> str:
    """The first page."""
    lines = [
        "# Reference",
        "",
        "Made by `python docs/generate.py reference` from the declarations; a test holds it equal.",
        "",
    ]
    lines += [
        "```{toctree}",
        ":maxdepth: 1",
        *(name.removesuffix(".md") for name in PAGES if name != "index.md"),
        "```",
        "",
    ]
    lines += [f"- [{title}](op_{family}.md)" for family, title in FAMILIES.items()]
    lines += [
        f"- [{name.removesuffix('.md').capitalize()}]({name})"
        for name in PAGES
        if not name.startswith(("op_", "index"))
    ]
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "index.md": index,
    **{f"op_{family}.md": (lambda family=family: operators(family)) for family in FAMILIES},
    "passes.md": passes,
    "magics.md": lambda: entries(
        "Magics", "After `%load_ext relaylab`; `%relay_viz?` shows the same.", magics.reference()
    ),
    "commands.md": lambda: entries("Commands", "`relaylab COMMAND --help` shows the same.", cli.reference()),
    "figures.md": figures,
    "steps.md": steps,
    "errors.md": errors,
}
