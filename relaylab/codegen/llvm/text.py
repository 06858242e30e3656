"""A builder of LLVM IR as text: SSA values, structured loops, folded index arithmetic, vectors and masks.

Text is thirty times faster to make than llvmlite's object model, and it is what people read.

* A `Value` is an SSA value or a constant: its LLVM type and its spelling. A type is its LLVM spelling:
  "float", "i64", "ptr", "<16 x float>"; see `llvm_type`, `vector`, `element`, `lanes`.
* An `Index` (i64) is a Python int, a Value or an `AffineIndex` sum; `add`, `sub`, `mul`, `div`, `rem`, `minimum`
  and `maximum` fold what is known. Constants end up as address displacements, nothing is emitted before it is used.
* Pure instructions are emitted once per scope: asking again for the same one gives the same Value.
* Control flow is structured: `loop` and `branch` take Python functions for their bodies and carry values as phis.
* `at(part)` says which part of the kernel the following instructions belong to (0 is the kernel itself, 1.. the
  members of its epilogue or group); it leaves a `; @part` comment in the text, from which debug locations are made.

    f = IRFunction("scale", operands=2)
    x, y = f.pointers
    def body(i):
        at = f.mul(i, 64)
        f.store(f.binary("fmul", f.load(vector("float", 16), f.offset(x, at)), 2.0), f.offset(y, at))
    f.loop(f.begin, f.end, body)
    text, declares = f.finish()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from relaylab.codegen.llvm.types import (
    AffineIndex,
    Index,
    Value,
    affine,
    constant,
    element,
    is_float,
    lanes,
    literal_vector,
    llvm_type,
    parts,
    spelled,
    suffix,
    tail_mask,
    vector,
)

__all__ = [
    "AffineIndex", "IRFunction", "Index", "Value", "constant", "element", "is_float", "lanes", "literal_vector",
    "llvm_type", "spelled", "suffix", "tail_mask", "vector",
]  # fmt: skip

Body = Callable[..., "Sequence[Value] | Value | None"]


class IRFunction:
    """A kernel under construction: `pointers` are its operands, `begin`, `end` and `thread` indices.

    With `numbers` it is a function that kernels call, of so many pointers and integers. `finish` gives its text and the
    declarations that it needs.
    """

    def __init__(self, name: str, operands: int, numbers: int | None = None):
        self.name = name
        self.declares: set[str] = set()
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self._known: dict[object, Value] = {}  # of all open scopes
        self._scope: list[object] = []  # what the innermost one has added
        self._products: dict[str, str] = {}
        self._part = 0
        self.begin, self.end, self.thread = (Value("i64", f"%{name}") for name in ("begin", "end", "thread"))
        self.numbers = [Value("i64", f"%n{k}") for k in range(numbers or 0)]
        if numbers is None:
            args = Value("ptr", "%args")
            self._parameters = (args, self.begin, self.end, self.thread)
            self.pointers = tuple([self.load("ptr", self.offset(args, 8 * k), align=8) for k in range(operands)])
        else:
            self.pointers = tuple([Value("ptr", f"%p{k}") for k in range(operands)])
            self._parameters = (*self.pointers, *self.numbers)

    def finish(self) -> tuple[str, frozenset[str]]:
        """Return from the function; its text and declarations."""
        self.emit("ret void")
        head = f"define void @{self.name}({', '.join(map(str, self._parameters))}) #0 {{\nentry:\n"
        return head + "\n".join(self._lines) + "\n}\n", frozenset(self.declares)

    # ---- lines

    def emit(self, line: str) -> None:
        """Append an instruction that gives no value."""
        self._lines.append("  " + line)

    def define(self, type: str, rhs: str) -> Value:
        """Append `%new = rhs`; always a new instruction (loads, calls with effects)."""
        self._count += 1
        ref = f"%v{self._count}"
        self._lines.append(f"  {ref} = {rhs}")
        return Value(type, ref, self._count)

    def pure(self, type: str, rhs: str) -> Value:
        """The value of an instruction without effects: emitted, or found in an enclosing scope."""
        # What an enclosing block has computed dominates this one; what a finished block has is out of scope.
        value = self._known.get(rhs)
        if value is None:
            value = self._known[rhs] = self.define(type, rhs)
            self._scope.append(rhs)
        return value

    def at(self, part: int) -> None:
        """The following instructions belong to `part` of the kernel (see the module's docstring)."""
        if part != self._part:
            self._part = part
            self._lines.append(f"  ; @{part}")

    def declare(self, name: str, result: str, params: Iterable[str]) -> None:
        """Declare an external function or intrinsic once."""
        self.declares.add(f"declare {result} @{name}({', '.join(params)})")

    def call(self, name: str, result: str, *args: Value) -> Value:
        """The value that an external function gives."""
        self.declare(name, result, (a.type for a in args))
        return self.define(result, f"call {result} @{name}({', '.join(map(str, args))})")

    def run(self, name: str, *args: Value) -> None:
        """Call a function for what it does."""
        self.declare(name, "void", (a.type for a in args))
        self.emit(f"call void @{name}({', '.join(map(str, args))})")

    def pure_call(self, name: str, result: str, *args: Value) -> Value:
        """The value that an external function without effects gives."""
        self.declare(name, result, (a.type for a in args))
        return self.pure(result, f"call {result} @{name}({', '.join(map(str, args))})")

    def intrinsic(self, name: str, *args: Value) -> Value:
        """A pure overloaded intrinsic whose result has the type of its first argument: `llvm.<name>.<suffix>`."""
        return self.pure_call(f"llvm.{name}.{suffix(args[0].type)}", args[0].type, *args)

    # ---- index arithmetic (i64)

    def value(self, index: Index | float, type: str = "i64") -> Value:
        """An index or Python number as a Value of `type` (a Value is returned as it is)."""
        if isinstance(index, Value):
            return index
        return self._sum(index) if isinstance(index, AffineIndex) else constant(type, index)

    def _sum(self, a: AffineIndex) -> Value:
        # Outer values first: their partial sums are then found again in the enclosing scope, outside the loop.
        first, *rest = sorted(a.terms.items(), key=lambda item: item[0].order)
        total = self._scaled(*first)
        for term, factor in rest:
            part = self._scaled(term, factor)
            total = self.pure("i64", f"add nsw i64 {total.ref}, {part.ref}")
        return total if a.const == 0 else self.pure("i64", f"add nsw i64 {total.ref}, {a.const}")

    def _scaled(self, term: Value, factor: int) -> Value:
        return term if factor == 1 else self.pure("i64", f"mul nsw i64 {term.ref}, {factor}")

    def add(self, a: Index, b: Index) -> Index:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        (terms, const), (more, other) = parts(a), parts(b)
        total = dict(terms)
        for term, factor in more.items():
            total[term] = total.get(term, 0) + factor
        return affine({t: k for t, k in total.items() if k}, const + other)

    def sub(self, a: Index, b: Index) -> Index:
        """a - b."""
        return self.add(a, self.mul(b, -1))

    def mul(self, a: Index, b: Index) -> Index:
        """a * b; stays symbolic while one side is a Python int."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if b == 0:
                return 0
            terms, const = parts(a)
            return affine({t: k * b for t, k in terms.items()}, const * b)
        return self.pure("i64", f"mul nsw i64 {self.value(a).ref}, {self.value(b).ref}")

    def div(self, a: Index, b: Index) -> Index:
        """a // b for a >= 0 and b > 0."""
        if not isinstance(b, int):
            return self.pure("i64", f"udiv i64 {self.value(a).ref}, {self.value(b).ref}")
        if isinstance(a, int):
            return a // b
        terms, const = parts(a)
        if all(k % b == 0 for k in (*terms.values(), const)):
            return affine({t: k // b for t, k in terms.items()}, const // b)
        return self.pure("i64", f"udiv i64 {self.value(a).ref}, {b}")

    def rem(self, a: Index, b: int) -> Index:
        """a % b for a >= 0 and a constant b > 0."""
        return self.sub(a, self.mul(self.div(a, b), b))

    def minimum(self, a: Index, b: Index) -> Index:
        """The smaller of two indices."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self._extreme("slt", a, b)

    def maximum(self, a: Index, b: Index) -> Index:
        """The larger of two indices."""
        return max(a, b) if isinstance(a, int) and isinstance(b, int) else self._extreme("sgt", a, b)

    def _extreme(self, predicate: str, a: Index, b: Index) -> Value:
        return self.select(self.compare(predicate, a, b), self.value(a), self.value(b))

    # ---- values

    def _pair(self, a: Index | float, b: Index | float) -> tuple[Value, Value]:
        if isinstance(a, Value) and isinstance(b, Value):
            return a, b
        type = next((x.type for x in (a, b) if not isinstance(x, (int, float))), "i64")
        return self.value(a, type), self.value(b, type)

    def binary(self, op: str, a: Index | float, b: Index | float) -> Value:
        """An LLVM binary instruction ("fadd", "add nsw", "xor"); a Python number takes the other side's type."""
        x, y = self._pair(a, b)
        return self.pure(x.type, f"{op} {x.type} {x.ref}, {y.ref}")

    def compare(self, predicate: str, a: Index | float, b: Index | float) -> Value:
        """A comparison as i1 or mask: predicates of `icmp` ("slt", "eq") or, for floats, of `fcmp` ("olt", "uno")."""
        x, y = self._pair(a, b)
        op = "fcmp" if is_float(x.type) else "icmp"
        return self.pure(vector("i1", lanes(x.type)), f"{op} {predicate} {x.type} {x.ref}, {y.ref}")

    def select(self, condition: Value, a: Index | float, b: Index | float) -> Value:
        """Lane-wise `condition ? a : b`."""
        x, y = self._pair(a, b)
        return self.pure(x.type, f"select {condition}, {x.type} {x.ref}, {y.type} {y.ref}")

    def cast(self, op: str, x: Value, type: str) -> Value:
        """A conversion instruction: "sitofp", "fptosi", "sext", "zext", "trunc", "fpext", "bitcast"..."""
        return self.pure(type, f"{op} {x} to {type}")

    def negate(self, x: Value) -> Value:
        """-x of a floating point value."""
        return self.pure(x.type, f"fneg {x}")

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c of floats: one fused instruction where the target has it."""
        type = a.type
        if type not in self._products:
            # fmuladd and not fma: a CPU without the instruction multiplies and adds instead of calling the C library.
            name = f"llvm.fmuladd.{suffix(type)}"
            self.declare(name, type, [type] * 3)
            self._products[type] = f"call {type} @{name}"
        return self.define(type, f"{self._products[type]}({type} {a.ref}, {type} {b.ref}, {type} {c.ref})")

    # ---- vectors

    def splat(self, x: Value, count: int) -> Value:
        """A vector with the scalar `x` in every lane."""
        found = self._known.get((x, count))
        if found is None:
            type = vector(x.type, count)
            first = self.pure(type, f"insertelement {type} poison, {x}, i32 0")
            found = self.pure(type, f"shufflevector {first}, {type} poison, <{count} x i32> zeroinitializer")
            self._known[x, count] = found
            self._scope.append((x, count))
        return found

    def extract(self, x: Value, lane: int) -> Value:
        """One lane as a scalar."""
        return x if lanes(x.type) == 1 else self.pure(element(x.type), f"extractelement {x}, i32 {lane}")

    def insert(self, x: Value, scalar: Value, lane: int) -> Value:
        """`x` with one lane replaced."""
        return self.pure(x.type, f"insertelement {x}, {scalar}, i32 {lane}")

    def shuffle(self, a: Value, b: Value, order: Sequence[int]) -> Value:
        """Lanes of a (0 .. n-1) and b (n ..) in `order`."""
        cells = ", ".join(f"i32 {k}" for k in order)
        return self.pure(vector(element(a.type), len(order)), f"shufflevector {a}, {b}, <{len(order)} x i32> <{cells}>")

    def dynamic_mask(self, active: Index, width: int) -> Value:
        """The mask whose first `active` lanes are set."""
        count = self.cast("trunc", self.value(active), "i32")
        return self.compare("slt", literal_vector("i32", range(width)), self.splat(count, width))

    def any(self, mask: Value) -> Value:
        """Is a lane of the mask set?"""
        return self.pure_call(f"llvm.vector.reduce.or.{suffix(mask.type)}", "i1", mask)

    def sum(self, x: Value) -> Value:
        """All lanes of floats added, in any order."""
        scalar, name = element(x.type), f"llvm.vector.reduce.fadd.{suffix(x.type)}"
        self.declare(name, scalar, (scalar, x.type))
        return self.pure(scalar, f"call reassoc {scalar} @{name}({constant(scalar, -0.0)}, {x})")

    # ---- memory

    def offset(self, pointer: Value, index: Index, size: int = 1) -> Value:
        """The pointer `index` elements of `size` bytes further on; a constant part becomes a displacement."""
        if not isinstance(index, int):
            terms, const = parts(index)
            key = (pointer, size, *terms.items())
            moved = self._known.get(key)
            if moved is None:
                moving = self.value(affine({t: k * size for t, k in terms.items()}, 0))
                moved = self._known[key] = self.pure("ptr", f"getelementptr i8, {pointer}, {moving}")
                self._scope.append(key)
            pointer, index = moved, const
        return pointer if index == 0 else self.pure("ptr", f"getelementptr i8, ptr {pointer.ref}, i64 {index * size}")

    def load(self, type: str, pointer: Value, align: int = 4, mask: Value | None = None, once: bool = False) -> Value:
        """Load a scalar or vector; of a vector the lanes of `mask`, zeros elsewhere, where memory is not touched.

        `once`: nothing writes there.
        """
        if mask is None:
            return (self.pure if once else self.define)(type, f"load {type}, ptr {pointer.ref}, align {align}")
        call = self.pure_call if once else self.call
        name = f"llvm.masked.load.{suffix(type)}.p0"
        return call(name, type, pointer, constant("i32", align), mask, constant(type, 0))

    def store(self, x: Value, pointer: Value, align: int = 4, mask: Value | None = None) -> None:
        """Store a scalar or vector; of a vector the lanes of `mask`, other memory is not touched."""
        if mask is not None and mask.ref == tail_mask(1, lanes(x.type)).ref:
            x, mask = self.extract(x, 0), None  # LLVM stores a truncated value in its full width for AVX-512
        if mask is None:
            return self.emit(f"store {x.type} {x.ref}, ptr {pointer.ref}, align {align}")
        name = f"llvm.masked.store.{suffix(x.type)}.p0"
        self.declare(name, "void", (x.type, "ptr", "i32", mask.type))
        self.emit(f"call void @{name}({x}, {pointer}, i32 {align}, {mask})")

    def gather(self, type: str, pointer: Value, positions: Value, scale: int, mask: Value | None = None) -> Value:
        """Load lane i from `pointer + positions[i] * scale` bytes; positions is an i32 or i64 vector."""
        spots, name = self._spots(pointer, positions, scale), f"llvm.masked.gather.{suffix(type)}.v{lanes(type)}p0"
        mask = mask or constant(vector("i1", lanes(type)), True)
        return self.call(name, type, spots, constant("i32", min(scale, 4)), mask, constant(type, 0))

    def scatter(self, x: Value, pointer: Value, positions: Value, scale: int, mask: Value | None) -> None:
        """Store lane i at `pointer + positions[i] * scale` bytes."""
        spots, name = self._spots(pointer, positions, scale), f"llvm.masked.scatter.{suffix(x.type)}.v{lanes(x.type)}p0"
        mask = mask or constant(vector("i1", lanes(x.type)), True)
        self.declare(name, "void", (x.type, spots.type, "i32", mask.type))
        self.emit(f"call void @{name}({x}, {spots}, i32 {scale}, {mask})")

    def _spots(self, pointer: Value, positions: Value, scale: int) -> Value:
        spots = vector("ptr", lanes(positions.type))
        return self.pure(spots, f"getelementptr i8, {pointer}, {self.binary('mul', positions, scale)}")

    def prefetch(self, pointer: Value, near: bool = False) -> None:
        """Ask for a cache line: into the first-level cache, or the second."""
        self.declare("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"))
        self.emit(f"call void @llvm.prefetch.p0({pointer}, i32 0, i32 {3 if near else 2}, i32 1)")

    # ---- control flow

    def _start(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def _label(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _scoped(self, run: Body, *args: object) -> tuple[Value, ...]:
        outer, self._scope = self._scope, []
        results = run(*args)
        for rhs in self._scope:
            del self._known[rhs]
        self._scope = outer
        return _values(results)

    def loop(
        self, low: Index, high: Index, body: Body, carried: Sequence[Value] = (), step: int = 1
    ) -> tuple[Value, ...]:
        """`for i in range(low, high, step): carried = body(i, *carried)`; the values after the last turn.

        A loop known to turn once is emitted inline with a Python int as its index.
        """
        nonempty = False
        if isinstance(low, int) and isinstance(high, int):
            if len(turns := range(low, high, step)) <= 1:
                return _values(body(low, *carried)) if turns else tuple(carried)
            nonempty = True
        first, last, before = self.value(low), self.value(high), self._block
        head, done = self._label("loop"), self._label("done")
        into = f"br i1 {self.compare('slt', first, last).ref}, label %{head}, label %{done}"
        self.emit(f"br label %{head}" if nonempty else into)
        self._start(head)
        # Phis need the values of the last turn, so their place is kept free until the body is written.
        hole = len(self._lines)
        self._count += 1 + len(carried)
        start = self._count - len(carried)
        phis = [Value(v.type, f"%v{start + k}", start + k) for k, v in enumerate((Value("i64", ""), *carried))]
        results = self._scoped(body, *phis)
        latch, following = self._block, self.define("i64", f"add nsw i64 {phis[0].ref}, {step}")
        self.emit(f"br i1 {self.define('i1', f'icmp slt {following}, {last.ref}').ref}, label %{head}, label %{done}")
        self._lines[hole:hole] = [
            f"  {p.ref} = phi {p.type} [{a.ref}, %{before}], [{b.ref}, %{latch}]"
            for p, a, b in zip(phis, (first, *carried), (following, *results))
        ]
        self._start(done)
        if nonempty:
            return results
        return tuple(
            self.define(a.type, f"phi {a.type} [{a.ref}, %{before}], [{b.ref}, %{latch}]")
            for a, b in zip(carried, results)
        )

    def branch(self, condition: Value, then: Body, otherwise: Body | None = None) -> tuple[Value, ...]:
        """`if condition: then() else: otherwise()`; both give equally many values, of which phis are returned."""
        yes, no, done = self._label("then"), self._label("else"), self._label("join")
        self.emit(f"br {condition}, label %{yes}, label %{no if otherwise else done}")
        self._start(yes)
        left, yes_end = self._scoped(then), self._block
        self.emit(f"br label %{done}")
        right: tuple[Value, ...] = ()
        no_end = no
        if otherwise:
            self._start(no)
            right, no_end = self._scoped(otherwise), self._block
            self.emit(f"br label %{done}")
        self._start(done)
        return tuple(
            self.define(a.type, f"phi {a.type} [{a.ref}, %{yes_end}], [{b.ref}, %{no_end}]")
            for a, b in zip(left, right)
        )


def _values(results: Sequence[Value] | Value | None) -> tuple[Value, ...]:
    if results is None:
        return ()
    return (results,) if isinstance(results, Value) else tuple(results)
