"""Random programs as text, from a seed; knows nothing of the project that reads them.

`module(seed)` is a legal module: every name is bound before its use, graph variables are numbered
through. `mutated(text, rng)` is a text with something wrong, most of the time.
"""

from __future__ import annotations

import random
import re

DTYPES = ("float32", "int32", "int64", "float16", "bool", "float64", "int8", "uint8")
UNARY = ("log", "exp", "negative", "nn.relu", "tanh")
BINARY = ("add", "multiply", "subtract", "maximum", "less")
ATOMS = "1 -2 3i64 -4i16 1.5f -1e-05f 0.1f64 2f16 inff True Red Nil () @f".split()
INFIX = ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")
TYPES = """
type List[A] { Cons(A, List[A]), Nil, }
type Color { Red, Green, Mix(Color, Color, float32) }
extern type Opaque
"""
CONSTRUCTORS = (("Nil", 0), ("Cons", 2), ("Red", 0), ("Green", 0), ("Mix", 3))


class Program:
    """Builds one module; `self.scope` holds the variables that may be used at this place."""

    def __init__(self, seed: int, size: int = 6):
        self.rng = random.Random(seed)
        self.size = size
        self.numbers = 0
        self.fresh = 0
        self.scope: list[str] = []
        self.graph: list[str] = []
        self.bound: list[str] = []
        self.needs: dict[str, set[str]] = {}

    def module(self) -> str:
        functions = [self.definition(name) for name in ("main", "f", "g/h")]
        return '#[version = "0.0.5"]\n' + TYPES + "\n".join(functions)

    def definition(self, name: str) -> str:
        self.scope, self.graph = [], []
        return f"def @{name}" + self.function(3)

    # ---- types

    def type(self, depth: int = 2) -> str:
        pick = self.rng.randrange(8 if depth else 3)
        if pick < 2:
            dims = ", ".join(self.rng.choice(("1", "2", "16", "?")) for _ in range(self.rng.randrange(4)))
            return f"Tensor[({dims}), {self.rng.choice(DTYPES)}]"
        if pick == 2:
            return self.rng.choice((*DTYPES, "Color", "Opaque"))
        inside = [self.type(depth - 1) for _ in range(self.rng.randrange(1, 3))]
        if pick == 3:
            return f"({inside[0]},)" if len(inside) == 1 else f"({', '.join(inside)})"
        if pick == 4:
            return f"fn ({', '.join(inside)}) -> {self.type(depth - 1)}"
        if pick == 5:
            return f"List[{inside[0]}]"
        if pick == 6:
            return f"ref({inside[0]})"
        return "()"

    # ---- expressions

    def name(self, stem: str = "x") -> str:
        self.fresh += 1
        return self.rng.choice((f"%{stem}{self.fresh}", f"%{stem}", f"%{stem}/{self.fresh}"))

    def function(self, depth: int) -> str:
        outer = self.enter()
        params = []
        for _ in range(self.rng.randrange(4)):
            name = self.name("p")
            while any(p.split(":")[0] == name for p in params):
                name = self.name("p")
            params.append(name + (f": {self.type()}" if self.rng.random() < 0.8 else ""))
        self.bind(*(p.split(":")[0] for p in params))
        if self.rng.random() < 0.3:
            params.append(self.rng.choice(("Primitive=1", 'Compiler="x\\"y"', "a.b=[1, [2f, None], True]")))
        result = f" -> {self.type()}" if self.rng.random() < 0.5 else ""
        text = f"({', '.join(params)}){result} {{ {self.block(depth)} }}"
        self.leave(outer)
        return text

    def block(self, depth: int) -> str:
        """Statements and a result; the variables that they bind are not visible outside."""
        outer = self.enter()
        lines = [self.statement(depth) for _ in range(self.rng.randrange(self.size))]
        text = " ".join([*lines, self.expr(depth)])
        self.leave(outer)
        return text

    # ---- scopes

    def bind(self, *names: str) -> None:
        self.scope += names
        self.bound += names

    def enter(self) -> tuple[list[str], int]:
        return list(self.scope), len(self.bound)

    def leave(self, outer: tuple[list[str], int]) -> None:
        """Forget inner variables, and the nodes that need them; other nodes may be used from outside too."""
        self.scope, count = outer
        visible = set(self.scope) - set(self.bound[count:])
        self.graph = [g for g in self.graph if self.needs[g] <= visible]

    def define(self, value: str) -> str:
        name = f"%{self.numbers}"
        self.numbers += 1
        used = re.findall(r"%[A-Za-z0-9_/]+", value)
        self.needs[name] = set().union(*(self.needs.get(u, {u}) for u in used))
        self.graph.append(name)
        return name

    def statement(self, depth: int) -> str:
        pick = self.rng.random()
        if pick < 0.6:
            value = self.expr(depth)
            return f"{self.define(value)} = {value};"
        if pick < 0.95:
            value, name = self.expr(depth), self.name("l")
            self.bind(name)
            return f"let {name}{': ' + self.type() if self.rng.random() < 0.3 else ''} = {value};"
        return f"{self.expr(depth)};"

    def expr(self, depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.35:
            return self.atom()
        return self.rng.choice(self.FORMS)(self, depth - 1)

    def atom(self) -> str:
        known = [*self.scope, *self.graph, *self.graph, *self.graph]
        if known and self.rng.random() < 0.8:
            return self.rng.choice(known)
        return self.rng.choice(ATOMS)

    def args(self, depth: int, count: int) -> str:
        return ", ".join(self.expr(depth) for _ in range(count))

    def call(self, depth: int) -> str:
        if self.rng.random() < 0.5:
            return f"{self.rng.choice(UNARY)}({self.args(depth, 1)})"
        return f"{self.rng.choice(BINARY)}({self.args(depth, 2)})"

    def infix(self, depth: int) -> str:
        return (
            f"({self.expr(depth)} {self.rng.choice(INFIX)} {self.expr(depth)} {self.rng.choice(INFIX)} {self.atom()})"
        )

    def attributes(self, depth: int) -> str:
        attrs = self.rng.choice(("axis=1", "axis=-1, exclude=True", "keepdims=True, axis=[0, 1]", ""))
        return f"sum({self.expr(depth)}{', ' + attrs if attrs else ''})"

    def tuple(self, depth: int) -> str:
        count = self.rng.randrange(1, 4)
        return f"({self.args(depth, 1)},)" if count == 1 else f"({self.args(depth, count)})"

    def projection(self, depth: int) -> str:
        return f"({self.expr(depth)}).{self.rng.randrange(3)}"

    def apply(self, depth: int) -> str:
        return f"{self.rng.choice(('@f', '@g/h', *self.scope))}({self.args(depth, self.rng.randrange(3))})"

    def construct(self, depth: int) -> str:
        name, count = self.rng.choice(CONSTRUCTORS)
        return f"{name}({self.args(depth, count)})" if count else name

    def branch(self, depth: int) -> str:
        cond = self.expr(depth)
        return f"if ({cond}) {{ {self.block(depth)} }} else {{ {self.block(depth)} }}"

    def literal(self, depth: int) -> str:
        return f"fn {self.function(depth)}"

    def recursive(self, depth: int) -> str:
        self.fresh += 1
        outer = self.enter()
        name = f"%loop{self.fresh}"
        self.bind(name)
        value = self.function(depth)
        text = f"(let {name} = fn {value}; {self.expr(depth)})"
        self.leave(outer)
        return text

    def cell(self, depth: int) -> str:
        name, count = self.rng.choice((("ref", 1), ("ref_read", 1), ("ref_write", 2)))
        return f"{name}({self.args(depth, count)})"

    def match(self, depth: int) -> str:
        data = self.atom()
        clauses = "".join(self.clause(depth) for _ in range(self.rng.randrange(1, 4)))
        return f"match{self.rng.choice(('', '?'))} ({data}) {{ {clauses} }}"

    def clause(self, depth: int) -> str:
        outer = self.enter()
        lhs = self.pattern(2)
        text = f"{lhs} => {{ {self.block(depth)} }}, "
        self.leave(outer)
        return text

    def pattern(self, depth: int) -> str:
        pick = self.rng.randrange(4 if depth else 2)
        if pick == 0:
            return "_"
        if pick == 1:
            self.fresh += 1
            self.bind(f"%m{self.fresh}")
            return f"%m{self.fresh}"
        if pick == 2:
            return f"({self.pattern(depth - 1)}, {self.pattern(depth - 1)})"
        name, count = self.rng.choice(CONSTRUCTORS)
        inside = ", ".join(self.pattern(depth - 1) for _ in range(count))
        return f"{name}({inside})" if count else name

    FORMS = (
        call, call, call, infix, attributes, tuple, projection, apply, construct,
        branch, literal, recursive, cell, match,
    )  # fmt: skip


def module(seed: int, size: int = 6) -> str:
    """A legal module."""
    return Program(seed, size).module()


FRAGMENTS = (
    "(", ")", "{", "}", "[", "]", ",", ";", "=", "=>", "->", ".", "%", "@", "#", '"', "/*", "*/", "//", "\\",
    "let ", "fn ", "def ", "type ", "extern ", "match ", "if ", "else ", "free_var ", "ref", "meta[relay.Constant][0]",
    "%x", "%0", "@main", "1", "1.5", "1e", "9999999999999999999999", "0f7", "nanf", "-", "True", "_", "?", "Nil",
    "Tensor[(", "axis=1", "é", "\r", "\0", "\u2028", "#[metadata]", '#[version = "0.0.5"]', "\n", " ", "nn.relu",
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """`text` with one to three changes: something cut, doubled, moved or put in."""
    for _ in range(rng.randrange(1, 4)):
        a, b = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        b = min(b, a + rng.choice((1, 1, 2, 5, 20, 200)))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:b] + text[a:b] + text[b:]
        elif kind == 2:
            text = text[:a] + rng.choice(FRAGMENTS) + text[a:]
        else:
            text = text[:a] + rng.choice(FRAGMENTS) + text[b:]
    return text
