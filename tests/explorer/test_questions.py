"""The table of questions: answers are of their declared types, foreign messages refused in words, one place for all."""

from __future__ import annotations

import base64
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest

from relaylab import explorer, relay, study, viz
from relaylab.explorer import QUESTIONS, Session
from relaylab.explorer.question import Frame, accepts
from relaylab.viz.graph.figure import FIGURES


@pytest.fixture(scope="module")
def mlp():
    return Session(study.explore("mlp"))


def asked(session: Session) -> list[tuple]:
    """Every question once, with arguments that have an answer."""
    last = len(session.frames) - 1
    node, other = (
        next(n.id for n in session.frames.views[0].nodes if n.operator == op) for op in ("nn.dense", "nn.relu")
    )
    fuse = next(k for k, item in enumerate(session.pipeline.items) if item.name == "FuseOps")
    typed = session.ask("source")["text"]
    arguments: dict[str, tuple] = {
        "picture": (fuse, fuse + 1), "text": (0, last), "heat": ("operator",), "rows": (), "steps": (fuse,),
        "words": (last,), "wording": ("zh",), "changes": (),
        "rewrite": (fuse, 0), "next_rewrite": (fuse, 0), "code_place": (fuse, 0),
        "options": (fuse,), "copy": (), "edit": ("toggle", 0), "suggest": (0,), "node": (0, node),
        "parts": (0,), "counterparts": (0, node, [0, last]), "why": (0, node, fuse), "kernel": (0, node),
        "llvm": (0, node), "loops": (0, node, ""), "flow": (0, node), "memory": (),
        "check": (last - 1,), "bisect": (), "overlay": ("MACs", 0), "critical": (0, "MACs"), "operators": (last, True),
        "path": (0, node, other), "extract": (0, [node]), "branch": ("keep", "a"),
        "compare": ("current", "current", True),
        "versus": ("current", 0, "current", last),
        "source": (), "live": (typed,), "begin_with": (typed,),
        "formats": (), "picture_file": (fuse, fuse + 1, "merged", "", "svg"),
    }  # fmt: skip
    assert arguments.keys() == QUESTIONS.keys() - {"failure"}, "every question is asked"
    return [(name, *args) for name, args in arguments.items()]


def test_answers_are_of_their_types(mlp):
    for what, *args in asked(mlp):
        answer = mlp.ask(what, *args)
        assert "error" not in answer, (what, answer)
        assert conforms(QUESTIONS[what].hints["return"], answer) == "", what


def test_the_answer_about_a_pass_that_failed_is_of_its_type():
    @relay.transform.module_pass(opt_level=0)
    def Boom(mod, ctx):
        return mod.missing

    answer = Session(study.explore("mlp", passes=[Boom])).ask("failure", 0)
    assert conforms(QUESTIONS["failure"].hints["return"], answer) == "" and answer["kind"] == "AttributeError"


def test_a_picture_is_a_file_of_every_format_of_the_table(mlp):
    last = len(mlp.frames) - 1
    formats = [suffix for suffix, _ in mlp.ask("formats")["formats"]]
    assert {"svg", "pdf", "png", "html", "txt", "json"} <= set(formats)
    for form in formats:
        if form in (needs := {"png": "pypdfium2", "onnx": "onnx"}):
            pytest.importorskip(needs[form])
        made = {
            style: base64.b64decode(mlp.ask("picture_file", 0, last, style, "", form)["data"])
            for style in ("merged", "both")
        }
        assert len(made["merged"]) > 200
        if form == "pdf":  # two sides are two pages
            assert [made[style].count(b"/Type/Page/") for style in ("merged", "both")] == [1, 2]
    assert "There are: .svg" in mlp.ask("picture_file", 0, 1, "both", "", "gif")["error"]


def conforms(kind: object, value: Any, place: str = "answer") -> str:
    """Where a value is not of a type; empty if it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        if not value.keys() <= hints.keys():
            return f"{place} has {value.keys() - hints.keys()}"
        missing = [n for n, k in hints.items() if n not in value and get_origin(k) is not NotRequired]
        parts = [conforms(hints[n], v, f"{place}.{n}") for n, v in value.items()]
        return next((p for p in (*(f"{place} has no {n}" for n in missing), *parts) if p), "")
    if origin in (Annotated, NotRequired):
        return conforms(inner[0], value, place)
    if origin in (Union, UnionType):
        found = [conforms(k, value, place) for k in inner]
        return "" if "" in found else found[0]
    if origin is list and isinstance(value, list):
        return next((p for k, v in enumerate(value) if (p := conforms(inner[0], v, f"{place}[{k}]"))), "")
    if origin is tuple and isinstance(value, tuple) and len(value) == len(inner):
        return next((p for i, v in zip(inner, value) if (p := conforms(i, v, place))), "")
    if origin is dict and isinstance(value, dict):
        return next((p for k, v in value.items() if (p := conforms(inner[1], v, f"{place}.{k}"))), "")
    if kind is float:
        return "" if isinstance(value, (int, float)) else f"{place} is {value!r}"
    return "" if origin is None and accepts(kind, value) else f"{place} is {value!r}, not {kind}"


@pytest.mark.parametrize("name", QUESTIONS)
def test_foreign_arguments_are_refused_in_words(mlp, name):
    """Too many, too few, or of another type: an answer in words, and nothing is done."""
    before = [item.text for item in mlp.pipeline.items]
    parameters = QUESTIONS[name].parameters
    wrong = object()
    foreign = [(None,) * (len(parameters) + 1), (*([wrong] * len(parameters)),), ({"x": 1},) * len(parameters)]
    for args in (a for a in foreign if a or len(parameters)):
        error = str(mlp.ask(name, *args)["error"])
        assert "explorer.argument" in error and f"`{name}`" in error, error
    assert [item.text for item in mlp.pipeline.items] == before


@pytest.mark.parametrize(
    "question, words",
    [
        (("picture", 0), "has 4 arguments, not 1"),
        (("picture", True, 1), "`before` of the question `picture` cannot be True"),
        (("picture", 0, 1, "meged"), "did you mean `merged`"),
        (("steps", 999), "there is no pass 999"),
        (("rewrite", 0, 7), "there is none of index 7"),
        (("check", -1), "there is no pass -1"),
        (("counterparts", 0, "x", [0, 99]), "there is no frame 99"),
        (("why", 0, "x", 999), "passes, not one at 999"),
        (("critical", 0, "intensity"), "it has no sum along a path"),
        ((["rows"],), "there is no question"),
        (("edit", "move", 0, "x"), "is moved to a place"),
    ],
)
def test_mistakes_are_answers(mlp, question, words):
    assert words in mlp.ask(*question)["error"]


class Depth(TypedDict):
    """How many nodes are on the longest path."""

    nodes: int


def test_a_question_of_ones_own_is_one_function(mlp):
    def depth(session: Session, frame: Frame, way: Literal["down", "up"] = "down") -> Depth:
        """How deep a frame is."""
        return {"nodes": len(session.frames.views[frame].nodes)}

    try:
        for _ in range(2):  # as a cell that is run twice
            explorer.question(saved=lambda session: [(0,)])(depth)
        assert mlp.ask("depth", 0) == {"nodes": len(mlp.frames.views[0].nodes)}
        assert "there is no frame 99" in mlp.ask("depth", 99)["error"] and "`up`" in mlp.ask("depth", 0, "upp")["error"]
    finally:
        QUESTIONS.remove("depth")


def test_a_figure_of_ones_own_is_in_the_menu_and_can_be_asked_for(mlp):
    try:
        viz.declare(viz.Figure("operands", "in", lambda view, part: float(len(view.incoming.get(part.id, ()))) or None))
        assert {"name": "operands", "unit": "in", "ratio": False, "measured": False} in mlp.ask("rows")["figures"]
        answer = mlp.ask("overlay", "operands", 0)
        assert answer["unit"] == "in" and answer["values"]["main/nn.bias_add"] == 1.0
    finally:
        FIGURES.remove("operands")


def test_groups_have_ratios_of_sums(mlp):
    last = len(mlp.frames) - 1
    macs, moved, intensity = (mlp.ask("overlay", name, last)["values"] for name in ("MACs", "bytes", "intensity"))
    assert len(macs) > 3
    for group in (g for g in mlp.frames.views[last].groups if g.id in macs):
        assert intensity[group.id] == pytest.approx(macs[group.id] / moved[group.id])


def test_a_constant_has_one_name_where_pipelines_and_texts_are_compared(mlp):
    def named(found):
        return {s[3] for s in found["scenes"][0]["figures"] for s in s["shapes"] if s[0] == "t" and "_weight" in s[3]}

    wanted = named(mlp.ask("picture", 0, 0, "merged", ""))
    assert len(wanted) == 3
    assert named(mlp.ask("versus", "current", 0, "current", 0)) == wanted
    assert named(mlp.ask("live", mlp.ask("source")["text"])) == wanted
