"""Single rewrites told whole: pattern and result, names, changed lines, code; what passes without rules touched."""

from __future__ import annotations

import inspect

import pytest

from relaylab import relay, study
from relaylab.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard
from relaylab.study.rewriting.rewrites import followers, of_segment
from relaylab.transform.simplify import simplify_expr

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = nn.relu(%x);
  %1 = sqrt(%0);
  %2 = divide(%x, %1);
  %3 = reshape(%2, newshape=[3, 2]);
  %4 = reshape(%3, newshape=[6]);
  %5 = reshape(%4, newshape=[2, 3]);
  add(%5, zeros_like(%5))
}"""


@pytest.fixture(scope="module")
def simplified():
    return study.explore(relay.parse(TEXT), passes=["SimplifyExpr", "FuseOps"]).pipeline


def test_text_of_every_rewrite(simplified):
    """The rules of SimplifyExpr as they fired, in words and lines."""
    assert [str(r) for r in of_segment(simplified.segments[0])] == [
        "1. reciprocal_sqrt  simplify_expr.py:87  "
        "a / sqrt(x) is a * rsqrt(x), except for integers, of which rsqrt keeps nothing.\n"
        "   numerator = %x: Tensor[(2, 3), float32]\n"
        "   x = `nn.relu`: Tensor[(2, 3), float32]\n"
        "  … 1 equal line\n"
        "- %0 = sqrt(%x);\n"
        "- divide(%numerator, %0)\n"
        "+ %1 = rsqrt(%x);\n"
        "+ multiply(%numerator, %1)",
        "2. two_reshapes  simplify_shapes.py:21  Two reshapes are one.\n"
        "   x = `multiply`: Tensor[(2, 3), float32]\n"
        "  … 3 equal lines\n"
        "- %0 = reshape(%x, newshape=[3, 2]);\n"
        "- reshape(%0, newshape=[6])\n"
        "+ reshape(%x, newshape=[6])",
        "3. two_reshapes  simplify_shapes.py:21  Two reshapes are one.\n"
        "   x = `multiply`: Tensor[(2, 3), float32]\n"
        "  … 3 equal lines\n"
        "- %0 = reshape(%x, newshape=[6]);\n"
        "- reshape(%0, newshape=[2, 3])\n"
        "+ reshape(%x, newshape=[2, 3])",
        "4. zeros_like  simplify_expr.py:40  zeros_like(x) is zeros of x's shape.\n"
        "   like = `reshape`: Tensor[(2, 3), float32]\n"
        "  … 4 equal lines\n"
        "- zeros_like(%like)\n"
        '+ zeros(shape=[2, 3], dtype="float32")',
        "5. identity  simplify_expr.py:99  x + 0, x - 0, x * 1 and x / 1 are x, if the type stays; "
        "a zero of floats keeps its sign.\n"
        "   x = `reshape`: Tensor[(2, 3), float32]\n"
        "  … 4 equal lines\n"
        '- %0 = zeros(shape=[2, 3], dtype="float32");\n'
        "- add(%x, %0)\n"
        "+ %x",
    ]


def shown(view):
    """A small picture: title and type of its boxes, its edges by titles; holes in brackets."""
    names = {n.id: f"<{n.title}>" if n.kind == "hole" else n.title for n in view.nodes}
    return sorted(names.values()), sorted((names[e.source], names[e.target]) for e in view.edges)


def test_pattern_and_result_are_small_pictures_with_holes(simplified):
    root, merged, *_, identity = of_segment(simplified.segments[0])
    assert [shown(p.view) for p in root.pair] == [
        (["<numerator>", "<x>", "divide", "sqrt"], [("<numerator>", "divide"), ("<x>", "sqrt"), ("sqrt", "divide")]),
        (
            ["<numerator>", "<x>", "multiply", "rsqrt"],
            [("<numerator>", "multiply"), ("<x>", "rsqrt"), ("rsqrt", "multiply")],
        ),
    ]
    assert [shown(p.view)[0] for p in merged.pair] == [["<x>", "reshape", "reshape"], ["<x>", "reshape"]]
    assert [shown(p.view)[0] for p in identity.pair] == [["<x>", "add", "zeros"], ["<x>"]]
    assert {n.type for n in merged.pair[1].view.nodes} == {"Tensor[(2, 3), float32]", "Tensor[(6), float32]"}
    behind = root.pair[0].nodes
    assert {n.title: behind[n.id] for n in root.pair[0].view.nodes}["divide"] is root.before


def test_the_code_is_that_of_the_rule(simplified, tmp_path):
    code = of_segment(simplified.segments[0])[0].code
    lines, first = inspect.getsourcelines(simplify_expr.reciprocal_sqrt.build)
    assert (code.text, code.line, code.file) == ("".join(lines).rstrip(), first, simplify_expr.__file__)


def test_the_next_rewrite_at_the_same_node(simplified):
    found = of_segment(simplified.segments[0])
    # what the division became is read by the reshapes, which are one after the other the same node
    assert followers(found, simplified.segments[0].main) == [-1, 2, -1, 4, -1]


def test_callbacks_are_told_as_rules_are():
    class Double(DFPatternCallback):
        """x + x is 2 * x."""

        def __init__(self):
            super().__init__(require_type=True)
            self.x = wildcard()
            self.pattern = is_op("add")(self.x, is_op("multiply")(self.x, is_constant()))

        def callback(self, pre, post, node_map):
            return relay.multiply(node_map[self.x][0], relay.const(3.0))

    @relay.transform.function_pass(opt_level=0)
    def Doubled(func, mod, ctx):
        return rewrite(Double(), func)

    x = relay.var("x", shape=(4,))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(x) + relay.exp(x) * relay.const(2.0)))
    (found,) = study.rewrites(relay.transform.EliminateCommonSubexpr()(relay.transform.InferType()(mod)), Doubled)
    assert found.rule == "Double" and found.location.startswith("test_rewrites.py:")
    assert "class Double" in found.code.text and [b.name for b in found.bindings] == ["any1"]
    assert [shown(p.view)[0] for p in found.pair] == [["<any1>", "add", "multiply"], ["<any1>", "multiply"]]
    assert "- %0 = multiply(%any1, 2f);" in str(found) and "+ multiply(%any1, 3f)" in str(found)


def test_a_pass_without_rules_shows_what_it_touched(simplified):
    (kernel,) = of_segment(simplified.segments[1])
    assert kernel.rule == "nn.relu, rsqrt, multiply … → one kernel: nn.relu, rsqrt, multiply …"
    assert [shown(p.view)[0] for p in kernel.pair] == [
        ["<%x>", "multiply", "nn.relu", "reshape", "rsqrt"],
        ["<%x>", "multiply", "nn.relu", "reshape", "rsqrt"],
    ]
    assert [g.kind for g in kernel.pair[1].view.groups] == ["primitive"] and "class FuseOps" in kernel.code.text


def test_constants_have_one_name_on_both_sides():
    """Their numbers in the meta data are others: `-mean` stood there as what was beta before."""
    text = study.rewrites("resnet8", "SimplifyInference")[0].text
    assert "nn.batch_norm(%data, bn_data_gamma, bn_data_beta, bn_data_moving_mean, bn_data_moving_var" in text
    assert "negative(bn_data_moving_mean)" in text and "meta[" not in text


@pytest.mark.parametrize(
    "name, operator",
    [("SimplifyInference", "nn.batch_norm"), ("CanonicalizeOps", "nn.bias_add"), ("AlterOpLayout", "nn.conv2d")],
)
def test_every_operator_that_a_pass_replaced_is_in_one_pair(name, operator):
    found = study.rewrites("resnet8", name)
    there = study.operators(study.load("resnet8").mod)[operator]
    assert sum(r.rule.startswith(f"{operator} → ") for r in found) == there > 0
    where = [i for r in found for i in r.where.before]
    assert len(where) == len(set(where)), "each node is in one pair"


def test_all_of_them_are_shown_and_written(simplified, tmp_path):
    found = study.rewrites(relay.parse(TEXT), "SimplifyExpr")
    page = found._repr_mimebundle_()["text/html"]
    assert page.count("<img") == 5 and "reciprocal_sqrt" in page and "\x1b" not in str(found)
    assert found.save(tmp_path / "all.pdf").read_bytes().startswith(b"%PDF")
    assert "rsqrt" in found[0].save(tmp_path / "one.svg").read_text()
    assert str(study.rewrites(relay.parse(TEXT), "FoldScaleAxis")) == "no rewrite"
