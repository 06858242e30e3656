"""Sizes with names and their expressions: a normal form that agrees with arithmetic on numbers, and with sympy."""

import json
import operator
import pickle
import random

import pytest

from relaylab import relay
from relaylab.ir.dims import AnyDim, IntImm, SizeVar, UndecidedSize, differ, larger, smaller
from relaylab.op.shapes import times_in
from relaylab.ir.free import with_sizes
from relaylab.support.errors import RelayError
from relaylab.text.node_json import load_json, save_json
from relaylab.transform import InferType

N, M, K = map(SizeVar, "nmk")
STEPS = (operator.add, operator.sub, operator.mul, larger, smaller, operator.floordiv)


def expression(rng, leaves, depth):
    """The same random expression over several kinds of leaves at once."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(leaves)
    step = rng.choice(STEPS)
    left = expression(rng, leaves, depth - 1)
    if step is operator.floordiv:
        by = rng.randint(1, 6)
        return tuple(step(a, by) for a in left)
    right = expression(rng, leaves, depth - 1) if rng.random() < 0.7 else (rng.randint(0, 7),) * len(left)
    return tuple(map(step, left, right))


@pytest.mark.parametrize("seed", range(60))
def test_an_expression_has_the_value_of_the_same_arithmetic_on_numbers(seed):
    rng = random.Random(seed)
    for _ in range(10):
        sizes = {v: rng.randint(0, 9) for v in (N, M, K)}
        try:
            d, number = expression(rng, list(sizes.items()), 4)
        except UndecidedSize:  # a sum of more than 64 products
            continue
        if number < 0:
            continue
        assert with_sizes(IntImm(d) if isinstance(d, int) else d, {v: IntImm(n) for v, n in sizes.items()}) == number


def test_equal_polynomials_are_one_as_sympy_says():
    sympy = pytest.importorskip("sympy")
    names, rng = sympy.symbols("n m k"), random.Random(3)
    for _ in range(150):
        (a, p), (b, q) = (expression_without_quotients(rng, list(zip((N, M, K), names))) for _ in "ab")
        assert (a == b) == (sympy.expand(p - q) == 0)
        assert a * b == b * a and (a + b) * (a - b) == a * a - b * b


def expression_without_quotients(rng, leaves):
    left, right, last = (rng.choice(leaves) for _ in range(3))
    step, some = rng.choice(STEPS[:3]), rng.randint(0, 1)
    return tuple(step(a, b) + some * c for a, b, c in zip(left, right, last))


@pytest.mark.parametrize(
    "left, right",
    [
        ((2 * N + 1) // 4, N // 2),
        ((N // 2) // 3, N // 6),
        ((N // 2 + 1) // 3, (N + 2) // 6),
        ((4 * N + 3) // 4, N),
        ((N - 3) // 2 + 1, (N + 1) // 2 - 1),
        (N + M, M + N),
        (N * M * 2, 2 * M * N),
        (N + 0, N),
        (N * 1, N),
        (N - N, 0),
        (larger(N, 0), N),
        (larger(2 * N + 3, N), 2 * N + 3),
        (larger(N, M) + smaller(N, M), M + N),
        (smaller(N, 0), 0),
        (larger(N - 3, 2), larger(N - 5, 0) + 2),
    ],
)
def test_one_normal_form(left, right):
    assert left == right and hash(left) == hash(right) and str(left) == str(right)


def test_sizes_of_one_name_are_two():
    other = SizeVar("n")
    assert N != other and N + 1 != other + 1 and N + other != 2 * N and len({N, other, N + 0}) == 2
    assert N != AnyDim() and N + 1 != AnyDim() and N + 1 != 1


def test_the_text_says_the_arithmetic():
    shown = [N + 2, 2 * N, N // 4, 3 * (N // 4), (N + 1) // 2 * M, N - 7, 3 - N, N * M - M, larger(N, 7)]
    assert list(map(str, shown)) == [
        "n + 2", "2 * n", "n // 4", "3 * (n // 4)", "((n + 1) // 2) * m", "n - 7", "-n + 3", "m * n - m",
        "max(n - 7, 0) + 7",
    ]  # fmt: skip


def test_what_is_the_same_for_all_sizes_can_be_asked():
    assert N >= 0 and N + 1 > N and not N < 0 and max(N + 2, 0) == N + 2 and 2 * N + 1 > 0 and N // 2 >= 0
    assert differ(N, N + 1) and differ(N + 1, IntImm(0)) and not differ(N, M) and not differ(N, AnyDim())
    for question in (lambda: N > 1, lambda: M < N, lambda: max(N - 2, 0), lambda: int(N), lambda: N // M):
        with pytest.raises(UndecidedSize, match="known only at run time"):
            question()
    with pytest.raises(UndecidedSize):
        N * 1.5
    assert N * 2.0 == 2 * N and round(N + 1) == N + 1


def test_copies_are_expressions_of_the_copied_sizes():
    n, double, part = pickle.loads(pickle.dumps((N, 2 * N, (N + 1) // 2)))
    assert n != N and double == 2 * n and hash(double) == hash(2 * n) and part == (n + 1) // 2


def test_remainders_have_bounds():
    """What is left to the next whole window; and numbers that no size makes equal."""
    n = SizeVar("n")
    assert n % 4 >= 0 and n % 4 < 4 and not n % 4 > 3 and 4 - n % 4 > 0
    left = (4 - n % 4) % 4
    assert left >= 0 and left <= 3 and (n + left) % 4 == 0
    assert differ(2 * n, IntImm(1)) and differ(6 * n + 2, 4 * n + 1) and not differ(2 * n, IntImm(2))
    for size in range(9):
        assert with_sizes(left, {n: IntImm(size)}) == -size % 4


def test_expressions_have_bounds():
    d = N + 1
    with pytest.raises(UndecidedSize, match="terms"):
        for k in range(100):
            d = d * (SizeVar(f"a{k}") + 1)
    d = N
    with pytest.raises(UndecidedSize, match="deep"):
        for _ in range(100):
            d = (d + M) // 3


def module():
    x = relay.var("x", shape=(N, M, 4))
    both = relay.concatenate((x, x), 1)
    tail = relay.nn.pad(both, ((0, 0), (1, 1), (0, 0)))
    f = relay.Function([x], relay.Tuple([tail, relay.split(both, 3, 0)[0]]))
    return InferType()(relay.IRModule.from_expr(f))


def test_text_and_json_keep_expressions_and_the_sizes_they_share():
    f = module()
    text = f.astext()
    assert "Tensor[(n, 2 * m + 2, 4), float32], Tensor[(floordiv(n, 3), 2 * m, 4), float32]" in text
    for again in (relay.parse(text), relay.parse(str(f)), load_json(save_json(f))):
        n, m, _ = again["main"].params[0].checked_type.shape
        tail, first = InferType()(again)["main"].body.checked_type.fields
        assert tail.shape == (n, 2 * m + 2, 4) and first.shape == (n // 3, 2 * m, 4)
        assert again.astext() == text


def test_text_without_its_meta_data_has_a_size_for_each_reference():
    f = relay.parse("def @main(%x: Tensor[(meta[tir.Add][0], meta[tir.Add][0], 4), float32]) { %x }")
    a, b, _ = f["main"].params[0].type_annotation.shape
    assert a is b and isinstance(a, SizeVar)


def section(nodes):
    return json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.10.0"}})


def test_the_section_that_tvm_writes_is_read():
    number = lambda n: {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": str(n)}}
    op = lambda key, a, b: {"type_key": key, "attrs": {"a": str(a), "b": str(b), "dtype": "int32", "span": "0"}}
    nodes = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["tir.Add", "tir.FloorDiv", "tir.SizeVar"], "data": [2, 3, 4]},
        {"type_key": "Array", "data": [5]},
        {"type_key": "Array", "data": [6]},
        {"type_key": "Array", "data": [7]},
        op("tir.Add", 7, 8),
        op("tir.FloorDiv", 5, 9),
        {"type_key": "tir.SizeVar", "attrs": {"dtype": "int32", "name": "n", "span": "0", "type_annotation": "0"}},
        number(2),
        number(4),
    ]
    dims = "meta[tir.SizeVar][0], meta[tir.Add][0], meta[tir.FloorDiv][0]"
    text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[({dims}), float32]) {{ %x }}\n#[metadata]\n'
    n, more, quarter = relay.parse(text + section(nodes))["main"].params[0].type_annotation.shape
    assert n.name == "n" and more == n + 2 and quarter == (n + 2) // 4
    nodes[5] = op("tir.Add", 5, 8)
    with pytest.raises(RelayError, match="itself"):
        relay.parse(text + section(nodes))


def test_an_entry_that_is_made_of_itself_is_refused():
    text = "def @main(%x: Tensor[(meta[tir.Add][0]), float32]) { %x }\n#[metadata]\n"
    with pytest.raises(RelayError, match="damaged"):
        relay.parse(text + '{"version": 1, "tir.Add": [{"a": "meta[tir.Add][0]", "b": 1}]}')
    with pytest.raises(RelayError, match="damaged"):
        relay.parse(text + '{"version": 1, "tir.Add": [{"a": "meta[tir.Mul][7]", "b": 1}]}')


def test_how_many_times_a_size_is_in_another() -> None:
    n, m = SizeVar("n"), SizeVar("m")
    half = (m + 1) // 2
    for a, b, found in (
        (6 * n * m, 2 * n, 3 * m),
        (n * half * 4, 4 * half, n),
        (n * n + 5 * n, n, n + 5),
        (2 * n, n, 2),
    ):
        assert times_in(a, b) == found
    assert times_in(3 * (n + 1), n + 1) == 3
    for a, b in ((n, m), (n + 1, n), (n * m, n + m), (4, n), (n, -n)):
        with pytest.raises(UndecidedSize):
            times_in(a, b)
