"""Questions about a picture: the answer is a set of its operators, clicked or named.

The exercise says the `program`; its operators have the names that the explorer gives them (`nn.dense`, `nn.dense.2`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from relaylab import relay, viz
from relaylab.course.lesson import Exercise, exercise
from relaylab.course.programs import attention, block, classifier, shipped, two_convolutions
from relaylab.ir import Call, Expr, Function, IRModule, post_order
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import History, Pass, run_pipeline
from relaylab.viz.graph.identity import Identities
from relaylab.viz.picture import Picture


@dataclass(frozen=True)
class PictureQuestion:
    """An exercise whose answer is chosen in a picture; `nodes` are what can be chosen, by name."""

    exercise: Exercise
    program: IRModule
    picture: Picture
    nodes: dict[str, Expr]

    def chosen(self, answer: Iterable[str]) -> frozenset[str]:
        """The names of an answer in words; `main/` may stand before them."""
        names = frozenset(name.removeprefix("main/") for name in answer)
        for name in sorted(names - self.nodes.keys()):
            raise RelayValueError(
                f"the picture has no operator `{name}`",
                code="course.node",
                help=did_you_mean(name, self.nodes) or f"there are: {', '.join(self.nodes)}",
            )
        return names

    @property
    def words(self) -> str:
        """Every operator that can be chosen, with its line in the text."""
        lines = {n.id.removeprefix("main/"): n.text for n in self.picture.view.nodes}
        width = max(16, *(len(name) + 2 for name in self.nodes))
        return "\n".join(f"{name:<{width}}{lines[name]}" for name in self.nodes)


def question(name: str) -> PictureQuestion:
    """The question that an exercise asks about a picture."""
    asked = exercise(name)
    if not asked.program:
        raise RelayValueError(
            f"the exercise `{name}` asks for no choice in a picture",
            code="course.unknown",
            help=f'write `check("{name}", {asked.answer})`',
        )
    known = {
        "block": block,
        "classifier": classifier,
        "attention": attention,
        "shipped": shipped,
        "two_convolutions": two_convolutions,
        "relay": relay,
        "transform": relay.transform,
    }
    program = relay.transform.InferType()(eval(asked.program, known))  # noqa: S307  (of our own page)
    identities = Identities()
    picture = viz.show(program, identities=identities)
    nodes = {k: e for k, e in identities.expressions().items() if isinstance(e, Call)}
    order = [n.id for n in picture.view.nodes if n.id in nodes]
    return PictureQuestion(asked, program, picture, {k.removeprefix("main/"): nodes[k] for k in order})


def together(asked: PictureQuestion, passes: Sequence[Pass | str]) -> list[frozenset[str]]:
    """The kernels that passes make of a question's program, each as the names of the operators in it."""
    history = run_pipeline(asked.program, passes)
    names = {node: name for name, node in asked.nodes.items()}
    nodes = [n for f in history.mod.functions.values() for n in post_order(f)]
    kernels = [n for n in nodes if isinstance(n, Function) and n.attrs and n.attrs.get("Primitive")]
    return [frozenset(_origins(kernel, history, names)) for kernel in kernels]


def _origins(kernel: Function, history: History, names: Mapping[Expr, str]) -> Iterator[str]:
    """The names of the operators of a kernel before it was one."""
    for node in post_order(kernel.body):
        for old in history.parents(node):
            if old in names and isinstance(node, Call) and isinstance(old, Call) and node.op == old.op:
                yield names[old]
