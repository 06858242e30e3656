"""The analyses of Relay: small programs with known answers, laws on random ones."""

from __future__ import annotations

import numpy as np
import pytest
from support.programs import FEATURES, random_program

import relaylab.op  # noqa: F401
from relaylab.analysis import (
    AnnotatedRegionSet,
    CallGraph,
    Feature,
    all_dtypes,
    check_basic_block_normal_form,
    check_constant,
    check_kind,
    costs,
    count_layers,
    detect_feature,
    extract_intermdeiate_expr,
    get_calibration_data,
    get_total_mac_number,
    infer_expr,
    infer_module,
    list_fake_quantized_op_freqs,
    list_op_freqs,
    liveness,
    node_cost,
    pattern_text,
    post_dominates,
    post_dominators,
    search_fc_transpose,
    strong_components,
    type_bytes,
    unmatched_cases,
)
from relaylab.interp import Interpreter, random_inputs
from relaylab.relay.analysis import extract_fused_functions
from relaylab.ir import (
    OPERATORS,
    AnyDim,
    Call,
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    TypeData,
    TypeKind,
    TypeVar,
    Var,
    const,
    post_order,
    users,
)
from relaylab.op.base import call_operator
from relaylab.support.errors import RelayIndexError, RelayTypeError, RelayValueError

F23 = TensorType((2, 3))
X, Y = Var("x", F23), Var("y", F23)


@pytest.fixture(params=range(15), scope="module")
def mod(request):
    return random_program(request.param, features=FEATURES - {"ref"})


def add(a, b):
    return call_operator("add", a, b)


def negative(a):
    return call_operator("negative", a)


# ---- counts and costs


def test_operator_counts(mod) -> None:
    calls = [
        n.op.name
        for f in mod.functions.values()
        for n in post_order(f)
        if isinstance(n, Call) and n.op in OPERATORS.values()
    ]
    assert list_op_freqs(mod) == {name: calls.count(name) for name in dict.fromkeys(calls)}


def test_layers() -> None:
    a = negative(X)
    b = add(negative(a), negative(negative(a)))
    assert count_layers(b, ["negative"]) == 3 and count_layers(b, ["negative", "add"]) == 4 and count_layers(b, []) == 0
    assert count_layers(IRModule.from_expr(b), ["add"]) == 1


def test_data_types() -> None:
    expr = infer_expr(Tuple([X, call_operator("cast", X, dtype="int8"), call_operator("less", X, Y)]))
    assert all_dtypes(expr) == {"float32", "int8", "bool"}


def dense(x, w):
    return OPERATORS["nn.dense"].definition.call(x, w, units=None)


def conv(x, w, **attrs):
    return OPERATORS["nn.conv2d"].definition.call(x, w, **attrs)


def test_macs_and_bytes() -> None:
    w = const(np.zeros((5, 3), "float32"))
    typed = infer_expr(Function([X], negative(dense(X, w))))
    assert get_total_mac_number(typed) == 2 * 5 * 3
    cost = node_cost(typed.body.args[0])
    assert (cost.macs, cost.bytes_read, cost.bytes_written) == (30, 4 * (6 + 15), 4 * 10)
    assert set(costs(typed)) == {typed.body, typed.body.args[0]}
    assert sum(c.macs for c in costs(typed).values()) == 30 and cost.intensity == 30 / 124
    with pytest.raises(RelayValueError, match="types"):
        node_cost(dense(X, w))


def test_cost_of_a_fused_function_is_the_work_inside_and_the_traffic_outside() -> None:
    p = Var("p", F23)
    w = const(np.zeros((5, 3), "float32"))
    kernel = Function([p], negative(negative(dense(p, w)))).with_attr("Primitive", 1)
    typed = infer_expr(Function([X], Call(kernel, [X])))
    cost = costs(typed)
    assert list(cost) == [typed.body]
    assert (cost[typed.body].macs, cost[typed.body].bytes_read, cost[typed.body].bytes_written) == (30, 24, 40)


def test_bytes_of_types() -> None:
    assert (
        type_bytes(TupleType([TensorType((2, 3), "int8"), TensorType((), "bool"), TensorType((4,), "bfloat16")]))
        == 6 + 1 + 8
    )
    assert type_bytes(TensorType((AnyDim(),))) is None


def test_fake_quantized_operators() -> None:
    q = Var("q", TensorType((2, 3), "int8"))
    deq = OPERATORS["qnn.dequantize"].definition.call(q, const(2.0), const(0), axis=-1)
    out = OPERATORS["qnn.quantize"].definition.call(
        call_operator("nn.relu", call_operator("reshape", deq, newshape=(3, 2))),
        const(2.0),
        const(0),
        out_dtype="int8",
        axis=-1,
    )
    assert list_fake_quantized_op_freqs(IRModule.from_expr(negative(out))) == {"reshape": 1, "nn.relu": 1}


# ---- questions


def test_constants() -> None:
    c = const(1)
    assert check_constant(c) and check_constant(Tuple([c, Tuple([c])])) and check_constant(Tuple([]))
    assert not check_constant(X) and not check_constant(Tuple([c, X])) and not check_constant(negative(const(1.0)))


def test_basic_block_normal_form() -> None:
    cond, z = Var("c", TensorType((), "bool")), add(X, X)
    assert not check_basic_block_normal_form(Function([X, cond], If(cond, z, add(z, z))))
    v = Var("v")
    assert check_basic_block_normal_form(Function([X, cond], Let(v, z, If(cond, v, add(v, v)))))
    assert check_basic_block_normal_form(Function([X], add(z, z)))


def test_kinds() -> None:
    box = GlobalTypeVar("Box")
    mod = IRModule({}, {box: TypeData(box, [TypeVar("A")], [])})
    assert check_kind(F23) == check_kind(box(F23), mod) == TypeKind.Type and check_kind(box) == TypeKind.AdtHandle
    for bad in (
        box(),
        box(F23, F23),
        GlobalTypeVar("Bix")(F23),
        TupleType([TypeVar("n", TypeKind.ShapeVar)]),
        TypeVar("A")(F23),
    ):
        with pytest.raises(RelayTypeError):
            check_kind(bad, mod)


def test_transposed_weights() -> None:
    w, v = Var("w", TensorType((3, 5))), Var("v", TensorType((5, 3)))
    transposed = OPERATORS["transpose"].definition.call(w, axes=(1, 0))
    assert search_fc_transpose(Tuple([dense(X, transposed), dense(X, v)])) == ["w"]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X, {Feature.fVar}),
        (Tuple([X, X]), {Feature.fVar, Feature.fTuple}),
        (negative(const(1.0)), {Feature.fCall, Feature.fOp, Feature.fConstant}),
        ((lambda z: add(z, z))(negative(X)), {Feature.fVar, Feature.fCall, Feature.fOp, Feature.fGraph}),
        (
            (lambda f: Let(f, Function([X], Call(f, [X])), f))(Var("f")),
            {Feature.fVar, Feature.fCall, Feature.fLet, Feature.fLetRec, Feature.fFunction},
        ),
        (Function([X], negative(X)).with_attr("Primitive", 1), set()),
    ],
)
def test_features(expr, expected) -> None:
    assert detect_feature(expr) == expected
    assert detect_feature(None, expr) == expected


def test_features_of_a_module(mod) -> None:
    assert detect_feature(mod) == set().union(*(detect_feature(f) for f in mod.functions.values()))


# ---- cases of a match

A = TypeVar("A")
HEADER = GlobalTypeVar("List")
CONS, NIL = Constructor("Cons", [A, HEADER(A)], HEADER), Constructor("Nil", [], HEADER)
LISTS = IRModule({}, {HEADER: TypeData(HEADER, [A], [CONS, NIL])})
WILD, VAR = PatternWildcard(), PatternVar(Var("v"))


def cons(a, b):
    return PatternConstructor(CONS, [a, b])


def nil():
    return PatternConstructor(NIL, [])


CASES = {
    "none": ([], ["_"]),
    "wildcard": ([WILD], []),
    "variable": ([VAR], []),
    "both": ([nil(), cons(WILD, VAR)], []),
    "first": ([nil()], ["Cons(_, _)"]),
    "nested": ([nil(), cons(WILD, nil())], ["Cons(_, Cons(_, _))"]),
    "nested twice": ([cons(WILD, cons(WILD, cons(WILD, WILD)))], ["Cons(_, Cons(_, Nil))", "Cons(_, Nil)", "Nil"]),
    "tuple": ([PatternTuple([nil(), WILD]), PatternTuple([WILD, nil()])], ["(Cons(_, _), Cons(_, _))"]),
    "tuple covered": ([PatternTuple([nil(), WILD]), PatternTuple([cons(WILD, WILD), VAR])], []),
    "element": ([cons(nil(), WILD), nil()], ["Cons(Cons(_, _), _)"]),
}


@pytest.mark.parametrize("name", CASES)
def test_unmatched_cases(name) -> None:
    patterns, missing = CASES[name]
    match = Match(X, [Clause(p, const(0)) for p in patterns], False)
    assert [pattern_text(p) for p in unmatched_cases(match, LISTS)] == missing


# ---- graphs


@pytest.mark.parametrize("seed", range(30))
def test_strong_components(seed) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    edges = {k: [int(t) for t in rng.integers(0, n, int(rng.integers(0, 4)))] for k in range(n)}
    reach = np.eye(n, dtype=bool)
    for k, targets in edges.items():
        reach[k, targets] = True
    for k in range(n):
        reach |= reach[:, k : k + 1] & reach[k : k + 1]
    found = strong_components(edges)
    assert sorted(k for group in found for k in group) == list(range(n))
    where = {k: g for g, group in enumerate(found) for k in group}
    for a in range(n):
        for b in range(n):
            assert (where[a] == where[b]) == bool(reach[a, b] and reach[b, a])
            assert not reach[a, b] or where[b] <= where[a]


def test_long_call_chains() -> None:
    n = 50_000
    assert [g[0] for g in strong_components({k: [k + 1] if k < n else [] for k in range(n + 1)})] == list(
        range(n, -1, -1)
    )


def test_call_graph() -> None:
    main, f, g, lone = (GlobalVar(n) for n in ("main", "f", "g", "lone"))
    x, y, z, u = (Var("x", F23) for _ in range(4))
    mod = IRModule(
        {
            main: Function([x], add(Call(f, [x]), Call(f, [Call(g, [x])]))),
            f: Function([y], Call(f, [y]), F23),
            g: Function([z], z),
            lone: Function([u], u),
        }
    )
    graph = CallGraph(mod)
    assert graph.callees("main") == [f, g] and graph.callers(f) == [main, f]
    assert (graph.ref_count(f), graph.ref_count("lone"), graph.global_call_count(main)) == (3, 0, 3)
    assert (
        graph.is_recursive("f") and not graph.is_recursive("g") and graph.in_cycle("f") and not graph.in_cycle("main")
    )
    assert graph.reachable("main") == [main, f, g] and "lone" in graph and "nope" not in graph
    order = graph.topological_order()
    assert order.index(main) < order.index(f) and len(order) == 4
    assert graph["main"].count("<main> calls f") == 2 and "node: lone,  #refs = 0" in str(graph)


def test_post_dominators_against_paths() -> None:
    """Brute force: a node post-dominates another if removing it cuts every path to the root."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        nodes = [X, Y]
        for _ in range(int(rng.integers(1, 9))):
            a, b = (nodes[int(k)] for k in rng.integers(max(0, len(nodes) - 4), len(nodes), 2))
            nodes.append(add(a, b))
        root = nodes[-1]
        tree, using = post_dominators(root), users(root)
        for early in post_order(root):
            strict = [
                late
                for late in post_order(root)
                if late is not early and not _reaches(using, early, root, without=late)
            ]
            assert {n for n in post_order(root) if n is not early and post_dominates(tree, n, early)} == set(strict)
            assert tree[early] is None if early is root else tree[early] in strict


def _reaches(using, start, goal, without) -> bool:
    seen, stack = set(), [start]
    while stack:
        node = stack.pop()
        if node is goal:
            return without is not goal
        for user in using[node]:
            if user is not without and user not in seen:
                seen.add(user)
                stack.append(user)
    return False


# ---- liveness


def test_liveness_by_hand() -> None:
    a = negative(X)
    t = Tuple([a, add(a, X)])
    v = Var("v")
    out = add(TupleGetItem(t, 0), v)
    func = Function([X], Let(v, negative(TupleGetItem(t, 1)), out))
    found = liveness(func)
    names = [c.op.name for c in found.steps]
    assert names == ["negative", "add", "negative", "add"]
    spans = {n: (i.born, i.dies) for n, i in found.intervals.items()}
    assert spans == {X: (-1, 1), a: (0, 3), t.fields[1]: (1, 2), func.body.value: (2, 3), out: (3, 4)}
    assert found.live_at(2) == [a, t.fields[1], func.body.value]
    assert not found.intervals[t.fields[1]].overlaps(found.intervals[out])


@pytest.mark.parametrize("seed", range(10))
def test_liveness_is_what_evaluation_needs(seed) -> None:
    """Run the steps with values dropped as soon as liveness allows."""
    func = random_program(seed, features={"graph", "tuple"})["main"]
    found = liveness(func)
    args = random_inputs(func, seed)
    dead: set = set()
    for step, call in enumerate(found.steps):
        live = set(found.live_at(step))
        assert call in live and not live & dead
        dead |= {n for n, i in found.intervals.items() if i.dies == step}
    assert np.isfinite(Interpreter().evaluate(func)(*args)).all()


def test_liveness_refuses_branches() -> None:
    with pytest.raises(RelayValueError, match="If"):
        liveness(Function([X], If(const(True), X, X)))


# ---- parts of modules


def test_fused_functions_are_extracted_once() -> None:
    def kernel():
        p = Var("p", F23)
        return Function([p], negative(negative(p))).with_attr("Primitive", 1)

    mod = infer_module(IRModule.from_expr(Function([X], add(Call(kernel(), [X]), Call(kernel(), [X])))))
    found = extract_fused_functions(mod)
    assert len(found) == 1 and all(f.is_primitive and isinstance(key, str) for key, f in found.items())


def test_fused_functions_of_one_hash_are_all_extracted() -> None:
    def kernel(most: float):
        p = Var("p", F23)
        return Function([p], call_operator("clip", p, a_min=0.0, a_max=most)).with_attr("Primitive", 1)

    calls = [Call(kernel(most), [X]) for most in (1.0, 2.0, 1.0)]
    found = extract_fused_functions(infer_module(IRModule.from_expr(Function([X], Tuple(calls)))))
    assert sorted(f.body.attrs.a_max for f in found.values()) == [1.0, 2.0]


def test_intermediate_values() -> None:
    a = negative(X)
    mod = IRModule.from_expr(Function([X, Y], add(a, Tuple([a, Y]).fields[1])))
    assert extract_intermdeiate_expr(mod, 0)["main"].body is a
    assert extract_intermdeiate_expr(mod, 1)["main"].body is mod["main"].body
    with pytest.raises(RelayIndexError):
        extract_intermdeiate_expr(mod, 2)


def test_calibration_data() -> None:
    f, x = GlobalVar("f"), Var("x", F23)
    mod = infer_module(
        IRModule(
            {
                f: Function([x], Tuple([negative(x), add(x, x)])).with_attr("Compiler", "other"),
                "main": Function([X], TupleGetItem(Call(f, [add(X, X)]), 1)),
            }
        )
    )
    data = np.ones((2, 3), "float32")
    (gv, seen), *rest = get_calibration_data(mod, {"x": data}).items()
    assert gv is f and not rest
    np.testing.assert_array_equal(seen["inputs"][0], 2 * data)
    np.testing.assert_array_equal(seen["outputs"], [-2 * data, 4 * data])


def test_annotated_regions() -> None:
    def begin(e, compiler="c"):
        return OPERATORS["annotation.compiler_begin"].definition.call(e, compiler=compiler)

    def end(e, compiler="c"):
        return OPERATORS["annotation.compiler_end"].definition.call(e, compiler=compiler)

    inner = add(begin(X), begin(Y))
    first = end(negative(inner))
    second = end(negative(begin(first, "d")), "d")
    found = AnnotatedRegionSet(second)
    assert [(r.target, len(r.ins), len(r.outs), len(r.nodes)) for r in found] == [("c", 2, 1, 5), ("d", 1, 1, 3)]
    assert found.get_region(inner) is found.get_region(first) is not found.get_region(second)
    assert found.get_region(X) is None and len(found) == 2


def test_features_have_the_numbers_of_relay() -> None:
    """The enumeration of `tvm.relay.analysis.Feature`, in its order."""
    names = "Var GlobalVar Constant Tuple TupleGetItem Function Op Call Let If RefCreate RefRead RefWrite Constructor"
    wanted = [f"f{name}" for name in (*names.split(), "Match", "Graph", "LetRec")]
    assert [(f.name, f.value) for f in Feature] == [(name, k) for k, name in enumerate(wanted)]
