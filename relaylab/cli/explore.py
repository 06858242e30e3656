"""The command `relaylab explore`: the whole walk over a program."""

from __future__ import annotations

import argparse
import os
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.cli.command import JSON, Command, folder, json_text, progress, save_exploration, say, stopped
from relaylab.lab.options import A4, LANGUAGE, LEVEL, PROGRAM, MagicOption, on_paper
from relaylab.support.formats import SEVERAL, format_of, words
from relaylab.support.options import positive
from relaylab.support.words import counted

if TYPE_CHECKING:
    from relaylab.study import Exploration, Program


def explore_command(args: argparse.Namespace) -> int:
    """`relaylab explore NET|FILE`"""
    from relaylab import study

    quiet = args.json
    progress(f"loading {args.program} …")
    program, seconds = study.timed(lambda: study.load(args.program))
    progress("")
    say(
        f"{program.name}: {counted(sum(study.operators(program.mod).values()), 'operator call')}, "
        f"{counted(len(program.params), 'parameter')} ({seconds:.2f} s)\n",
        quiet=quiet,
    )
    paths = () if args.no_files else explored_files(args.output or ".", program.name)
    exploration = study.explore(program, args.opt_level)
    for row in exploration.rows:
        say(str(row), quiet=quiet)
    report = exploration.to_dict()
    say(quiet=quiet)
    for path in paths:
        progress(f"writing {path} …")
        doing = partial(_writing, str(path))
        _, seconds = study.timed(
            lambda path=path, doing=doing: save_exploration(exploration, str(path), doing, args.lang, **on_paper(args))
        )
        progress("")
        report[path.suffix[1:]] = str(path)
        say(f"wrote {path} ({counted(len(exploration.pictures), 'stage')}, {seconds:.2f} s)", quiet=quiet)
    if exploration.crash is not None:
        if args.json:
            print(json_text(report | {"crash": exploration.crash.to_dict()}, indent=1))
        return stopped(exploration, args)
    report |= _compile_and_run(exploration, program, args, quiet)
    say(_next(args.program, report.get("html"), timed="latency_ms" in report), quiet=quiet)
    if args.json:
        print(json_text(report, indent=1))
    return 0 if report["agrees"] else 1


def _writing(path: str, part: str) -> None:
    progress(f"writing {path}: {part} …")


def _next(program: str, page: object, timed: bool) -> str:
    """What to open, and what to ask next."""
    named = shlex.quote(program)
    opened = [f"Open {page} in a browser: every stage as a graph, its text, its code."] if page else []
    asked = (
        (f"relaylab why {named}", "which passes would change it, and why others do not"),
        (f"relaylab asm {named}", "its kernels as loops, LLVM IR and assembly"),
        (f"relaylab profile {named}", "where the time goes"),
    )
    asked = asked if timed else asked[:2]  # how long it takes depends on sizes that nobody said
    width = max(len(command) for command, _ in asked)
    return "\n".join(["", *opened, "Next:", *(f"  {command:<{width}}  {words}" for command, words in asked)])


def explored_files(output: str, name: str) -> list[Path]:
    """What `relaylab explore -o` means: the file that it names, or a PDF and a page in the folder that it names."""
    path = Path(output)
    if path.suffix and not path.is_dir() and not output.endswith(("/", os.sep)):
        format_of(path, ("rlab",))
        folder(str(path.parent))
        return [path]
    return [folder(output) / f"{name}.{suffix}" for suffix in ("pdf", "html")]


def _compile_and_run(
    exploration: Exploration, program: Program, args: argparse.Namespace, quiet: bool
) -> dict[str, object]:
    from relaylab import study

    report: dict[str, object] = {}
    progress("compiling …")
    if study.needs_vm(exploration.history.source):
        report |= _virtual_machine(exploration, program, args, quiet)
    else:
        lib, seconds = study.timed(exploration.build)
        progress("")
        say(f"\ncompiled in {seconds:.2f} s: {study.describe(lib)}", quiet=quiet)
        module = study.seeded(lib)
        module.run()
        result = module.benchmark(number=1, repeat=max(3, args.repeat))
        say(f"one run takes {result.median * 1e3:.3f} ms (median of {len(result.results)})", quiet=quiet)
        report |= {"build_s": seconds, "latency_ms": result.median * 1e3}
    progress("checking …")
    check, seconds = study.timed(exploration.check)
    progress("")
    say(f"{check} ({seconds:.2f} s)", quiet=quiet)
    return report | {"error": check.error, "agrees": check.agrees}


def _virtual_machine(
    exploration: Exploration, program: Program, args: argparse.Namespace, quiet: bool
) -> dict[str, object]:
    """A program for the virtual machine, compiled, and run where its inputs have sizes."""
    from relaylab import relay, study
    from relaylab.support.errors import RelayError
    from relaylab.transform import PassContext

    with PassContext(opt_level=exploration.opt_level):
        exe, seconds = study.timed(lambda: relay.vm.compile(program.mod, "llvm", params=dict(program.params)))
    machine = relay.vm.VirtualMachine(exe)
    try:
        values = study.arguments(exe)
    except RelayError as error:
        values, untimed = None, error.message
    report: dict[str, object] = {"build_s": seconds}
    if values is not None:
        result = machine.benchmark(None, *values, number=1, repeat=max(3, args.repeat))
        report["latency_ms"] = result.median * 1e3
        untimed = f"one run takes {result.median * 1e3:.3f} ms (median of {len(result.results)})"
    progress("")
    say(f"\nit runs in the virtual machine, compiled in {seconds:.2f} s: {study.describe(exe)}", quiet=quiet)
    say(untimed if values is not None else f"not timed: {untimed}", quiet=quiet)
    return report


COMMAND = Command(
    "explore",
    "walk the pipeline step by step, draw it, compile it, check it, time it",
    (
        PROGRAM,
        LEVEL,
        JSON,
        MagicOption(
            "-o",
            "--output",
            metavar="FILE|DIR",
            help="the explorer as one page that works offline (.html), the run (.rlab), or the pictures "
            f"({words(SEVERAL)}); a folder gets a .pdf and an .html (default: here)",
        ),
        LANGUAGE,
        A4,
        MagicOption("--no-files", action="store_true", help="write no PDF and no HTML page"),
        MagicOption("--repeat", type=positive, default=10, help="how often the compiled program is timed"),
    ),
    ("relaylab explore net.relay -o page.html", "the pass explorer as one page that works offline"),
    explore_command,
)
