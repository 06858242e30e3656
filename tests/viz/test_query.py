"""The query language: fields, figures, expressions, and places of errors."""

from __future__ import annotations

import pytest

from relaylab.support.errors import RelayValueError
from relaylab.viz import Attr, Edge, Group, Node, View
from relaylab.viz.selection.query import select

MADE = View(
    "",
    (
        Node("x", "var", "%x", family="input", type="Tensor[(1, 4), float32]", group="f"),
        Node("c", "call", "nn.conv2d", "nn.conv2d", "fusable", "k", ("%layer1",), type="Tensor[(1, 8), float16]",
             attrs=(Attr("strides", "(2, 2)"), Attr("layout", '"NCHW"')), cost=(("MACs", 5e6), ("bytes read", 1e3))),
        Node("r", "call", "nn.relu", "nn.relu", "elementwise", "k", type="Tensor[(1, 8), float32]", role="added"),
        Node("t", "tuple", "tuple", type="(Tensor[(1, 8), float32], Tensor[(1, 8), int8])", text="(%0, %1)"),
    ),
    (Edge("x", "c"), Edge("c", "r"), Edge("c", "t"), Edge("r", "t", 1)),
    (Group("f", "function", "@main"), Group("k", "primitive", "conv + relu", "f", cost=(("MACs", 7e6),))),
).check()  # fmt: skip


@pytest.mark.parametrize(
    "query, ids",
    [
        ("", ""),
        ("op:nn.conv2d", "c"),
        ("op:relu", "r"),
        ("op:/^nn\\./", "c r"),
        ("op:conv", ""),
        ("dtype:float32", "x r t"),
        ("dtype:int8 | dtype:float16", "c t"),
        ("type:(1,4)", "x"),
        ("attr:strides=(2, 2)", "c"),
        ("attr:strides=[2,2]", "c"),
        ("attr:strides", "c"),
        ("attr:/stride.*2/", "c"),
        ("name:%layer", "c"),
        ("name:/^%/", "x c"),
        ("kind:call & !role:added", "c"),
        ("kind:call !role:added", "c"),
        ("!kind:call & !kind:function & !kind:primitive", "x t"),
        ("role:added", "r"),
        ("cost>1e6", "c k"),
        ("cost>6e6", "k"),
        ("MACs<=5_000_000", "c"),
        ("bytes_read=1000", "c"),
        ("intensity>1000", "c"),
        ("inputs>=2", "t"),
        ("users>1", "c"),
        ("group:conv", "c r"),
        ("group:@main", "x c r k"),
        ("RELU", "r k"),
        ("/int\\d\\b/", "t"),
        ('"conv + relu"', "k"),
        ("op:conv2d | kind:tuple & role:added", "c"),
        ("(op:conv2d | kind:tuple) & dtype:int8", "t"),
        ("!(op:conv2d | kind:tuple | kind:function | kind:primitive)", "x r"),
        ("!!op:relu", "r"),
        ("text:'%0, %1'", "t"),
        ("family:fusable", "c"),
        ("id:t", "t"),
    ],
)
def test_what_a_query_means(query, ids):
    assert select(MADE, query) == tuple(ids.split())


@pytest.mark.parametrize(
    "query, place, word",
    [
        ("opp:relu", 0, "op"),
        ("kind:call &", 11, "missing"),
        ("| x", 0, "missing"),
        ("(x", 0, "never closed"),
        ("x)", 1, "never opened"),
        ("()", 1, "missing"),
        ("name:/[/", 6, "regular expression"),
        ("/abc", 0, "never closed"),
        ("cost>many", 5, "not a number"),
        ("op:", 3, "needs a value"),
        ("attr:x=(2", 0, "bracket"),
        ("!", 1, "missing"),
    ],
)
def test_errors_point_at_the_place(query, place, word):
    with pytest.raises(RelayValueError) as err:
        select(MADE, query)
    assert err.value.code == "viz.query" and word in str(err.value)
    assert err.value.place == f"{query}\n{' ' * place}^"


def test_deep_queries_do_not_recurse():
    assert select(MADE, "(" * 5000 + "op:relu" + ")" * 5000) == ("r",)
    assert select(MADE, "!" * 5001 + "op:relu") == ("x", "c", "t", "f", "k")
