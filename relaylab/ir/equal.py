"""Structural equality of programs: up to names, sensitive to sharing within a function (census §1.7).

Two programs are equal if one can be renamed into the other. A shared node on one side must be
shared on the other; projections, constants, the empty tuple and leaves are compared by content.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from relaylab.ir import types as ty
from relaylab.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternVar, pattern_parts
from relaylab.ir.attrs import Attrs, DictAttrs, same_value
from relaylab.ir.digest import sharing_counts, structural_hash
from relaylab.ir.dims import SizeVar, SymbolicDim
from relaylab.ir.display import node_text
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Tuple, TupleGetItem, Var
from relaylab.ir.free import sizes_in, with_sizes
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import children
from relaylab.support.errors import RelayValueError, is_a, kind_of


class Mismatch(Exception):
    """Where two programs differ: a pair of nodes and why."""

    def __init__(self, lhs: object, rhs: object, why: str):
        self.lhs, self.rhs, self.why = lhs, rhs, why
        super().__init__(why)


class _Equality:
    """Pairs up the nodes of two programs; `compare` raises Mismatch at the first difference."""

    def __init__(self, map_free_vars: bool):
        self.map_free = map_free_vars
        self.left: dict[object, object] = {}
        self.right: dict[object, object] = {}
        self.same: set[tuple[int, int]] = set()
        self.made: list[tuple[object, object]] = []
        self.outer: list[tuple[object, object, ty.TypeVar]] = []  # what open type parameters meant outside
        self.sizes: dict[SizeVar, ty.Dim] = {}  # those that correspond to others

    def pair(self, a: object, b: object) -> None:
        if a not in self.left:
            self.made.append((a, b))
        if self.left.setdefault(a, b) is not b or self.right.setdefault(b, a) is not a:
            raise Mismatch(a, b, "they correspond to different nodes (sharing or binding differs)")

    def forget(self) -> None:
        """Forgets the pairs of one function: what it shares with others of the module does not count."""
        for a, b in self.made:
            self.left.pop(a, None)
            self.right.pop(b, None)
        for known in (self.made, self.same, self.sizes):
            known.clear()

    def paired(self, a: object, b: object) -> bool:
        """Whether the two are known to correspond; a partner other than the other one is a mismatch."""
        if a in self.left or b in self.right:
            if self.left.get(a) is b:
                return True
            raise Mismatch(a, b, "they correspond to different nodes (sharing or binding differs)")
        return False

    def compare(self, a: Expr, b: Expr) -> None:
        stack: list[tuple[Expr, Expr, bool]] = [(a, b, False)]
        while stack:
            x, y, done = stack.pop()
            if done:
                if isinstance(x, Function):
                    self.close(x.type_params)
                if _shared(x):
                    self.pair(x, y)
                else:
                    self.same.add((id(x), id(y)))
                continue
            if type(x) is not type(y):
                raise Mismatch(x, y, f"{kind_of(x)} and {kind_of(y)}")
            if (_shared(x) and self.paired(x, y)) or (id(x), id(y)) in self.same:
                continue
            self.head(x, y)
            kids = self.kids(x, y)
            if kids:
                stack.append((x, y, True))
                stack.extend((p, q, False) for p, q in reversed(kids))

    def kids(self, x: Expr, y: Expr) -> list[tuple[Expr, Expr]]:
        """The pairs of children to compare, after what they bind has been paired."""
        if isinstance(x, Function) and isinstance(y, Function):
            return [(x.body, y.body)]
        if isinstance(x, Let) and isinstance(y, Let):
            self.bind(x.var, y.var)
            return [(x.value, y.value), (x.body, y.body)]
        if isinstance(x, Match) and isinstance(y, Match):
            return [(x.data, y.data), *((c.rhs, d.rhs) for c, d in zip(x.clauses, y.clauses))]
        if isinstance(x, (Var, GlobalVar, Op, Constant, Constructor)):
            return []
        a, b = children(x), children(y)
        if len(a) != len(b):
            raise Mismatch(x, y, f"{len(a)} and {len(b)} parts")
        return list(zip(a, b))

    def head(self, x: Expr, y: Any) -> None:
        """Compare what two nodes of one kind hold beside sub-expressions."""
        match x:
            case Var():
                self.var(x, y)
            case GlobalVar():
                same = x is y or self.left.get(x) is y or (self.map_free and x.name_hint == y.name_hint)
                self.require(same, x, y, "two global variables")
            case Op():
                self.require(x is y, x, y, f"operators {x.name} and {y.name}" if x is not y else "")
            case Constant():
                self.require(x.same_value(y), x, y, "constants with different contents")
            case Constructor():
                self.require(x.name_hint == y.name_hint, x, y, "different constructors")
                self.types(x.inputs, y.inputs, x, y)
            case TupleGetItem():
                self.require(x.index == y.index, x, y, f"fields {x.index} and {y.index}")
            case Call():
                self.attrs(x.attrs, y.attrs, x, y)
                if not isinstance(x.op, Op):
                    self.types(x.type_args, y.type_args, x, y)
            case Function():
                self.function(x, y)
            case Match():
                self.match(x, y)
            case _:
                pass

    def require(self, holds: bool, x: object, y: object, why: str) -> None:
        if not holds:
            raise Mismatch(x, y, why)

    def var(self, x: Var, y: Var) -> None:
        if self.paired(x, y):
            return
        self.require(x is y or self.map_free, x, y, "different free variables")
        self.bind(x, y)

    def bind(self, x: Var, y: Var) -> None:
        if x.device != y.device:
            raise Mismatch(x, y, f"on {x.virtual_device_} and on {y.virtual_device_}")
        self.type(x.type_annotation, y.type_annotation, x, y, bound=True)
        self.pair(x, y)

    def function(self, x: Function, y: Function) -> None:
        self.require(len(x.params) == len(y.params), x, y, f"{len(x.params)} and {len(y.params)} parameters")
        self.open(x, y)
        for p, q in zip(x.params, y.params):
            self.bind(p, q)
        self.type(x.ret_type, y.ret_type, x, y, bound=True)
        self.attrs(x.attrs, y.attrs, x, y)

    def match(self, x: Match, y: Match) -> None:
        self.require(x.complete == y.complete and len(x.clauses) == len(y.clauses), x, y, "different clauses")
        for c, d in zip(x.clauses, y.clauses):
            self.pattern(c.lhs, d.lhs)

    def pattern(self, x: Pattern, y: Pattern) -> None:
        self.require(type(x) is type(y), x, y, "different patterns")
        if isinstance(x, PatternVar) and isinstance(y, PatternVar):
            self.bind(x.var, y.var)
        if isinstance(x, PatternConstructor) and isinstance(y, PatternConstructor):
            self.head(x.constructor, y.constructor)
        a, b = pattern_parts(x), pattern_parts(y)
        self.require(len(a) == len(b), x, y, "patterns of different size")
        for p, q in zip(a, b):
            self.pattern(p, q)

    def attrs(self, a: Attrs | DictAttrs | None, b: Attrs | DictAttrs | None, x: object, y: object) -> None:
        one, two = dict(a.items()) if a else {}, dict(b.items()) if b else {}
        if self.sizes:
            one = {name: _with_sizes(value, self.sizes) for name, value in one.items()}
        records = {r.type_key for r in (a, b) if isinstance(r, Attrs)}
        if len(records) > 1 or not same_value(one, two):
            raise Mismatch(x, y, f"different attributes: {one} and {two}")

    def types(self, a: tuple[ty.Type, ...], b: tuple[ty.Type, ...], x: object, y: object) -> None:
        self.require(len(a) == len(b), x, y, "different numbers of types")
        for t, u in zip(a, b):
            self.type(t, u, x, y)

    def type(self, t: ty.Type | None, u: ty.Type | None, x: object, y: object, bound: bool = False) -> None:
        """Types are equal up to the type variables and sizes that were paired; where they are those of `bound`
        variables, sizes of one name correspond.
        """
        if t is None or u is None:
            return self.require(t is u, x, y, f"types {t} and {u}")
        stack: list[tuple[ty.Type, ty.Type, bool]] = [(t, u, False)]
        seen: set[tuple[int, int]] = set()  # types may share their parts; within a function variables mean others
        while stack:
            a, b, done = stack.pop()
            if isinstance(a, ty.FuncType) and a.type_params:
                seen.clear()
            if done and isinstance(a, ty.FuncType):
                self.close(a.type_params)
            elif not self._variable(a, b) and (id(a), id(b)) not in seen:
                seen.add((id(a), id(b)))
                parts, others = ty.type_parts(a), ty.type_parts(b)
                same = type(a) is type(b) and len(parts) == len(others)
                open_ = isinstance(a, ty.TensorType) and a.is_dynamic
                if not (same and (bool(parts) or (self.shapes(a, b, bound) if open_ else a == b))):
                    raise Mismatch(x, y, f"types {t} and {u}")
                if isinstance(a, ty.FuncType) and isinstance(b, ty.FuncType):
                    self.open(a, b)
                    stack.append((a, b, True))
                stack.extend((p, q, False) for p, q in zip(reversed(parts), reversed(others)))

    def shapes(self, t: ty.Type, u: ty.Type, bound: bool) -> bool:
        """Whether two types of tensors are equal, up to sizes that correspond."""
        if not (isinstance(t, ty.TensorType) and isinstance(u, ty.TensorType)):
            return False
        for a, b in zip(sizes_in(t.shape), sizes_in(u.shape)):
            if not self.paired(a, b):
                alike = a.name == b.name and (bound or self.map_free)
                self.require(a is b or alike, a, b, f"sizes {a} and {b}")
                self.pair(a, b)
                self.sizes[a] = b
        return t.dtype == u.dtype and _with_sizes(t.shape, self.sizes) == u.shape

    def open(self, x: Function | ty.FuncType, y: Function | ty.FuncType) -> None:
        """Pair the type parameters, which mean something within a function (or its type) only."""
        self.require(len(x.type_params) == len(y.type_params), x, y, "different type parameters")
        for p, q in zip(x.type_params, y.type_params):
            self.require(p.kind == q.kind, x, y, f"type parameters of kind {p.kind.name} and {q.kind.name}")
            self.outer.append((self.left.pop(p, None), self.right.pop(q, None), q))
            self.pair(p, q)

    def close(self, params: tuple[ty.TypeVar, ...]) -> None:
        """Let the type parameters mean what they meant outside."""
        for p in reversed(params):
            before, other, q = self.outer.pop()
            for table, key, value in ((self.left, p, before), (self.right, q, other)):
                table.pop(key)
                if value is not None:
                    table[key] = value

    def _variable(self, t: ty.Type, u: ty.Type) -> bool:
        if not (isinstance(t, (ty.TypeVar, ty.IncompleteType)) and type(t) is type(u)):
            return False
        if not self.paired(t, u):
            self.require(t is u or self.map_free, t, u, f"type variables {t} and {u}")
            self.pair(t, u)
        return True


def _with_sizes(value: object, sizes: Mapping[SizeVar, ty.Dim]) -> object:
    """An attribute value, or a shape, with other sizes."""
    if isinstance(value, tuple):
        return tuple(_with_sizes(v, sizes) for v in cast("tuple[object, ...]", value))
    return with_sizes(value, sizes) if isinstance(value, SymbolicDim) else value


def _shared(x: Expr) -> bool:
    """Whether sharing of the node counts."""
    return sharing_counts(type(x), x.fields if type(x) is Tuple else ())


def _compare_modules(a: IRModule, b: IRModule, eq: _Equality) -> None:
    names = {gv.name_hint: gv for gv in a.functions}, {gv.name_hint: gv for gv in b.functions}
    eq.require(set(names[0]) == set(names[1]), a, b, "modules with different functions")
    for name, gv in names[0].items():
        eq.pair(gv, names[1][name])
    types = [{t.name_hint for t in mod.type_definitions} for mod in (a, b)]
    eq.require(types[0] == types[1], a, b, "modules with different types")
    eq.require((a.attrs or DictAttrs()) == (b.attrs or DictAttrs()), a, b, "modules with different attributes")
    for header, data in a.type_definitions.items():
        other = b.type_definitions[b.get_global_type_var(header.name_hint)]
        same = len(data.type_vars) == len(other.type_vars) and len(data.constructors) == len(other.constructors)
        eq.require(same, data, other, "different data types")
        for p, q in zip(data.type_vars, other.type_vars):
            eq.pair(p, q)
        for c, d in zip(data.constructors, other.constructors):
            eq.head(c, d)
            eq.types(c.inputs, d.inputs, c, d)
    eq.made.clear()
    for name in sorted(names[0]):
        eq.compare(a[name], b[name])
        eq.forget()


def _compare_lists(a: Sequence[object], b: Sequence[object], eq: _Equality) -> None:
    """Lists are equal if their elements are; a list and a tuple are one kind of thing."""
    eq.require(len(a) == len(b), a, b, f"lists of {len(a)} and {len(b)}")
    for x, y in zip(a, b):
        if isinstance(x, Expr) and isinstance(y, Expr):
            eq.compare(x, y)
        else:
            found = get_first_structural_mismatch(x, y, eq.map_free)
            eq.require(found is None, x, y, found.why if found is not None else "")


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> Mismatch | None:
    """The first pair of nodes in which two programs (or types, or attributes) differ, or None if they are equal."""
    eq = _Equality(map_free_vars)
    try:
        if isinstance(lhs, IRModule) and isinstance(rhs, IRModule):
            _compare_modules(lhs, rhs, eq)
        elif isinstance(lhs, Expr) and isinstance(rhs, Expr):
            eq.compare(lhs, rhs)
        elif isinstance(lhs, ty.Type) and isinstance(rhs, ty.Type):
            eq.type(lhs, rhs, lhs, rhs)
        elif isinstance(lhs, Pattern) and isinstance(rhs, Pattern):
            eq.pattern(lhs, rhs)
        elif is_a(lhs, list, tuple) and is_a(rhs, list, tuple):
            _compare_lists(cast("list[object]", lhs), cast("list[object]", rhs), eq)
        elif not same_value(lhs, rhs):
            raise Mismatch(lhs, rhs, f"{lhs!r} and {rhs!r}")
    except Mismatch as mismatch:
        return mismatch
    return None


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Whether two programs are equal up to names. Free variables must be the same ones unless `map_free_vars`."""
    return get_first_structural_mismatch(lhs, rhs, map_free_vars) is None


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raise `RelayValueError` with the first difference and both programs if they are not equal."""
    mismatch = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    if mismatch is None:
        return
    place = "\n".join(
        f"  {what}:\n{node_text(value)}"
        for what, value in [("left", mismatch.lhs), ("right", mismatch.rhs), ("in the programs", lhs), ("and", rhs)]
    )
    raise RelayValueError(f"the programs differ: {mismatch.why}", code="ir.not-equal", place=place)


V = TypeVar("V")


class StructuralTable(Generic[V]):
    """Values by expression: structurally equal ones have one value.

    A hash alone does not tell them apart, as numbers that nearly agree count as equal in it.
    """

    def __init__(self) -> None:
        self._alike: dict[int, list[tuple[Expr, V]]] = {}

    def at(self, node: Expr, make: Callable[[int], V]) -> V:
        """The value of an expression equal to `node`; `make` gives it for the first one, told its structural hash."""
        code = structural_hash(node)
        alike = self._alike.setdefault(code, [])
        for other, value in alike:
            if structural_equal(other, node):
                return value
        alike.append((node, value := make(code)))
        return value
