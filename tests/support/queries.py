"""The one table of queries: what each means in a small picture, and where a wrong one is wrong.

The reader in Python (tests/viz) and that of the explorer's script (tests/script) are held to it.
"""

from __future__ import annotations

from relaylab.viz import Attr, Edge, Group, Node, View

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
"""A picture of four nodes in two groups."""
MEANT = [
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
    ("op:nn.relu, role:added", "r"),
    ("kind:call | kind:tuple & !op:relu", "c r t"),
    ("attr:layout", "c"),
    ("attr:'strides=(2, 2)'", "c"),
    ("users>=0 !inputs>0 kind:var", "x"),
    ("nothing", ""),
    ("conv2d  float16", "c"),
    ("/a\\/b/", ""),
    ("cost=5e6", "c"),
    ("bytes_written>0", ""),
    ("time>0", ""),
]
"""Queries and the ids that they mean."""
WRONG = [
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
    ("'abc", 0, "quotation"),
    ("op:relu | & x", 10, "missing"),
    ("cost>1.2.3", 5, "not a number"),
    ("(op:relu", 0, "parenthesis"),
    ("attr:x=(2, y", 0, "bracket"),
    ("]", 0, "alone"),
    ("x }", 2, "alone"),
    ("x]y", 1, "alone"),
    ("cost > 5", 5, "no spaces"),
    ("cost >5", 5, "no spaces"),
    ("op:relu >=", 8, "no spaces"),
    ("surprise>0", 0, "there is no figure"),
    ("op:relu & byts>0", 10, "bytes"),
]
"""Queries that cannot be understood, the place where, and a word of the reason."""
COMPLETED = [
    ("", 0, ["op:", "dtype:"]),
    ("d", 0, ["dtype:", "op:nn.conv2d"]),
    ("op:", 0, ["op:nn.conv2d", "op:nn.relu"]),
    ("op:re", 0, ["op:nn.relu"]),
    ("!op:con", 1, ["op:nn.conv2d"]),
    ("kind:call & attr:st", 12, ["attr:strides", "attr:strides=(2, 2)"]),
    ("dtype:", 0, ["dtype:float32", "dtype:float16"]),
    ("group:", 0, ["group:@main", 'group:"conv + relu"']),
    ("M", 0, ["MACs>"]),
]
"""What stands before the cursor, where its last word begins, and the words that are offered first."""
