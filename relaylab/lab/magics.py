"""The magics. Each is a thin wrapper of one public function; `%relay_help` shows them all."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
)
from IPython.core.magic_arguments import argument, magic_arguments
from traitlets import Int

from relaylab import relay, tour, viz
from relaylab.ir import IRModule
from relaylab.lab import wide
from relaylab.lab.arguments import from_the_notebook, inputs_of, one_line, parse, program_of, value_of
from relaylab.runtime.module import STAGES
from relaylab.support.errors import RelayError
from relaylab.support.options import positive
from relaylab.transform import Pass, PassContext, create

ARRANGED = ("fold", "collapse", "select", "focus", "hops", "overlay")  # options of pictures that are passed on where they are given
HELP = """\
%relay_viz PROGRAM               draw a module, a function, an expression, a network by name
%%relay [NAME]                   the cell is Relay text; bind the module to NAME
%relay_passes PROGRAM            step through the passes (also %%relay_passes over text)
%relay_diff A B                  what differs between two programs, as picture and text
%relay_diff M --pipelines A B    what differs between two pipelines over one program
%%relay_pass [NAME] --on PROGRAM write a pass in the cell: it registers, runs, shows its diff
%relay_why PROGRAM [PASS]        which passes would change it now; why a pass does nothing to it
%relay_build PROGRAM [-o lib]    compile
%relay_run PROGRAM|LIB x=expr …  run on inputs (seeded where none are given)
%relay_profile PROGRAM|LIB       time per kernel
%relay_asm LIB [KERNEL]          a kernel: loops, reasons, LLVM IR, assembly; --picture: its control flow
%relay_bisect PROGRAM            name the pass and the rewrite that first changed the numbers
Options: %relay_viz? and so on. A trailing ; silences the output; -o NAME binds the result."""


class _Shell:
    """What magics share: the namespace, binding of results, errors in one line."""

    shell: Any

    def names(self, local_ns: dict[str, Any] | None) -> dict[str, Any]:
        return {**self.shell.user_ns, **(local_ns or {})}

    def give(self, args: Any, value: Any) -> Any:
        """Bind the result if asked, and return it unless asked to be quiet."""
        if args.out:
            self.bind(args.out, value)
        return None if args.quiet else value

    def bind(self, name: str, value: Any) -> None:
        """Give a result a name in the notebook."""
        if not name.isidentifier():
            raise UsageError(f"`{name}` is not a name")
        self.shell.user_ns[name] = value


def shared(function: Any) -> Any:
    """The options that all magics have, and `no_var_expand`: Relay text is full of % and {}."""
    function = argument("-o", "--out", metavar="NAME", help="bind the result to NAME")(function)
    return no_var_expand(argument("-q", "--quiet", action="store_true", help="show nothing")(function))


def leveled(function: Any) -> Any:
    """The optimization level."""
    return argument("-O", "--opt-level", type=int, choices=range(5), default=None, help="which passes run: 0 to 4")(function)


def passes_of(text: str | None, namespace: dict[str, Any]) -> list[Any] | None:
    """`A,B(option=1),my_pass` as passes: registered names, calls of factories, or pass objects of the notebook."""
    if not text:
        return None
    return [_pass(part, namespace) for part in tour.split(text)]


def _pass(part: str, namespace: dict[str, Any]) -> Any:
    if part in namespace:
        return namespace[part]
    if "(" not in part:
        try:
            return create(part)
        except RelayError as error:
            raise one_line(error) from None
    try:
        return value_of(part, {**vars(relay.transform), **namespace})
    except TypeError as error:  # an argument that the factory does not have
        raise UsageError(f"{part}: {error}") from None


@magics_class
class RelayMagics(_Shell, Magics):
    """Defaults are set with `%config RelayMagics.opt_level = 2`."""

    opt_level = Int(3, help="the optimization level of magics that build or run passes").tag(config=True)

    def level(self, args: Any) -> int:
        return self.opt_level if args.opt_level is None else args.opt_level

    @magic_arguments()
    @argument("program", help="a module, function, expression, or network name")
    @argument("-f", "--function", metavar="NAME", help="one function of the module")
    @argument("--engine", choices=("builtin", "dot"), default="builtin", help="who lays it out")
    @argument("--types", choices=("nodes", "edges", "both", "none"), default="nodes", help="where types are shown")
    @argument("--params", choices=("rows", "nodes", "hide"), default="rows", help="how parameters are drawn")
    @argument("--direction", choices=("TB", "LR"), default="TB", help="top to bottom or left to right")
    @argument("--fold", action="store_true", default=None, help="draw repeated blocks as one card")
    @argument("--collapse", metavar="KIND|LEVEL", help="draw groups as cards: a kind such as primitive, or how many levels stay open")
    @argument("--select", metavar="QUERY", help="mark nodes, for example 'op:nn.conv2d & cost>1e8'")
    @argument("--focus", metavar="ID|QUERY", help="only these nodes and what is near them")
    @argument("--hops", type=int, metavar="N", help="how many edges are near (default 1)")
    @argument("--overlay", metavar="FIGURE", help="colour nodes by MACs, bytes read, … or a figure of yours")
    @argument("--diff", metavar="OTHER", help="draw what changed since another program")
    @argument("--save", metavar="FILE", help="also write it: .svg .pdf .png .html .dot .txt .json")
    @shared
    @line_magic
    @needs_local_scope
    def relay_viz(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Draw a program."""
        args = parse(self.relay_viz, line)
        names = self.names(local_ns)
        program = program_of(args.program, names)
        if args.diff is not None:
            picture = viz.diff(program_of(args.diff, names).mod, program.mod)
        else:
            shown = program.mod if args.function is None else program.mod[args.function]
            chosen = {name: value for name in ARRANGED if (value := getattr(args, name)) is not None}
            picture = viz.show(shown, direction=args.direction, params=args.params, types=args.types, engine=args.engine,
                               title=program.name, **chosen)
        if args.save:
            print(f"wrote {picture.save(args.save)}")
        return self.give(args, picture)

    @magic_arguments()
    @argument("name", nargs="?", default="mod", help="the variable that gets the module (default: mod)")
    @argument("--no-check", action="store_true", help="do not infer types")
    @shared
    @cell_magic
    def relay(self, line: str, cell: str) -> Any:
        """The cell is Relay text: parse it, bind the module, show it."""
        args = parse(self.relay, line)
        if not args.name.isidentifier():
            raise UsageError(f"`{args.name}` is not a name")
        mod = module_of(cell, f"%%relay {args.name}", check=not args.no_check)
        self.shell.user_ns[args.name] = mod
        return self.give(args, mod)

    @magic_arguments()
    @argument("program", nargs="?", help="a module or network name; with %%%%relay_passes the cell is the program")
    @argument("-p", "--passes", metavar="A,B(…)", help="these passes instead of the default ones")
    @argument("--static", action="store_true", help="the table of passes instead of the explorer")
    @argument("--heat", nargs="?", const="function", choices=("function", "operator"), help="one picture: how much each pass changed of each function")
    @argument("--no-verify", action="store_true", help="go on where a pass leaves a program whose scopes or types are wrong")
    @argument("--worth", action="store_true", help="measure each pass: what it takes, and how much longer a run is without it")
    @argument("--pdf", metavar="FILE", help="write every stage as a page of a PDF")
    @argument("--html", metavar="FILE", help="write every stage into one self-contained page")
    @leveled
    @shared
    @line_cell_magic
    @needs_local_scope
    def relay_passes(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> Any:
        """Step through the passes."""
        args, names = parse(self.relay_passes, line), self.names(local_ns)
        if cell is not None:
            program = tour.Program(args.program or "cell", module_of(cell, "%%relay_passes"))
        elif args.program is None:
            raise UsageError("name a program: %relay_passes mod")
        else:
            program = program_of(args.program, names)
        passes = passes_of(args.passes, names)
        exploration = tour.explore(program, self.level(args), passes, not args.no_verify)
        if args.pdf:
            print(f"wrote {exploration.save(args.pdf)}")
        if args.html:
            print(f"wrote {explorer(exploration, passes).save(args.html)}")
        if args.worth:
            return self.give(args, tour.worth(exploration))
        if args.heat:
            return self.give(args, tour.heat(exploration, by=args.heat))
        if args.static:
            print("\n".join(map(str, exploration.rows)))
            return self.give(args, exploration) if args.out else None
        return self.give(args, explorer(exploration, passes))

    @magic_arguments()
    @argument("before", help="a program")
    @argument("after", nargs="?", help="another one")
    @argument("--pipelines", nargs=2, metavar=("A", "B"), help="compare two pipelines over one program: A,B(…) or default or default-A-B")
    @argument("--time", action="store_true", help="with --pipelines: also measure the time of what they give")
    @argument("--view", choices=("graph", "text", "both"), default="both")
    @argument("--save", metavar="FILE", help="also write the picture")
    @shared
    @line_magic
    @needs_local_scope
    def relay_diff(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """What differs between two programs."""
        args, names = parse(self.relay_diff, line), self.names(local_ns)
        if args.pipelines:
            return self.give(args, self._compared(args, names))
        if args.after is None:
            raise UsageError("name two programs, %relay_diff a b, or two pipelines, %relay_diff mod --pipelines A B")
        difference = viz.diff(program_of(args.before, names).mod, program_of(args.after, names).mod)
        if args.save:
            print(f"wrote {difference.save(args.save)}")
        if args.view != "graph":
            print(difference.text)
        return None if args.view == "text" else self.give(args, difference)

    def _compared(self, args: Any, names: dict[str, Any]) -> Any:
        """Two pipelines over one program, their figures printed."""
        first, second = (names.get(text, None if text == "default" else text) for text in args.pipelines)
        try:
            comparison = tour.compare(program_of(args.before, names), first, second, self.opt_level)
        except RelayError as error:
            raise one_line(error) from None
        print(comparison)
        if args.time:
            print(*comparison.measured(), sep="\n")
        if args.save:
            print(f"wrote {comparison.difference().save(args.save)}")
        return comparison.difference(style="both") if args.view == "graph" else comparison

    @magic_arguments()
    @argument("name", nargs="?", help="the pass in the cell, if it defines several")
    @argument("--on", metavar="PROGRAM", required=True, help="the program to try the pass on")
    @shared
    @cell_magic
    def relay_pass(self, line: str, cell: str) -> Any:
        """Write a pass in the cell: it runs on a program and shows what it did."""
        args = parse(self.relay_pass, line)
        args.quiet |= cell.rstrip().endswith(";")
        before = set(self.shell.user_ns)
        result = self.shell.run_cell(cell)
        if not result.success:
            return None
        written = find_pass(self.shell.user_ns, args.name, before, cell)
        exploration = tour.explore(program_of(args.on, self.shell.user_ns), passes=[written])
        print("\n".join(map(str, exploration.rows)))
        if exploration.history.error is not None:
            raise from_the_notebook(exploration.history.error)
        hits = tour.rule_hits(exploration.history)
        for rule, count in hits.items():
            print(f"{count:4} × {rule}")
        if not hits and (nearest := nearest_misses(written, exploration.history.source)):
            print(nearest)
        return self.give(args, tour.stage_diff(exploration.history))

    @magic_arguments()
    @argument("program", help="the program that the pass gets")
    @argument("rules", nargs="?", metavar="PASS", help="a pass, rule or pattern, by name or of the notebook; without it: which passes would change the program now")
    @argument("-s", "--select", metavar="QUERY", default="", help="ask about these nodes, for example op:nn.dense")
    @argument("-p", "--passes", metavar="A,B(…)", help="run these passes first")
    @argument("-n", "--most", type=positive, default=5, help="how many answers (default 5)")
    @shared
    @line_magic
    @needs_local_scope
    def relay_why(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Why a pass does nothing to a program; which passes would change it now."""
        args, names = parse(self.relay_why, line), self.names(local_ns)
        own = [v for n, v in names.items() if isinstance(v, Pass) and not n.startswith("_")]
        asked = args.rules and (names[args.rules] if args.rules in names else _pass(args.rules, names))
        first = passes_of(args.passes, names) or ()
        found = tour.why(program_of(args.program, names), asked, args.select, first, args.most, own)
        if not args.quiet:
            print(found)
        return self.give(args, found) if args.out else None

    @magic_arguments()
    @argument("program")
    @argument("--target", default="llvm")
    @leveled
    @shared
    @line_magic
    @needs_local_scope
    def relay_build(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Compile a program for this CPU."""
        args = parse(self.relay_build, line)
        program = program_of(args.program, self.names(local_ns))
        with PassContext(opt_level=self.level(args)):
            lib = relay.build(program.mod, target=args.target, params=dict(program.params))
        if not args.quiet:
            print(tour.describe(lib))
        if args.out:
            return self.bind(args.out, lib)
        return self.give(args, lib)

    @magic_arguments()
    @argument("program")
    @argument("inputs", nargs="*", help="name=expression")
    @argument("--seed", type=int, default=0, help="for inputs that are not given")
    @argument("--check", action="store_true", help="compare with the interpreter")
    @leveled
    @shared
    @line_magic
    @needs_local_scope
    def relay_run(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Run a program (or what %relay_build gave) on inputs."""
        args, names = parse(self.relay_run, line), self.names(local_ns)
        target = value_of(args.program, names) if args.program in names else args.program
        inputs = inputs_of(args.inputs, names)
        if hasattr(target, "get_graph_json"):
            return self.give(args, tour.run_library(target, inputs, args.seed))
        program = program_of(args.program, names)
        if args.check:
            print(tour.check(program.mod, program.params, self.level(args), args.seed))
        return self.give(args, tour.run(program, inputs, self.level(args), args.seed))

    @magic_arguments()
    @argument("program")
    @argument("-n", "--number", type=positive, default=20, help="how often")
    @argument("--hot", type=int, default=3, metavar="N", help="show the Relay functions of the N slowest kernels (default 3)")
    @argument("--operators", metavar="COLUMN", nargs="?", const="time", help="the table of operators, sorted by a column: operator, calls, macs, bytes, time (default)")
    @leveled
    @shared
    @line_magic
    @needs_local_scope
    def relay_profile(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Measured time per kernel, its share of the machine's peak, and where the slowest come from."""
        args, names = parse(self.relay_profile, line), self.names(local_ns)
        target = names.get(args.program)
        program = None if hasattr(target, "get_graph_json") else program_of(args.program, names)
        if args.operators and program is not None:
            return self.give(args, tour.operator_table(program, self.level(args), args.number).sorted(args.operators))
        report = tour.profile(target if program is None else program, self.level(args), args.number)
        wide.show("\n\n".join(filter(None, (report.table(), report.hot(args.hot)))))
        return self.give(args, report) if args.out else None

    @magic_arguments()
    @argument("library", help="what %%relay_build gave; a program is built first")
    @argument("kernel", nargs="?", help="(part of) a kernel's name; without it the kernels are listed")
    @argument("--stage", choices=(*STAGES, "all"), default="asm", help="; ".join(f"{name}: {what}" for name, what in STAGES.items()))
    @argument("--picture", action="store_true", help="draw the kernel's control flow")
    @argument("--llvm-passes", action="store_true", help="what LLVM's own passes would do to the kernel, each with what it changes")
    @shared
    @line_magic
    @needs_local_scope
    def relay_asm(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """A kernel at each level, down to the instructions."""
        args, names = parse(self.relay_asm, line), self.names(local_ns)
        library = names.get(args.library)
        if not hasattr(library, "get_graph_json"):
            program = program_of(args.library, names)
            library = relay.build(program.mod, target="llvm", params=dict(program.params))
        if args.picture:
            return self.give(args, tour.control_flow(library, args.kernel))
        if args.llvm_passes:
            steps = tour.llvm_steps(library, args.kernel or "")
            wide.show("\n".join(f"{step}\n{step.diff()}".rstrip() for step in steps))
            return self.give(args, steps) if args.out else None
        wide.show(tour.listing(library, args.kernel, args.stage))
        return None

    @magic_arguments()
    @argument("program")
    @argument("-p", "--passes", metavar="A,B(…)")
    @argument("--save", metavar="FILE", help="write a program that reproduces the finding; .html .svg .pdf .png: the picture of the values")
    @leveled
    @shared
    @line_magic
    @needs_local_scope
    def relay_bisect(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Name the pass, the rewrite and the node that first changed the numbers."""
        args, names = parse(self.relay_bisect, line), self.names(local_ns)
        finding = tour.bisect(program_of(args.program, names), self.level(args), passes_of(args.passes, names))
        if args.save and finding is not None:
            print(f"wrote {finding.save(args.save)}")
        print(finding if finding is not None else "every pass keeps the numbers")
        return self.give(args, finding)

    @line_magic
    def relay_help(self, line: str) -> None:
        """The magics on one screen."""
        print(HELP)


def module_of(text: str, name: str, check: bool = True) -> IRModule:
    """The module that a cell of Relay text describes; the version line may be left out."""
    if "#[version" not in text:
        text = f'#[version = "0.0.5"]\n{text}'
    return relay.parse(text, name) if check else relay.fromtext(text, name)


def find_pass(namespace: dict[str, Any], name: str | None, before: set[str], cell: str) -> Any:
    """The pass that a cell defined: the named one, or the last pass (or set of rules) that it binds."""
    if name is not None:
        return value_of(name, namespace)
    words = set(re.findall(r"\w+", cell))
    found = [n for n, v in namespace.items() if isinstance(v, Pass) or (isinstance(v, type) and issubclass(v, Pass))]
    new = [n for n in found if n not in before] or [n for n in found if n in words]
    if not new:
        raise UsageError("the cell defines no pass; decorate a function with @relay.transform.function_pass(opt_level=1)")
    value = namespace[new[-1]]
    return value() if isinstance(value, type) else value


def nearest_misses(written: Any, mod: IRModule) -> str:
    """For a pass whose rules did not fire: those that came nearest, and what failed; empty for a pass without rules."""
    try:
        return f"   0 × any rule; the nearest misses of {tour.why_not(written, mod, most=3)}"
    except RelayError:
        return ""


def explorer(exploration: tour.Exploration, passes: list[Any] | None = None) -> Any:
    """The widget that steps through an exploration."""
    from relaylab.lab.explorer import PassExplorer

    return PassExplorer(exploration, passes)
