"""Small programs that together use every kind of node, seeded random graphs, and what a PDF says."""

from __future__ import annotations

import random
import re
import zlib

import relaylab.op  # noqa: F401 (the operators that the text names)
from relaylab.ir import Call, Expr, Function, IRModule, Let, Op, TensorType, Tuple, Var
from relaylab.text import parse
from relaylab.transform.engine.infer_type import InferType
from relaylab.viz import Attr, Edge, Group, Node, Operand, View

SOURCES = {
    "closure": """
def @main(%x: Tensor[(1, 16), float32], %w: Tensor[(8, 16), float32]) {
  let %f = fn (%y: Tensor[(1, 8), float32]) { nn.relu(%y) };
  %0 = nn.dense(%x, %w, units=8);
  %1 = %f(%0);
  let %r = ref(%1);
  %2 = add(%1, 1f);
  let %u = ref_write(%r, %2);
  %3 = ref_read(%r);
  if (True) { %f(%3) } else { subtract(%1, 1f) }
}
""",
    "adt": """
type List[A] { Cons(A, List[A]), Nil, }
def @length[A](%xs: List[A]) -> int32 {
  match (%xs) {
    Cons(%h, %t) => { %0 = @length(%t); add(1, %0) },
    Nil => { 0 },
  }
}
def @main(%z: float32) -> int32 { %1 = Cons(%z, Nil); @length(%1) }
""",
    "fused": """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  %2 = fn (%p0: Tensor[(1, 4, 8, 8), float32], %p1: Tensor[(4, 4, 3, 3), float32], Primitive=1) {
    %0 = nn.conv2d(%p0, %p1, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]);
    %1 = add(%0, %p0);
    nn.relu(%1)
  };
  %3 = %2(%x, %w);
  %4 = (%3, %x);
  (%4, %4.0)
}
""",
    "dynamic": """
def @main(%x: Tensor[(?, 16), float32]) { %0 = nn.relu(%x); %1 = split(%0, indices_or_sections=2, axis=1); %1.0 }
""",
}


def program(name: str) -> IRModule:
    """One of the sources, typed."""
    return InferType()(parse('#[version = "0.0.5"]\n' + SOURCES[name]))


def relu(x: Expr) -> Call:
    return Call(Op.get("nn.relu"), [x])


def add(x: Expr, y: Expr) -> Call:
    return Call(Op.get("add"), [x, y])


def chain(length: int) -> IRModule:
    """`length` operators in a row."""
    x = Var("x", TensorType((4,)))
    y: Expr = x
    for _ in range(length):
        y = relu(y)
    return IRModule.from_expr(Function([x], y))


def lets(length: int) -> IRModule:
    """`length` nested lets."""
    x = Var("x", TensorType((4,)))
    names = [Var(f"v{i}") for i in range(length)]
    body: Expr = names[-1]
    for i in range(length - 1, -1, -1):
        body = Let(names[i], relu(names[i - 1] if i else x), body)
    return IRModule.from_expr(Function([x], body))


def diamonds(levels: int) -> IRModule:
    """Two to the `levels` paths through `levels` nodes."""
    x = Var("x", TensorType((4,)))
    y: Expr = x
    for _ in range(levels):
        y = add(y, y)
    return IRModule.from_expr(Function([x], y))


def all_used_at_the_end(count: int) -> IRModule:
    """Every value of a chain is also a field of the result: edges of quadratic length in sum."""
    x = Var("x", TensorType((4,)))
    values: list[Expr] = [x]
    for _ in range(count):
        values.append(relu(values[-1]))
    return IRModule.from_expr(Function([x], Tuple(values)))


def random_view(seed: int, nodes: int = 40) -> View:
    """A seeded view: forward edges, some backward ones, nested groups, rows and attributes of all lengths."""
    rng = random.Random(seed)
    groups = [Group("g0", "function", "@main")]
    for i in range(1, rng.randint(2, 7)):
        groups.append(
            Group(
                f"g{i}", rng.choice(("primitive", "branch", "let")), "group " * rng.randint(1, 6), rng.choice(groups).id
            )
        )
    made = []
    for i in range(nodes):
        rows = tuple(
            Operand(k, "weight", "var", "%w" * rng.randint(1, 12), "Tensor[(4), float32]")
            for k in range(rng.randint(0, 3))
        )
        made.append(
            Node(
                f"n{i}",
                rng.choice(("call", "var", "if", "tuple")),
                "op" * rng.randint(1, 9),
                operands=rows,
                attrs=(Attr("axis", "1"),) * rng.randint(0, 2),
                type="Tensor[(1, 64), float32]",
                group=rng.choice(groups).id,
            )
        )
    edges = {}
    for i in range(1, nodes):
        for position in range(rng.randint(1, 3)):
            edges[i, position] = Edge(f"n{rng.randrange(i)}", f"n{i}", position, label=rng.choice(("", "data")))
    for position in range(3):
        edges[-1, position] = Edge(
            f"n{rng.randrange(nodes // 2, nodes)}", f"n{rng.randrange(nodes // 2)}", 9 + position, "recursion"
        )
    return View(f"random {seed}", tuple(made), tuple(edges.values()), tuple(groups)).check()


def pdf_texts(data: bytes) -> list[str]:
    """The content streams of a PDF."""
    return [zlib.decompress(m).decode("ascii") for m in re.findall(rb"stream\n(.*?)\nendstream", data, re.S)]
