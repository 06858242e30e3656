"""What the most frequent errors mean, with an example of each and the same example mended."""

from __future__ import annotations

from typing import NamedTuple

PREAMBLE = """import numpy as np
import relaylab
from relaylab import relay

x = relay.var("x", shape=(2, 3))
"""
"""What stands before every example."""


class Lesson(NamedTuple):
    """What an error means, code that raises it, and that code mended."""

    meaning: str
    example: str
    mended: str


def _text(wrong: str, right: str) -> tuple[str, str]:
    """Two programs in Relay's text, read."""
    return f"relay.parse({wrong!r})", f"relay.parse({right!r})"


def _typed(wrong: str, right: str) -> tuple[str, str]:
    """Two expressions, inferred."""
    line = "relay.transform.InferType()(relay.IRModule.from_expr({}))"
    return line.format(wrong), line.format(right)


LESSONS: dict[str, Lesson] = {
    code: Lesson(meaning, *pair)
    for code, (meaning, pair) in {
        "parse.unexpected-token": (
            "The text has something else where the grammar asks for one of a few things. Often a `;`, a comma or a "
            "bracket is missing before the place that is marked.",
            _text("fn (%x: int32) { let %y = %x add(%y, 1) }", "fn (%x: int32) { let %y = %x; add(%y, 1) }"),
        ),
        "parse.unexpected-end": (
            "The text ends within something that is still open: a bracket, a binding, a function.",
            _text("fn (%x: int32) { add(%x, 1)", "fn (%x: int32) { add(%x, 1) }"),
        ),
        "parse.unbound-variable": (
            "A variable is used that no parameter and no `let` binds at this place: names end with the function or the "
            "braces in which they are bound.",
            _text("fn (%data: int32) { add(%dat, 1) }", "fn (%data: int32) { add(%data, 1) }"),
        ),
        "parse.unbound-graph-variable": (
            "A number such as `%0` is used before the line that binds it, or in another function than that which does.",
            _text("fn (%x: int32) { add(%0, %x) }", "fn (%x: int32) { %0 = negative(%x); add(%0, %x) }"),
        ),
        "parse.unknown-operator": (
            "No operator and no constructor has this name. Operators of networks are in `nn`, names are whole words.",
            _text("fn (%x: float32) { mul(%x, 2f) }", "fn (%x: float32) { multiply(%x, 2f) }"),
        ),
        "parse.unknown-attribute": (
            "The operator has no attribute of this name; `help(relay.nn.conv2d)` lists what one has.",
            _text("fn (%x: float32) { sum(%x, axs=[]) }", "fn (%x: float32) { sum(%x, axis=[]) }"),
        ),
        "parse.missing-attribute": (
            "The operator has an attribute without default, which the text must give.",
            _text("fn (%x: float32) { cast(%x) }", 'fn (%x: float32) { cast(%x, dtype="int8") }'),
        ),
        "parse.float-suffix": (
            "Numbers with a point are floats of a width, which their suffix says: `f` is float32.",
            _text("fn (%x: float32) { add(%x, 1.5) }", "fn (%x: float32) { add(%x, 1.5f) }"),
        ),
        "parse.documentation": (
            "Pages about Relay show a syntax that no release reads: `data` for data types and `case` for clauses.",
            _text("data Bit { On : () -> Bit }", "type Bit { On, }"),
        ),
        "parse.version": (
            "The text says that it is of another version than 0.0.5, whose meaning is not known here.",
            _text('#[version = "0.0.9"]\ndef @main() { 1 }', '#[version = "0.0.5"]\ndef @main() { 1 }'),
        ),
        "type.mismatch": (
            "Two types must be one and are not: what is given and what is asked for are both in the message.",
            _text("fn (%x: float32) -> int32 { %x }", "fn (%x: float32) -> float32 { %x }"),
        ),
        "type.unresolved": (
            "Nothing in the program says what type this variable has; its uses leave several open.",
            (
                'relay.transform.InferType()(relay.IRModule.from_expr(relay.var("y") + x))',
                'relay.transform.InferType()(relay.IRModule.from_expr(relay.var("y", shape=(3,)) + x))',
            ),
        ),
        "type.operator": (
            "The types of a call's arguments do not fit the operator: shapes that do not go together, a rank or a data "
            "type that it does not take. The message names the operator and what it found.",
            _typed("x + relay.const(np.ones((2, 4)))", 'x + relay.const(np.ones((2, 3), "float32"))'),
        ),
        "module.free-variable": (
            "A function of a module uses a variable that is none of its parameters.",
            ("relay.IRModule.from_expr(relay.Function([], x))", "relay.IRModule.from_expr(relay.Function([x], x))"),
        ),
        "build.target": (
            'What is given as target is none: it is text such as "llvm", or a Target.',
            (
                "relay.build(relay.IRModule.from_expr(x), target=object())",
                'relay.build(relay.IRModule.from_expr(x), target="llvm")',
            ),
        ),
        "target.kind": (
            "Code is made for CPUs, through LLVM. Programs for TVM that name a GPU run with `relaylab run-tvm FILE`, "
            "which reads it as this CPU.",
            (
                'relay.build(relay.IRModule.from_expr(x), target="cuda")',
                'relay.build(relay.IRModule.from_expr(x), target="llvm")',
            ),
        ),
        "build.no-main": (
            "Building compiles the function `main`, and the module has none.",
            (
                'relay.build(relay.IRModule({relay.GlobalVar("f"): relay.Function([x], x)}), "llvm")',
                'relay.build(relay.IRModule({relay.GlobalVar("main"): relay.Function([x], x)}), "llvm")',
            ),
        ),
        "build.not-static": (
            "The graph executor runs networks whose shapes are all known, without branches on data, closures or data "
            "types. The virtual machine runs every program.",
            (
                'relay.build(relay.parse("fn (%b: bool) { if (%b) { 1 } else { 2 } }"), "llvm")',
                'mod = relay.parse("fn (%b: bool) { if (%b) { 1 } else { 2 } }")\n'
                'relay.create_executor("vm", mod).evaluate()(True)',
            ),
        ),
        "runtime.missing-input": (
            "A network is run without a value for one of its inputs.",
            (
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm").run()',
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm").run(x=np.ones((2, 3), "float32"))',
            ),
        ),
        "runtime.shape-mismatch": (
            "An array has another shape than the input that it is given for.",
            (
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm").run(x=np.ones(3, "float32"))',
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm").run(x=np.ones((2, 3), "float32"))',
            ),
        ),
        "runtime.device": (
            "Arrays and code live on cpu(0). Other devices can be named; `relaylab run-tvm` reads them as this CPU.",
            (
                "relaylab.runtime.array([1.0], relaylab.runtime.cuda(0))",
                "relaylab.runtime.array([1.0], relaylab.runtime.cpu(0))",
            ),
        ),
        "name.unknown": (
            "A module of relaylab has no such name: mistyped, in another module, or not kept.",
            ("relay.transform.FuseOp()", "relay.transform.FuseOps()"),
        ),
        "call.arguments": (
            "A function is called with an argument too many or too few, or one that it does not know.",
            ('relay.var("x", shap=(2,))', 'relay.var("x", shape=(2,))'),
        ),
        "call.wrong-kind": (
            "An argument is of a kind that the function does not take.",
            ("relay.bind(3, {})", "relay.bind(x, {})"),
        ),
        "ir.python-number": (
            "An operator is given a Python number where it takes an expression.",
            ("relay.nn.relu(3)", "relay.nn.relu(relay.const(3.0))"),
        ),
        "attrs.unknown": (
            "An operator has no such attribute: `help` of the operator lists those that it has.",
            ('relay.nn.leaky_relu(x, alpha=0.1).attrs["beta"]', 'relay.nn.leaky_relu(x, alpha=0.1).attrs["alpha"]'),
        ),
        "explore.unknown": (
            "What is to be explored is no network of relay.testing, and no file.",
            ('relaylab.study.load("resnett18")', 'relaylab.study.load("mlp")'),
        ),
        "explore.kind": (
            "What is to be explored is no name, no path, no module, and no pair of a module and its parameters.",
            ("relaylab.study.load(3)", 'relaylab.study.load("mlp")'),
        ),
        "bind.wrong-type": (
            "A parameter that is built in has another shape than the program says.",
            (
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm", params={"x": np.ones(4, "float32")})',
                'values = np.ones((2, 3), "float32")\n'
                'relay.build(relay.IRModule.from_expr(relay.nn.relu(x)), "llvm", params={"x": values})',
            ),
        ),
        "pass.unknown": (
            "There is no pass of this name; `relaylab passes` lists all.",
            (
                'relay.transform.run_pipeline(relay.IRModule.from_expr(x), "FuseOp")',
                'relay.transform.run_pipeline(relay.IRModule.from_expr(x), "FuseOps")',
            ),
        ),
    }.items()
}
