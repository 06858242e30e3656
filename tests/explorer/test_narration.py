"""What a pass did, in sentences."""

from __future__ import annotations

import pytest

from relaylab import explorer, relay, study
from relaylab.support.errors import RelayError
from relaylab.support.words import counted


@pytest.fixture(scope="module")
def resnet():
    return study.explore("resnet8")


@pytest.mark.parametrize(
    "name, sentences",
    [
        ("RemoveUnusedFunctions", ["RemoveUnusedFunctions changed nothing."]),
        (
            "SimplifyInference",
            [
                "No longer there: 8 nn.batch_norm.",
                "New, from nn.batch_norm: 23 multiply, 16 add, 16 expand_dims, 8 sqrt, 8 divide, 8 negative.",
            ],
        ),
        ("CanonicalizeOps", ["Changed, was nn.bias_add: 1 add."]),
        ("FuseOps", ["35 operators went into 15 kernels."]),
    ],
)
def test_passes_in_words(resnet, name, sentences):
    assert explorer.in_words(resnet, name)[: len(sentences)] == sentences


def test_constants_are_computed_ahead(resnet):
    assert explorer.in_words(resnet, "FoldConstant")[0].startswith(
        "Computed ahead of time, into constants: 16 expand_dims, and what only fed them"
    )


def test_what_decided_an_if_fed_no_constant():
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: float32) { if (less(1f, 2f)) { multiply(%x, sqrt(add(1f, 3f))) } else { %x } }""")
    told = explorer.in_words(study.explore(mod, passes=["FoldConstant"]), 0)
    assert told[:2] == [
        "Computed ahead of time, into constants: 1 sqrt, and what only fed them: 1 add.", "No longer there: 1 less."
    ]  # fmt: skip


def test_functions_that_came_or_went_are_named():
    mod = relay.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { nn.relu(%x) }
def @unused(%x: Tensor[(2, 3), float32]) { exp(%x) }""")
    told = explorer.in_words(study.explore(mod, passes=["RemoveUnusedFunctions"]), 0)
    assert told == ["Function removed: @unused.", "No longer there: 1 exp."]


def test_what_a_field_of_a_tuple_was_is_named_and_other_values_are_no_names(resnet):
    assert "Changed, was nn.batch_norm.0: 8 add." in explorer.in_words(resnet, "SimplifyInference")
    told = " ".join(explorer.in_words(resnet, "FoldScaleAxis"))
    assert "other values of weight" in told and "const" not in told and "_weight" not in told


def test_rules_and_errors_are_told():
    mod = relay.parse(
        '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) '
        "{ reshape(reshape(%x, newshape=[3, 2]), newshape=[6]) }"
    )
    assert "Rules that fired: 1 two_reshapes." in explorer.in_words(study.explore(mod, passes=["SimplifyExpr"]), 0)

    @relay.transform.module_pass(opt_level=0)
    def Fails(mod, ctx):
        raise ValueError("on purpose")

    broken = study.explore(mod, passes=[Fails, "FuseOps"])
    assert explorer.in_words(broken, 0) == ["Fails stopped: on purpose"] and explorer.in_words(broken, 1) == [
        "FuseOps did not run."
    ]


def test_passes_that_are_not_there(resnet):
    with pytest.raises(RelayError, match="did you mean `FuseOps`"):
        explorer.in_words(resnet, "FusOps")
    with pytest.raises(RelayError, match="not one at 99"):
        explorer.in_words(resnet, 99)


def test_one_is_one():
    """Numbers agree with what they count."""
    x = relay.var("x", shape=(2, 3))
    found = study.explore(relay.IRModule.from_expr(relay.nn.relu(x)), passes=["FuseOps"])
    assert explorer.in_words(found, "FuseOps")[0] == "1 operator went into 1 kernel."
    words = [counted(n, what) for n, what in ((0, "node"), (1, "pass"), (2, "pass"), (1, "more line"), (3, "edge"))]
    assert words == ["0 nodes", "1 pass", "2 passes", "1 more line", "3 edges"]
