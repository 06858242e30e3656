"""What is written for people to copy: code that means what it shows, commands that a shell reads back."""

from __future__ import annotations

import ast
import itertools
import re
import shlex

import pytest

from relaylab import relay, study, viz
from relaylab.explorer.session import Session
from relaylab.support.quoting import python_comment, python_text, shell_words
from relaylab.transform import FunctionPass, PassInfo
from relaylab.viz.write.dot import dot_text

HOSTILE = {
    "end of the literal": "'''); import os #",
    "double quotes": '"); import os #',
    "three double quotes": '"""); import os #',
    "a quote last": "it's'",
    "two quotes last": "x''",
    "a backslash last": "x\\",
    "backslashes and a quote": "\\\\'''\\",
    "escapes": r"\n\x41\u0041\N{DASH}",
    "a line": "a\nimport os",
    "carriage return": "a\rimport os",
    "form feed": "a\fimport os",
    "line separator": "a\u2028import os",
    "null": "a\0b",
    "a lone surrogate": "a\udc80b",
    "written backwards": "a\u202eso tropmi",
    "a format": "{name} {0} %s $HOME",
    "comment": "# x",
    "shell": "$(touch x); `touch y` && z | w > v & !! * ? ~ 'q' \"r\"",
    "an option": "--output=x",
    "empty": "",
}
CODE = "from relaylab import relay\n\n"


def program(text: str) -> relay.Expr:
    """A program with a text in an attribute, a variable's name, and a function's attribute."""
    x = relay.var(text or "x", shape=(2,))
    body = relay.tanh(relay.annotation.compiler_begin(x, text))
    return relay.IRModule.from_expr(relay.Function([x], body).with_attr("note", text))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_is_read_back_from_its_literal(text):
    for whole in (text, f"a\n{text}", f"{text}\nb", f"a\n\n{text}\n"):
        tree = ast.parse(f"x = {python_text(whole)}\n")
        assert len(tree.body) == 1 and ast.literal_eval(tree.body[0].value) == whole
        assert all(line.isprintable() for line in python_text(whole).split("\n"))
    assert python_text("def @main() {\n  1\n}") == "r'''def @main() {\n  1\n}'''"


def test_random_texts_are_read_back_from_their_literals():
    for parts in itertools.product(["'", '"', "\\", "\n", "a", "#", "\r"], repeat=5):
        text = "".join(parts)
        assert ast.literal_eval(python_text(text)) == text, repr(text)
        assert shlex.split(shell_words(text, "x")) == [text, "x"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_comment_is_one_comment(text):
    assert ast.parse(f"{python_comment(text)}\npass").body[0].lineno == 2


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_code_of_an_extracted_part_is_an_import_and_an_assignment(text):
    session = Session(study.explore(program(text), 0), None)
    view = session.frames.views[0]
    ids = [n.id for n in view.nodes if n.operator in ("tanh", "annotation.compiler_begin")]
    found = session.ask("extract", 0, ids, "part")
    tree = ast.parse(found["code"])
    assert [type(s) for s in tree.body] == [ast.ImportFrom, ast.Assign], found["code"]
    assert ast.unparse(tree.body[1].targets[0]) == "part" and ast.unparse(tree.body[1].value.func) == "relay.parse"
    assert ast.literal_eval(tree.body[1].value.args[0]) == found["text"]
    assert "is not a name" in session.ask("extract", 0, ids, "class")["error"]


def changing(name: str) -> FunctionPass:
    """A pass of any name that changes the numbers and that no text makes."""

    def run(func, mod, ctx):
        return relay.Function(func.params, relay.exp(func.body), func.ret_type, func.type_params, func.attrs)

    return FunctionPass(PassInfo(0, name), run)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_statements_of_a_reproducer_do_not_depend_on_the_program(text):
    finding = study.bisect(study.load(program(text)), passes=[changing(text or "plain")])
    plain = study.bisect(study.load(program("x")), passes=[changing("plain")])
    tree, expected = ast.parse(finding.reproducer()), ast.parse(plain.reproducer())
    assert [type(s) for s in tree.body] == [type(s) for s in expected.body]
    values = {s.targets[0].id: s.value for s in tree.body if isinstance(s, ast.Assign)}
    assert ast.literal_eval(values["BEFORE"]) == finding.stage.before.astext()
    assert ast.literal_eval(values["AFTER"]) == finding.stage.result.astext()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_copied_pipelines_have_the_statements_and_words_of_any_other(text):
    mod = program("x")
    made = [relay.transform.ToMixedPrecision(), relay.transform.AnnotateTarget([text]), changing(text or "plain")]
    pipeline = study.Pipeline(mod, ["FoldConstant"])
    pipeline.items[:] = [study.pipeline.item_of(p) for p in made]
    tree = ast.parse(pipeline.python())
    assert [type(s) for s in tree.body] == [ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.With]
    targets = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func).endswith("AnnotateTarget")]
    assert [ast.literal_eval(a.value) for c in targets for a in c.keywords] == [[text]]
    words = shlex.split(pipeline.command(text), comments=True)
    assert words[:2] == ["relaylab", "passes"] and text in words[2:] and words[-2] == "-p"
    assert study.split(words[-1])[1] == f"AnnotateTarget(targets={[text]!r})"


def test_a_list_of_passes_is_split_outside_of_texts():
    assert study.split("A(x='a,)(b'), B(y=[\"c,]\"]),C") == ["A(x='a,)(b')", 'B(y=["c,]"])', "C"]


def skeleton(source: str) -> str:
    """Dot text with its quoted texts, and the ids that need no quotes, taken out."""
    return re.sub(r"=\w+", '=""', re.sub(r'"(?:[^"\\]|\\.)*"', '""', source))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_labels_of_dot_are_texts(text):
    pytest.importorskip("graphviz")
    for label in (text, f"<{text}>", "<img src='/etc/passwd'>"):
        drawn = (skeleton(dot_text(viz.view(program(t), title=t))) for t in (label or "x", "x"))
        assert len(set(drawn)) == 1, dot_text(viz.view(program(label), title=label))
