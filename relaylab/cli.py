"""The command `relaylab`: a thin mirror of the public functions."""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from relaylab import __version__
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.options import positive
from relaylab.support.table import did_you_mean


def say(text: str = "", *, quiet: bool = False) -> None:
    """Print a line now, not when a buffer is full."""
    if not quiet:
        print(text, flush=True)


def progress(text: str) -> None:
    """What is being done, where someone watches; overwritten by the next line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


FORMATS = (".pdf", ".svg", ".png", ".dot", ".txt", ".json")
"""What pictures are written as."""


def folder(path: str) -> Path:
    """A folder to write to, made if it is not there."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RelayValueError(f"cannot write to the folder {path}: {error.strerror}", code="cli.folder") from None
    return Path(path)


def explore_command(args: argparse.Namespace) -> int:
    """`relaylab explore NET|FILE`"""
    from relaylab import tour

    quiet = args.json
    progress(f"loading {args.program} …")
    program, seconds = tour.timed(lambda: tour.load(args.program))
    progress("")
    say(f"{program.name}: {sum(tour.operators(program.mod).values())} operator calls, {len(program.params)} parameters ({seconds:.2f} s)\n", quiet=quiet)
    exploration = tour.explore(program, args.opt_level)
    for row in exploration.rows:
        say(str(row), quiet=quiet)
    if exploration.history.error is not None:
        raise exploration.history.error
    report = exploration.to_dict()
    say(quiet=quiet)
    for path in () if args.no_files else explored_files(args.output or ".", program.name):
        progress(f"writing {path} …")
        _, seconds = tour.timed(lambda path=path: save_exploration(exploration, None, str(path)))
        progress("")
        report[path.suffix[1:]] = str(path)
        say(f"wrote {path} ({len(exploration.pictures)} stages, {seconds:.2f} s)", quiet=quiet)
    report |= _compile_and_run(exploration, program, args, quiet)
    if args.json:
        print(json.dumps(report, indent=1))
    return 0 if report["agrees"] else 1


def explored_files(output: str, name: str) -> list[Path]:
    """What `relaylab explore -o` means: the file that it names, or a PDF and a page in the folder that it names."""
    path = Path(output)
    if path.suffix.lower() in (".html", ".htm", ".rlab", *FORMATS) and not path.is_dir():
        folder(str(path.parent))
        return [path]
    return [folder(output) / f"{name}.{suffix}" for suffix in ("pdf", "html")]


def _compile_and_run(exploration: Any, program: Any, args: argparse.Namespace, quiet: bool) -> dict[str, Any]:
    from relaylab import tour

    report: dict[str, Any] = {}
    if tour.needs_vm(program.mod):
        say("\nthe program has control flow or data types: it runs in the virtual machine", quiet=quiet)
    else:
        progress("compiling …")
        lib, seconds = tour.timed(exploration.build)
        progress("")
        say(f"\ncompiled in {seconds:.2f} s: {tour.describe(lib)}", quiet=quiet)
        module = tour.seeded(lib)
        module.run()
        result = module.benchmark(number=1, repeat=max(3, args.repeat))
        say(f"one run takes {result.median * 1e3:.3f} ms (median of {len(result.results)})", quiet=quiet)
        report |= {"build_s": seconds, "latency_ms": result.median * 1e3}
    progress("checking …")
    check, seconds = tour.timed(exploration.check)
    progress("")
    say(f"{check} ({seconds:.2f} s)", quiet=quiet)
    return report | {"error": check.error, "agrees": check.agrees}


def viz_command(args: argparse.Namespace) -> int:
    """`relaylab viz NET|FILE -o PICTURE`"""
    from relaylab import tour, viz

    program = tour.load(args.program)
    chosen = {name: value for name in ("fold", "collapse", "select", "focus", "hops", "overlay") if (value := getattr(args, name)) is not None}
    picture = viz.show(program.mod, title=program.name, params=args.params, direction=args.direction, engine=args.engine, **chosen)
    if args.output is None:
        say(str(picture))
    else:
        say(f"wrote {picture.save(args.output)}")
    return 0


def passes_command(args: argparse.Namespace) -> int:
    """`relaylab passes [NET|FILE]`"""
    from relaylab.transform import PASSES

    if args.program is None:
        rows = [{"name": e.name, "opt_level": e.info.opt_level, "summary": e.summary} for e in PASSES.values()]
        say(json.dumps(rows, indent=1) if args.json else "\n".join(f"{r['name']:<28}{r['opt_level']}  {r['summary']}" for r in rows))
        return 0
    from relaylab import tour

    chosen = passes_of(args.passes)
    exploration = tour.explore(args.program, args.opt_level, chosen, not args.no_verify)
    if args.heat:
        say(f"wrote {tour.heat(exploration).save(args.heat)}", quiet=args.json)
    for path in args.output or ():
        say(f"wrote {save_exploration(exploration, chosen, path)}", quiet=args.json)
    if args.worth and exploration.history.error is None:
        say(str(tour.worth(exploration)), quiet=args.json)
    if args.json:
        say(json.dumps(exploration.to_dict(), indent=1))
    elif not args.worth:
        for row in exploration.rows:
            say(str(row))
    if args.text:
        say(f"\n{exploration.history.mod}")
    if exploration.history.error is not None:
        raise exploration.history.error
    return 0


def passes_of(text: str | None) -> list[Any] | None:
    """`A,B(option=1)` as passes; None for the default ones."""
    from relaylab import tour

    return [tour.pass_of(part) for part in tour.split(text)] if text else None


def save_exploration(exploration: Any, passes: list[Any] | None, path: str) -> Path:
    """Write a pipeline run: the explorer as a page for `.html`, the pictures for other formats."""
    if path.endswith(".rlab"):
        from relaylab import tour

        return tour.record(exploration, path)
    if not path.lower().endswith((".html", ".htm")):
        return exploration.save(path)
    from relaylab.lab import book

    return book.save(exploration, path, passes)


def diff_command(args: argparse.Namespace) -> int:
    """`relaylab diff A B`"""
    from relaylab import tour, viz

    if args.other and args.program.endswith(".rlab") and args.other.endswith(".rlab"):
        return runs_compared([tour.reopen(args.program), tour.reopen(args.other)], args)
    if args.pipelines:
        return compared(tour.compare(args.program, *args.pipelines, args.opt_level), args)
    if args.other is None:
        raise RelayValueError("there is nothing to compare with", code="cli.other", help="name another program, or --pipelines A B")
    difference = viz.diff(tour.load(args.program).mod, tour.load(args.other).mod)
    if args.output:
        say(f"wrote {difference.save(args.output)}")
    say(json.dumps(difference.counts) if args.json else f"{difference}\n{difference!r}")
    return 0


def compared(comparison: Any, args: argparse.Namespace) -> int:
    """Two pipelines over one program: the table, or data."""
    if args.output:
        say(f"wrote {comparison.difference().save(args.output)}", quiet=args.json)
    if args.json:
        found = {q.name: [q.a, q.b] for q in comparison.quantities}
        say(json.dumps({"names": comparison.names, "figures": found, "roles": comparison.difference().counts}))
    else:
        say("\n".join(map(str, [comparison, *(comparison.measured() if args.time else [])])))
    return judged(comparison.quantities, args)


def runs_compared(runs: list[Any], args: argparse.Namespace) -> int:
    """Two recorded runs: their figures, and the picture of what differs at the ends if asked for."""
    from relaylab import tour, viz

    quantities = tour.compare_recordings(*runs)
    if args.output:
        say(f"wrote {viz.diff(*(r.module() for r in runs)).save(args.output)}", quiet=args.json)
    say(json.dumps({q.name: [q.a, q.b] for q in quantities}) if args.json else "\n".join(map(str, quantities)))
    return judged(quantities, args)


def judged(quantities: Sequence[Any], args: argparse.Namespace) -> int:
    """Status 1 if a limit of `--fail-on` is broken."""
    from relaylab import tour

    broken = tour.exceeded(quantities, args.fail_on or ())
    for words in broken:
        say(words, quiet=args.json)
    return 1 if broken else 0


def bisect_command(args: argparse.Namespace) -> int:
    """`relaylab bisect NET|FILE`: status 1 if a pass changes the numbers."""
    from relaylab import tour

    finding = tour.bisect(tour.load(args.program), args.opt_level, passes_of(args.passes))
    if finding is not None and args.output:
        say(f"wrote {finding.save(args.output)}", quiet=args.json)
    found = None if finding is None else {"pass": finding.stage.name, "error": finding.error, "rule": finding.step.rule if finding.step else None}
    say(json.dumps(found) if args.json else str(finding or "every pass keeps the numbers"))
    return 0 if finding is None else 1


def why_command(args: argparse.Namespace) -> int:
    """`relaylab why NET|FILE [PASS]`"""
    from relaylab import tour

    found = tour.why(args.program, args.rules, args.select, passes_of(args.passes) or (), args.most)
    if not args.json:
        say(str(found))
    elif args.rules is None:
        say(json.dumps([{"pass": s.name, "ms": s.seconds * 1e3, "delta": s.delta} for s in found]))
    else:
        say(json.dumps({"pass": found.name, "note": found.note, "reasons": [{"rule": r.rule, "at": r.location, "why": r.why, "near": r.near} for r in found.reasons]}))
    return 0


def profile_command(args: argparse.Namespace) -> int:
    """`relaylab profile NET|FILE`"""
    from relaylab import tour

    if args.operators:
        say(str(tour.operator_table(tour.load(args.program), args.opt_level, args.number).sorted(args.operators)))
        return 0
    report = tour.profile(tour.load(args.program), args.opt_level, args.number)
    say(report.json() if args.json else report.table())
    return 0


def asm_command(args: argparse.Namespace) -> int:
    """`relaylab asm NET|FILE [KERNEL]`"""
    from relaylab import relay, tour

    program = tour.load(args.program)
    with relay.transform.PassContext(opt_level=args.opt_level):
        lib = relay.build(program.mod, target="llvm", params=dict(program.params))
    if args.output:
        say(f"wrote {tour.control_flow(lib, args.kernel).save(args.output)}", quiet=args.json)
        return 0
    if args.llvm_passes:
        say("\n".join(f"{step}\n{step.diff()}".rstrip() for step in tour.llvm_steps(lib, args.kernel or "")))
        return 0
    say(tour.listing(lib, args.kernel, args.stage))
    return 0


def run_command(args: argparse.Namespace) -> int:
    """`relaylab run NET|FILE`"""
    from relaylab import relay, tour
    from relaylab.interp import random_inputs

    program = tour.load(args.program)
    mod = relay.transform.InferType()(program.mod)
    given = dict(program.params)
    values = [given.get(p.name_hint, v) for p, v in zip(mod["main"].params, random_inputs(mod["main"], args.seed))]
    kind = args.executor or ("vm" if tour.needs_vm(mod) else "graph")
    with relay.transform.PassContext(opt_level=args.opt_level):
        leaves = tour.leaves(relay.create_executor(kind, mod).evaluate()(*values))
    if args.json:
        say(json.dumps([{"shape": list(a.shape), "dtype": str(a.dtype), "values": a.ravel()[:1000].tolist()} for a in leaves]))
    else:
        say("\n".join(f"{a.dtype}{list(a.shape)}\n{a}" for a in leaves))
    return 0


def lab_command(args: argparse.Namespace) -> int:
    """`relaylab lab`"""
    import subprocess

    root = Path(args.folder) if args.folder else notebooks()
    if not root.is_dir():
        raise RelayValueError(f"there is no folder {root}", code="cli.no-folder")
    return subprocess.call([sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", *args.rest])


def notebooks() -> Path:
    """The folder of notebooks: that of a checkout, or a copy of the ones that came with the package."""
    here = Path(__file__).resolve().parent
    if (here.parent / "notebooks").is_dir():
        return here.parent / "notebooks"
    target = Path.cwd() / "relaylab-notebooks"
    if not target.exists():
        try:
            shutil.copytree(here / "_notebooks", target)
        except OSError as error:
            why = error.strerror or "some files could not be written"
            raise RelayValueError(f"cannot copy the notebooks to {target}: {why}", code="cli.folder",
                                  help="change to a folder that you may write to, or name one: relaylab lab FOLDER") from None
    return target


def run_tvm_command(args: argparse.Namespace) -> int:
    """`relaylab run-tvm SCRIPT [ARGS]`"""
    from relaylab.compat.script import run_script

    return run_script(args.script, args.rest)


EXAMPLES = """examples:
  relaylab explore resnet18                          the whole walk: passes, PDF, web page, native code, check, time
  relaylab explore net.relay -o page.html            the pass explorer as one page that works offline
  relaylab viz mobilenet --fold -o mobilenet.pdf     a picture; repeated blocks as one card
  relaylab passes resnet18 -p FoldConstant,FuseOps   what two passes do
  relaylab why resnet18 FuseOps -s op:nn.dense       why a pass does nothing there
  relaylab diff before.relay after.relay             what differs
  relaylab asm resnet18 conv2d --stage llvm          a kernel on its way down
  relaylab lab                                       the notebooks"""


class _Parser(argparse.ArgumentParser):
    """A parser that says what a mistyped word may have been."""

    def error(self, message: str) -> NoReturn:
        found = re.match(r".*invalid choice: '?(.*?)'? \(choose from (.*)\)", message)
        known = re.findall(r"[\w.-]+", found[2]) if found else []
        near = did_you_mean(found[1], known) if found else ""
        if found and not near and _is_network(found[1]):
            near = f"did you mean `relaylab explore {found[1]}`?"
        if option := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            near = did_you_mean(option[1], (o for o in self._option_string_actions if o.startswith("--")))
        super().error(f"{message}\n  help: {near}" if near else message)


def _is_network(name: str) -> bool:
    from relaylab.zoo.catalog import NETWORKS

    return name in NETWORKS


def parser() -> argparse.ArgumentParser:
    """The arguments of all commands."""
    top = _Parser(prog="relaylab", description="Explore tensor compilers by hand.", epilog=EXAMPLES,
                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--version", action="version", version=f"relaylab {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, run: Callable, help: str, *, program: bool | None = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(run=run, parser=sub)
        if program is not None:
            sub.add_argument("program", nargs=None if program else "?", metavar="NET|FILE", help="a network such as resnet18, a file of Relay text, or an ONNX model")
        return sub

    sub = command("explore", explore_command, "walk the pipeline step by step, draw it, compile it, check it, time it")
    _common(sub)
    sub.add_argument("-o", "--output", metavar="FILE|DIR", help="the explorer as one page that works offline (.html), the pictures (.pdf …) or the "
                     "run (.rlab); a folder gets a .pdf and an .html (default: here)")
    sub.add_argument("--no-files", action="store_true", help="write no PDF and no HTML page")
    sub.add_argument("--repeat", type=positive, default=10, help="how often the compiled program is timed")
    sub = command("viz", viz_command, "draw a program")
    _drawing(sub)
    sub = command("passes", passes_command, "list the passes, or run the pipeline and list what each did", program=False)
    _common(sub)
    sub.add_argument("-p", "--passes", metavar="A,B,…", help="these passes instead of the default ones")
    sub.add_argument("--text", action="store_true", help="print the program at the end")
    sub.add_argument("--no-verify", action="store_true", help="go on where a pass leaves a program whose scopes or types are wrong")
    sub.add_argument("--worth", action="store_true", help="measure each pass: what it takes, and how much longer a run is without it")
    sub.add_argument("--heat", metavar="FILE", help="write one picture of how much each pass changed (.svg .pdf .html .png .txt)")
    sub.add_argument("-o", "--output", metavar="FILE", action="append", help="write the explorer (.html), the pictures (.pdf …) or the run (.rlab)")
    sub = command("diff", diff_command, "what differs between two programs, two recorded runs, or two pipelines")
    sub.add_argument("other", metavar="OTHER", nargs="?", help="the program to compare with")
    sub.add_argument("--pipelines", nargs=2, metavar=("A", "B"), help="compare two pipelines over one program: A,B(…), default, default-A-B")
    sub.add_argument("--time", action="store_true", help="with --pipelines: also measure the time of what they give")
    sub.add_argument("--fail-on", metavar="FIGURE+N%", action="append", help="status 1 if a figure of B is larger by more: flops+5%% bytes+0%% …")
    sub.add_argument("-o", "--output", metavar="FILE", help="write the picture")
    _common(sub)
    _questions(command)
    sub = command("run", run_command, "run a program on seeded inputs and print what it gives")
    _common(sub)
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--executor", choices=("graph", "vm", "debug"), help="default: graph, or vm for programs with control flow")
    sub = command("lab", lab_command, "open JupyterLab on the notebooks", program=None)
    sub.add_argument("folder", nargs="?", help="another folder")
    sub.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for JupyterLab")
    sub = command("run-tvm", run_tvm_command, "run a Relay program written for TVM", program=None)
    sub.add_argument("script")
    sub.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", default=[], help="arguments for the program")
    return top


def _questions(command: Callable) -> None:
    """Commands that ask about passes and kernels."""
    sub = command("bisect", bisect_command, "name the pass and the rewrite that first changes the numbers")
    _common(sub)
    sub.add_argument("-p", "--passes", metavar="A,B,…", help="these passes instead of the default ones")
    sub.add_argument("-o", "--output", metavar="FILE", help="write a program that shows it (.py), or the picture of the values (.html .svg .pdf .png)")
    sub = command("why", why_command, "why a pass does nothing to a program; without a pass: which passes would change it now")
    sub.add_argument("rules", nargs="?", metavar="PASS", help="a pass, with its options if need be")
    sub.add_argument("-s", "--select", metavar="QUERY", default="", help="ask about these nodes, for example op:nn.dense")
    sub.add_argument("-p", "--passes", metavar="A,B,…", help="run these passes first")
    sub.add_argument("-n", "--most", type=positive, default=5, help="how many answers (default 5)")
    sub.add_argument("--json", action="store_true", help="print data for programs instead of text for people")
    sub = command("profile", profile_command, "measure the time of each kernel")
    _common(sub)
    sub.add_argument("-n", "--number", type=positive, default=20, help="how often")
    sub.add_argument("--operators", metavar="COLUMN", nargs="?", const="time", help="the table of operators, sorted by operator, calls, macs, bytes, time (default)")
    sub = command("asm", asm_command, "show a kernel: loops, why it has them, LLVM IR, assembly; without a name the table of kernels")
    _common(sub)
    sub.add_argument("kernel", nargs="?", help="(part of) the name of a kernel")
    sub.add_argument("--llvm-passes", action="store_true", help="what LLVM's own passes would do to the kernel, each with what it changes")
    sub.add_argument("--stage", default="asm", help="relay, loop, why, llvm, llvm-optimized, flow, asm (default), or all")
    sub.add_argument("-o", "--output", metavar="FILE", help="draw the kernel's control flow into a .svg, .pdf, .png … file")


def _drawing(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-o", "--output", metavar="FILE", help="a .svg, .pdf, .png, .html, .dot, .txt or .json file; without it a tree is printed")
    sub.add_argument("--params", choices=("rows", "nodes", "hide"), default="rows", help="how parameters are drawn")
    sub.add_argument("--direction", choices=("TB", "LR"), default="TB")
    sub.add_argument("--engine", choices=("builtin", "dot"), default="builtin")
    sub.add_argument("--fold", action="store_true", default=None, help="draw repeated blocks as one card")
    sub.add_argument("--collapse", metavar="KIND|LEVEL", help="draw groups as cards: a kind such as primitive, or how many levels stay open")
    sub.add_argument("--select", metavar="QUERY", help="mark nodes, for example 'op:nn.conv2d & cost>1e8'")
    sub.add_argument("--focus", metavar="ID|QUERY", help="only these nodes and what is near them")
    sub.add_argument("--hops", type=int, metavar="N", help="how many edges are near (default 1)")
    sub.add_argument("--overlay", metavar="FIGURE", help="colour nodes by MACs, bytes, intensity, …")


def _common(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("-O", "--opt-level", type=int, default=3, choices=range(5), help="which passes run (default 3)")
    sub.add_argument("--json", action="store_true", help="print data for programs instead of text for people")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; errors of users are one message on stderr and exit status 1."""
    args, rest = parser().parse_known_args(argv)
    if rest and args.command != "lab":  # what it does not know is JupyterLab's
        args.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = [*getattr(args, "rest", ()), *rest]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without `…` shows `?`
    try:
        status = args.run(args)
    except RelayError as error:
        print(error, file=sys.stderr)
        status = 1
    except MemoryError as error:
        print(f"error[cli.memory]: the program does not fit into memory: {error}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        sys.stderr.close()
        status = 0
    sys.exit(status)
