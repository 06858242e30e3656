"""The magics. Each is a thin wrapper of one public function; `%relay_help` shows them all."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class, needs_local_scope
from traitlets import Int

from relaylab import study, viz
from relaylab.explorer import heat
from relaylab.lab import lessons, scrolled
from relaylab.lab.arguments import (
    Namespace,
    bound,
    from_the_notebook,
    help_text,
    inputs_of,
    parse,
    parser_of,
    program_of,
    value_of,
    with_params,
)
from relaylab.lab.cells import compared, find_pass, module_of, nearest_misses, pass_of, passes_of, tell, whole_pass
from relaylab.lab.magic import LEVEL, MAGICS, MODULE, Saves, takes
from relaylab.lab.options import (
    A4,
    ARRANGING,
    CODE,
    DRAWING,
    EXPLORER,
    FIRST,
    KERNEL,
    LANGUAGE,
    LLVM_PASSES,
    MOST,
    NO_VERIFY,
    NUMBER,
    OPERATORS,
    PASSES,
    PIPELINES,
    REWRITES,
    SAVE,
    SEED,
    SELECT,
    TARGET,
    TIME,
    TIMELINE,
    WORTH,
    Entry,
    MagicOption,
    chosen,
    listed,
    on_paper,
)
from relaylab.runtime.module import STAGES
from relaylab.support.formats import SEVERAL, SHAPES, words
from relaylab.support.options import natural
from relaylab.support.quoting import is_name
from relaylab.text import colours
from relaylab.transform import Pass
from relaylab.viz.draw.with_types import with_types

if TYPE_CHECKING:
    from relaylab.lab.explorer import PassExplorer


class _Shell:
    """What magics share: the namespace, binding of results, errors in one line."""

    shell: InteractiveShell

    def names(self, local_ns: Namespace | None) -> Namespace:
        return {**self.shell.user_ns, **(local_ns or {})}

    def give(self, args: argparse.Namespace, value: object) -> object:
        """Bind the result if asked, and return it unless asked to be quiet."""
        if args.out:
            if not is_name(args.out) and hasattr(args, "save"):
                raise UsageError(f"`{args.out}` is not a name: --save {args.out} writes a file, -o NAME binds a name")
            self.bind(args.out, value)
        return None if args.quiet else value

    def saved(self, args: argparse.Namespace, value: Saves) -> object:
        """Write the picture if asked, and give it."""
        if args.save:
            print(f"wrote {value.save(args.save, **on_paper(args))}")
        return self.give(args, value)

    def bind(self, name: str, value: object) -> None:
        """Give a result a name in the notebook."""
        if not is_name(name):
            raise UsageError(f"`{name}` is not a name")
        self.shell.user_ns[name] = value


@magics_class
class RelayMagics(_Shell, Magics):
    """Defaults are set with `%config RelayMagics.opt_level = 2`."""

    opt_level = Int(3, min=0, max=4, help="the optimization level of magics that build or run passes").tag(config=True)

    def level(self, args: argparse.Namespace) -> int:
        return self.opt_level if args.opt_level is None else args.opt_level

    @takes(
        MODULE,
        MagicOption("-f", "--function", metavar="NAME", help="one function of the module"),
        MagicOption(
            "--types", choices=("nodes", "edges", "both", "none"), default="nodes", help="where types are shown"
        ),
        *DRAWING,
        *ARRANGING,
        MagicOption("--diff", metavar="OTHER", help="draw what changed since another program"),
        SAVE,
        A4,
    )
    @line_magic
    @needs_local_scope
    def relay_viz(self, line: str, local_ns: Namespace | None = None) -> object:
        """Draw a program."""
        args = parse(self.relay_viz, line)
        names = self.names(local_ns)
        program = program_of(args.program, names)
        programs = [*([program_of(args.diff, names)] if args.diff is not None else []), program]
        how = {name: getattr(args, name) for name in ("direction", "params", "types")} | chosen(args)
        how |= {"engine": args.engine} if args.engine != "builtin" else {}
        shown = [with_types(p.mod)[0][args.function] if args.function else p.mod for p in programs]
        if args.diff is not None:
            picture = viz.diff(shown[0], shown[1], **how)
        else:
            picture = viz.show(shown[0], title=program.name, **how)
        return self.saved(args, picture)

    @takes(
        MagicOption("name", nargs="?", default="mod", help="the variable that gets the module (default: mod)"),
        MagicOption("--no-check", action="store_true", help="do not infer types"),
    )
    @cell_magic
    def relay(self, line: str, cell: str) -> object:
        """The cell is Relay text: parse it, bind the module, show it."""
        args = parse(self.relay, line)
        if not is_name(args.name):
            raise UsageError(f"`{args.name}` is not a name")
        mod = module_of(cell, f"%%relay {args.name}", check=not args.no_check)
        self.shell.user_ns[args.name] = mod
        return self.give(args, mod)

    @takes(
        MODULE.but(nargs="?", help="a module or network name; with %%%%relay_passes the cell is the program"),
        PASSES,
        MagicOption("--params", metavar="NAME", help="the parameters that are bound (default: `params`, if they fit)"),
        MagicOption("--static", action="store_true", help="the table of passes instead of the explorer"),
        MagicOption(
            "--heat",
            nargs="?",
            const="function",
            choices=("function", "operator"),
            help="one picture: how much each pass changed of each function",
        ),
        NO_VERIFY,
        WORTH,
        SAVE.but(help=f"also write the explorer (.html), the run (.rlab), or the pictures: {words(SEVERAL)}"),
        MagicOption("--pdf", metavar="FILE", help="write every stage as a page of a PDF"),
        A4,
        MagicOption("--html", metavar="FILE", help="write every stage into one self-contained page"),
        LEVEL,
        *EXPLORER,
    )
    @line_cell_magic
    @needs_local_scope
    def relay_passes(self, line: str, cell: str | None = None, local_ns: Namespace | None = None) -> object:
        """Step through the passes."""
        args, names = parse(self.relay_passes, line), self.names(local_ns)
        if cell is not None:
            program = study.Program(args.program or "cell", module_of(cell, "%%relay_passes"))
        elif args.program is None:
            raise UsageError("name a program: %relay_passes mod")
        else:
            program = with_params(program_of(args.program, names), args.params, names)
        passes = passes_of(args.passes, names)
        if program.note:
            tell(args, program.title)
        exploration = study.explore(program, self.level(args), passes, not args.no_verify)
        for path, one in ((args.pdf, exploration), (args.html, None)):
            if path:
                writer = one or explorer(exploration, args)
                print(f"wrote {writer.save(path, **on_paper(args))}")
        if args.worth:
            return self.give(args, study.worth(exploration))
        if args.heat:
            return self.saved(args, heat(exploration, by=args.heat))
        if args.static:
            tell(args, "\n".join(map(str, exploration.rows)))
            return self.give(args, exploration) if args.out else None
        return self.saved(args, explorer(exploration, args))

    @takes(
        MagicOption("before", help="a program"),
        MagicOption("after", nargs="?", help="another one"),
        PIPELINES,
        REWRITES,
        TIME,
        MagicOption("--view", choices=("graph", "text", "both"), default="both", help="what is shown"),
        SAVE,
        A4,
    )
    @line_magic
    @needs_local_scope
    def relay_diff(self, line: str, local_ns: Namespace | None = None) -> object:
        """What differs between two programs."""
        args, names = parse(self.relay_diff, line), self.names(local_ns)
        if args.pipelines:
            return self.give(args, compared(args, names, self.opt_level))
        if args.rewrites:
            return self.saved(args, study.rewrites(program_of(args.before, names), whole_pass(args.rewrites, names)))
        if args.after is None:
            raise UsageError("name two programs, %relay_diff a b, or two pipelines, %relay_diff mod --pipelines A B")
        difference = viz.diff(program_of(args.before, names).mod, program_of(args.after, names).mod)
        if args.save:
            print(f"wrote {difference.save(args.save, **on_paper(args))}")
        if args.view != "graph" and not args.quiet:
            scrolled.show_difference(str(difference), "relay")
        shown = self.give(args, difference)
        return None if args.view == "text" else shown

    @takes(
        MagicOption("name", nargs="?", help="the pass in the cell, if it defines several"),
        MagicOption("--on", metavar="PROGRAM", required=True, help="the program to try the pass on"),
    )
    @cell_magic
    def relay_pass(self, line: str, cell: str) -> object:
        """Write a pass in the cell: it runs on a program and shows what it did."""
        args = parse(self.relay_pass, line)
        args.quiet |= cell.rstrip().endswith(";")
        before = set(self.shell.user_ns)
        if not self.shell.run_cell(cell).success:
            raise UsageError("the cell failed (see above), so there is no pass to run")  # a run of all cells ends here
        written = find_pass(self.shell.user_ns, args.name, before, cell)
        exploration = study.explore(program_of(args.on, self.shell.user_ns), passes=[written])
        print("\n".join(map(str, exploration.rows)))
        if exploration.history.error is not None:
            raise from_the_notebook(exploration.history.error)
        hits = study.rule_hits(exploration.history)
        for rule, count in hits.items():
            print(f"{count:4} × {rule}")
        if not hits and (nearest := nearest_misses(written, exploration.history.source)):
            print(nearest)
        return self.give(args, study.stage_diff(exploration.history))

    @takes(
        MODULE.but(help="the program that the pass gets"),
        MagicOption(
            "rules",
            nargs="?",
            metavar="PASS",
            help="a pass, rule or pattern, by name or of the notebook; without: which passes would change the program",
        ),
        SELECT,
        FIRST,
        MOST,
    )
    @line_magic
    @needs_local_scope
    def relay_why(self, line: str, local_ns: Namespace | None = None) -> object:
        """Why a pass does nothing to a program; which passes would change it now."""
        args, names = parse(self.relay_why, line), self.names(local_ns)
        own = [v for n, v in names.items() if isinstance(v, Pass) and not n.startswith("_")]
        asked = args.rules and pass_of(args.rules, names)
        first = passes_of(args.passes, names) or ()
        found = study.why(program_of(args.program, names), asked, args.select, first, args.most, own)
        tell(args, str(found))
        return self.give(args, found) if args.out else None

    @takes(MODULE, TARGET, LEVEL)
    @line_magic
    @needs_local_scope
    def relay_build(self, line: str, local_ns: Namespace | None = None) -> object:
        """Compile a program for this CPU."""
        args = parse(self.relay_build, line)
        program = bound(args.program, self.names(local_ns))
        lib = study.compiled(program, self.level(args), args.target)
        tell(args, study.describe(lib))
        shown = self.give(args, lib)
        return None if args.out else shown

    @takes(
        MODULE.but(help="a program, or what %%relay_build gave"),
        MagicOption("inputs", nargs="*", help="name=expression"),
        SEED,
        MagicOption("--check", action="store_true", help="compare with the interpreter"),
        LEVEL,
    )
    @line_magic
    @needs_local_scope
    def relay_run(self, line: str, local_ns: Namespace | None = None) -> object:
        """Run a program (or what %relay_build gave) on inputs, with `params` of the notebook if they fit."""
        args, names = parse(self.relay_run, line), self.names(local_ns)
        target = value_of(args.program, names) if args.program in names else args.program
        inputs = inputs_of(args.inputs, names)
        if study.is_compiled(target):
            if args.check:
                raise UsageError(f"`{args.program}` is compiled; --check needs the program that it was made from")
            return self.give(args, study.run_library(target, inputs, args.seed))
        program = bound(args.program, names)
        if args.check:
            print(study.check(program.mod, program.params, self.level(args), args.seed))
        return self.give(args, study.run(program, inputs, self.level(args), args.seed))

    @takes(
        MODULE.but(help="a program, or what %%relay_build gave"),
        MagicOption("inputs", nargs="*", help="name=expression; others are drawn"),
        NUMBER,
        MagicOption(
            "--hot",
            type=natural,
            default=3,
            metavar="N",
            help="show the Relay functions of the N slowest kernels (default 3)",
        ),
        OPERATORS,
        LEVEL,
    )
    @line_magic
    @needs_local_scope
    def relay_profile(self, line: str, local_ns: Namespace | None = None) -> object:
        """Measured time per kernel, its share of the machine's peak, and where the slowest come from."""
        args, names = parse(self.relay_profile, line), self.names(local_ns)
        named = names.get(args.program)
        what = named if study.is_compiled(named) else bound(args.program, names)
        if args.operators:
            if not isinstance(what, study.Program):
                raise UsageError(f"`{args.program}` is compiled; --operators needs the program that it was made from")
            return self.give(args, study.operator_table(what, self.level(args), args.number).sorted(args.operators))
        report = study.profile(what, self.level(args), args.number, inputs=inputs_of(args.inputs, names))
        if not args.quiet:
            scrolled.show("\n\n".join(filter(None, (report.table(), report.hot(args.hot)))))
        return self.give(args, report) if args.out else None

    @takes(
        MagicOption("library", help="what %%relay_build gave; a program is built first"),
        KERNEL,
        MagicOption(
            "--stage",
            choices=(*STAGES, "all"),
            default="asm",
            help="; ".join(f"{name}: {what}" for name, what in STAGES.items()),
        ),
        MagicOption("--picture", action="store_true", help="draw the kernel's control flow"),
        SAVE.but(help=f"with --picture: also write it: {words()}"),
        A4,
        LLVM_PASSES,
    )
    @line_magic
    @needs_local_scope
    def relay_asm(self, line: str, local_ns: Namespace | None = None) -> object:
        """A kernel at each level, down to the instructions."""
        args, names = parse(self.relay_asm, line), self.names(local_ns)
        library = names.get(args.library)
        if not study.is_compiled(library):
            library = study.compiled(bound(args.library, names), self.opt_level)
        if args.picture or args.save:
            return self.saved(args, study.control_flow(library, args.kernel))
        if args.llvm_passes:
            steps = study.llvm_steps(library, args.kernel or "")
            if not args.quiet:
                scrolled.show_difference("\n".join(f"{step}\n{step.diff()}".rstrip() for step in steps), "llvm")
            return self.give(args, steps) if args.out else None
        text = study.listing(library, args.kernel, args.stage)
        if not args.quiet:
            scrolled.show(text, colours.STAGES.get(args.stage or "", ""))
        self.give(args, text)
        return None

    @takes(
        MODULE,
        PASSES,
        MagicOption(
            "--save",
            metavar="FILE",
            help=f"write a program that reproduces the finding (.py), or the picture of the values: {words(SHAPES)}",
        ),
        LEVEL,
    )
    @line_magic
    @needs_local_scope
    def relay_bisect(self, line: str, local_ns: Namespace | None = None) -> object:
        """Name the pass, the rewrite and the node that first changed the numbers."""
        args, names = parse(self.relay_bisect, line), self.names(local_ns)
        finding = study.bisect(bound(args.program, names), self.level(args), passes_of(args.passes, names))
        if args.save and finding is not None:
            print(f"wrote {finding.save(args.save)}")
        unwritten = f": {args.save} is not written" if args.save else ""
        tell(args, str(finding or f"every pass keeps the numbers{unwritten}"))
        return self.give(args, finding)

    @takes(
        MagicOption("lesson", nargs="?", help="a lesson by number or name: its page, without the answers"),
        MagicOption("--hint", metavar="EXERCISE", help="the next hint of an exercise"),
        MagicOption("--solution", metavar="EXERCISE", help="an answer to an exercise"),
        LANGUAGE.but(help="the language of lessons, hints and verdicts from now on (default: the locale's)"),
    )
    @line_magic
    def relay_lesson(self, line: str) -> object:
        """The course: its lessons, a page of it, hints and solutions."""
        args = parse(self.relay_lesson, line)
        return self.give(args, lessons.asked(args.lesson, args.hint, args.solution, args.lang))

    @takes(MODULE, KERNEL, CODE, TIMELINE, LEVEL)
    @cell_magic
    @needs_local_scope
    def relay_schedule(self, line: str, cell: str, local_ns: Namespace | None = None) -> object:
        """Give a kernel the loops of a schedule: the cell holds its steps, or loops written out."""
        args, names = parse(self.relay_schedule, line), self.names(local_ns)
        program = bound(args.program, names)
        trial = study.schedule(program, args.kernel or "", cell, self.level(args))
        if not args.quiet:
            scrolled.show_schedule(trial, args.code)
        if args.timeline and not args.quiet:
            scrolled.show(trial.history)
        self.give(args, trial)
        return None

    @line_magic
    def relay_help(self, line: str) -> None:
        """The magics on one screen; `%relay_help viz` tells what one takes."""
        print(help_text(line, RelayMagics))


def explorer(of: study.Exploration, args: argparse.Namespace) -> PassExplorer:
    """The widget that steps through an exploration, with what `options.EXPLORER` says."""
    from relaylab.lab.explorer import PassExplorer  # it needs anywidget, which the other magics do not

    chosen = {"language": args.lang, "slides": args.slides, "direction": args.direction}
    return PassExplorer(of, **{name: value for name, value in chosen.items() if value})


def reference() -> list[Entry]:
    """Every magic with its usage, example and arguments, for a page of reference."""
    parsers = {m.method: parser_of(getattr(RelayMagics, m.method)) for m in MAGICS}
    return [Entry(m.method, m.usage, m.summary, m.example, listed(parsers[m.method])) for m in MAGICS]
