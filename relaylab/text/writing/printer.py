"""Expressions to text.

Every node that is not a variable, constant or name becomes a numbered line `%N = …;` in the scope
where it is first used; the result of a scope and the value of a `let` stand inline if nothing else
uses them. Lines are numbered in the order of their first use, arguments before what uses them
(census §2.5). Everything runs on an explicit stack and each node is written once.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import children, walk
from relaylab.support.trampoline import Task
from relaylab.text import hooks
from relaylab.text.reading.metadata import MetaWriter, commented
from relaylab.text.writing.attribute_text import dict_attributes
from relaylab.text.writing.doc import NL, Doc, braces, joined
from relaylab.text.writing.naming import UniqueNames, like_projection, variable_name
from relaylab.text.writing.nodes import FLAT, NESTED, parentheses, unknown
from relaylab.text.writing.type_text import TypeText

Annotate = Callable[[Expr], str]
_FLOW = (Call, Tuple, TupleGetItem)
_INLINE = (Var, Constant, GlobalVar, Op, Constructor)


class Printer:
    """Prints the functions of one program: numbers, names and meta data run through all of them."""

    def __init__(self, meta: bool = False, annotate: Annotate | None = None, spans: bool = False):
        self.meta = MetaWriter(stored=meta)
        self.types = TypeText(self.meta.sizes)
        self.stored, self.annotate, self.spans = meta, annotate, spans
        self.names = UniqueNames()
        self.count = 0
        self.dotted = False
        """Whether the program has variables like `%x.0`, so that field 0 of `%x` is written `(%x).0`."""
        self.start(None)

    def start(self, root: Expr | None, mod: IRModule | None = None) -> None:
        """Begin a function or an expression: nodes of others are not known in it."""
        self.left, self.typed, dotted, given = _survey(root)
        """How often each node is still going to be used; whether inference has seen the program."""
        self.given: set[Expr] = hooks.untold(root, mod) if root is not None and given else set()
        """The typed calls whose type arguments nothing else tells."""
        self.dotted = self.dotted or dotted
        self.spelled: dict[Expr, str] = {}
        """The names of the variables."""
        self.raw: dict[Expr, Doc] = {}
        """What a node looks like where it stands inline."""
        self.placed: dict[Expr, Doc] = {}
        """What stands for a node from its first use on: its number, its name, or itself."""
        self.opened: set[Expr] = set()
        self.lines: list[Doc] = []
        self.defined: list[Expr] = []
        self.told: set[Expr] = set()

    # ---- places

    def place(self, node: Expr, inline: bool = False) -> Doc:
        """What stands for `node` in its next use; the first use of a node that cannot stand inline writes its line.

        With `inline` (results of scopes, values of lets) a node that has no other use stands there itself.
        """
        left = self.left.get(node, 0)
        self.left[node] = left - 1
        if node not in self.placed:
            kind = type(node)
            if kind is Var:
                self._declare_free(node)
            elif kind in _INLINE or (inline and left <= 1):
                doc: Doc = [(node, self.raw[node]), *self.info(node)]
                self.placed[node] = (node, self.raw[node])
                return doc
            else:
                self._define(node)
        return self.placed[node]

    def _define(self, node: Expr) -> None:
        """Write `%N = …;`."""
        raw = self.raw[node]
        if type(node) is Let:
            raw = parentheses(raw)
        name = f"%{self.count}"
        self.count += 1
        self.placed[node] = (node, name)
        self.lines += [(node, [name, " = ", raw]), *self.info(node), ";", NL]
        self.defined.append(node)

    def _declare_free(self, var: Expr) -> None:
        """Write `free_var %x: T;` for a variable that nothing binds."""
        self.lines += ["free_var ", self.raw[var], ";", NL]
        self.placed[var] = (var, self.spelled[var])
        self.defined.append(var)

    def info(self, node: Expr) -> list[str]:
        """The comment behind a node, once: what `annotate` says, or the type of a call or a constant."""
        if node in self.told:
            return []
        self.told.add(node)
        if self.annotate is not None:
            return [told] if (told := self.annotate(node)) else []
        parts: list[str] = []
        if self.typed and type(node) in (Call, Constant) and node.inferred is not None:
            parts.append(f"ty={self.types.text(node.inferred)}")
        if self.spans and node.span is not None:
            parts.append(f"span={node.span}")
        return [f" /* {commented(' '.join(parts))} */"] if parts else []

    # ---- scopes

    def scope(self, body: Expr) -> Task[list[Doc]]:
        """The lines of a scope and its result."""
        outer, self.lines = self.lines, []
        yield self.expand(body)
        result = self.place(body, inline=True)
        lines, self.lines = [*self.lines, result], outer
        return lines

    def expand(self, root: Expr) -> Task[None]:
        """Find out what `root` and all below it look like: the callee first, then arguments from left to right."""
        raw, stack = self.raw, [root]
        while stack:
            node = stack[-1]
            if node in raw:
                stack.pop()
            elif type(node) in _FLOW and node not in self.opened:
                self.opened.add(node)
                stack.extend(c for c in reversed(children(node)) if c not in raw)
            elif (nested := NESTED.get(type(node))) is not None:
                stack.pop()
                yield self._nest(node, nested, root)
            else:
                stack.pop()
                raw[node] = FLAT.get(type(node), unknown)(self, node)

    def _nest(self, node: Expr, nested: Callable[..., Task[Doc]], root: Expr) -> Task[None]:
        """Find out what a node with scopes inside looks like.

        If lines inside define what is used outside too, the node is written at once, so that
        definitions come before uses whatever is written next.
        """
        outer, self.defined = self.defined, []
        self.raw[node] = yield nested(self, node)
        escaping = [d for d in self.defined if self.left.get(d, 0) > 0]
        self.defined = outer
        outer += escaping
        if escaping and node is not root and node not in self.placed:
            self._define(node)

    # ---- variables

    def bind(self, var: Var) -> Doc:
        """The variable where it is bound: `%x: T`."""
        if var in self.placed:
            return [self.placed[var], "-malformed-ir"]
        doc = self.raw[var] = self.variable(var)
        self.placed[var] = (var, self.spelled[var])
        return doc

    def variable(self, var: Var) -> Doc:
        """`%x: T` with a fresh name."""
        name = self.spelled[var] = self.names.unique(variable_name(var.name_hint))
        at = [] if var.device is None else [f" {{virtual_device={self.meta.device(var.device)}}}"]
        typed = [] if var.type_annotation is None else [": ", self.types.text(var.type_annotation)]
        return [(var, name), *at, *typed, *self.info(var)]

    # ---- functions

    def function(self, f: Function, head: Doc = "fn ") -> Task[Doc]:
        """`fn [A](%x: T, key=value) -> R { … }`; `head` is what stands before the type parameters."""
        declared = self.types.declare(f.type_params)
        parameters = self.types.params(f.type_params)
        params: list[Doc] = [self.bind(p) for p in f.params]
        params += dict_attributes(f.attrs, self.meta)
        params += [] if f.device is None else [f"virtual_device={self.meta.device(f.device)}"]
        result = [] if f.ret_type is None else [" -> ", self.types.text(f.ret_type)]
        body = yield self.scope(f.body)
        self.types.forget(declared)
        return [head, parameters, "(", *joined(params), ")", *result, " ", braces(body)]


def _survey(root: Expr | None) -> tuple[dict[Expr, int], bool, bool, bool]:
    """How often each node below `root` is used; whether inference has seen it; whether a name is like `x.0`; whether
    typed calls of functions have type arguments.
    """
    uses: dict[Expr, int] = {}
    typed = dotted = given = False
    for node in walk(() if root is None else (root,)):
        below = children(node)
        for child in below:
            uses[child] = uses.get(child, 0) + 1
        typed = typed or (node.inferred is not None and not isinstance(node, _INLINE))
        dotted = dotted or (type(node) is Var and like_projection(node.name_hint))
        given = given or (type(node) is Call and type(node.op) is not Op and bool(node.type_args and node.inferred))
    return uses, typed, dotted, given
