"""Kernels whose extents are known when they run: one kernel for all lengths, next to the same formula in numpy."""

import numpy as np
import pytest
from native_group import TARGETS, execute
from kernel_runner import aligned

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.operations.generic import lower_group
from relaylab.ir.op import Op
from relaylab.loop import OutSpec
from relaylab.loop.expr import Axis, Size, axis_over
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.run import run
from relaylab.loop.simplify import Simplifier
from relaylab.loop.sizes import number_of
from relaylab.support.errors import RelayTypeError

N, M, K = (Size(name, slot) for slot, name in enumerate("nmk"))
LENGTHS = [(n, m, n + m) for n, m in [(0, 1), (1, 0), (1, 1), (7, 8), (9, 63), (64, 5), (65, 64)]]
RNG = np.random.default_rng(0)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def heads(x):
    return x.reshape(x.shape[0], 3, 5).transpose(1, 0, 2)


def reshaped(call, x, *shape):
    return call("reshape", x, newshape=(), out=shape)


def split_heads(call, x):
    return call("transpose", reshaped(call, x, N, 3, 5), axes=(1, 0, 2), out=(3, N, 5))


def there_and_back(call, x):
    flat = reshaped(call, reshaped(call, x, N, M * 3), N, M, 3)
    return call("transpose", flat, axes=(2, 0, 1), out=(3, N, M))


def joined(call, *x):
    return call("exp", call("concatenate", x, axis=0))


def normed(x, g, b):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def mean_of(x):
    return x.sum(1) / x.shape[1] if x.shape[1] else np.full(len(x), np.nan)


def plain(name, **attrs):
    return lambda call, *x: call(name, *x, **attrs)


def rows_of(x, i):
    return x[np.clip(i, 0, len(x) - 1)] if len(x) else np.zeros((3, 4))


CASES = {
    "exp": ([(N, 5)], (N, 5), plain("exp"), np.exp),
    "flat": ([(N,)], (N,), plain("exp"), np.exp),
    "add": ([(N, M), (M,)], (N, M), plain("add"), np.add),
    "column": ([(N, M), (N, 1)], (N, M), plain("add"), np.add),
    "total": ([(N, M)], (N,), plain("sum", axis=1), lambda x: x.sum(1)),
    "columns": ([(N, M)], (M,), plain("sum", axis=0), lambda x: x.sum(0)),
    "all": ([(N, M)], (), plain("sum"), np.sum),
    "mean": ([(N, M)], (N,), plain("mean", axis=1), mean_of),
    "softmax": ([(3, N, M)], (3, N, M), plain("nn.softmax"), softmax),
    "norm": ([(N, 12), (12,), (12,)], (N, 12), plain("nn.layer_norm"), normed),
    "dense": ([(N, 20), (7, 20)], (N, 7), plain("nn.dense"), lambda x, w: x @ w.T),
    "scores": ([(3, N, 8), (3, M, 8)], (3, N, M), plain("nn.batch_matmul", transpose_b=True),
               lambda q, k: q @ k.transpose(0, 2, 1)),
    "mixed": ([(3, N, M), (3, M, 8)], (3, N, 8), plain("nn.batch_matmul", transpose_b=False), np.matmul),
    "heads": ([(N, 15)], (3, N, 5), split_heads, heads),
    "turned": ([(N, M)], (M, N), plain("transpose", axes=(1, 0)), np.transpose),
    "join": ([(2, N, 5), (2, M, 5)], (2, K, 5), lambda call, *x: call("concatenate", x, axis=1),
             lambda *x: np.concatenate(x, 1)),
    "joined": ([(N, 4), (M, 4)], (K, 4), joined, lambda *x: np.exp(np.concatenate(x))),
    "merged": ([(N, M, 3)], (3, N, M), there_and_back, lambda x: x.transpose(2, 0, 1)),
    "take": ([(9, 4), ("int32", N)], (N, 4), plain("take", axis=0), rows_of),
    "from": ([(N, 4), ("int32", 3)], (3, 4), plain("take", axis=0), rows_of),
}  # fmt: skip


def typed(spec):
    return (spec[1:], spec[0]) if spec and isinstance(spec[0], str) else (spec, "float32")


def group_of(ins, out, formula):
    group = ProgramBuilder("open")
    reads = [group.read(f"in{k}", MemoryView.dense(*typed(s))) for k, s in enumerate(ins)]

    def call(name, *args, out=out, **attrs):
        return group.compute(OutSpec(out, "float32"), Op.get(name).definition(**attrs).lower, args)

    group.write("out0", formula(call, *reads), MemoryView.dense(*typed(out)))
    return group


def arrays(ins, values):
    for spec in ins:
        shape, dtype = typed(spec)
        shape = [number_of(n, values) for n in shape]
        x = RNG.standard_normal(shape) * 3
        yield np.asarray(x, dtype)


def check(program, kernel, target, case, values):
    """One kernel and the evaluator of its loops for one set of sizes."""
    ins, out, _, wanted = case
    given = list(arrays(ins, values))
    expected = np.asarray(wanted(*given))
    held = {f"in{k}": np.concatenate([x.ravel(), x.ravel()[:1]])[: x.size] for k, x in enumerate(given)}
    held |= {"out0": aligned(expected.size), "sizes": np.array(values, "int64")}
    items = kernel.items if kernel.open_items is None else number_of(kernel.open_items, values)
    operands = [held[r] for r in kernel.operands if r != "scratch"]
    memory = {t: held[role].copy() for role, t in program.buffers}
    execute(kernel, target, operands, (0, 0.3, 1), items)
    run(program, memory)
    for result in (held["out0"], next(memory[t] for role, t in program.buffers if role == "out0")):
        np.testing.assert_allclose(result.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4, err_msg=str(values))


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_serves_all_lengths(name):
    target = CpuTarget.host()
    group = group_of(*CASES[name][:3])
    program, kernel = group.program(), lower_group(group, target)
    for values in LENGTHS:
        check(program, kernel, target, CASES[name], values)


@pytest.mark.parametrize("target", ["avx2", "generic"])
@pytest.mark.parametrize("name", ["softmax", "join"])
def test_other_registers(name, target):
    target = CpuTarget.parse(TARGETS[target])
    group = group_of(*CASES[name][:3])
    for values in LENGTHS:
        check(group.program(), lower_group(group, target), target, CASES[name], values)


def test_what_decides_by_a_size_is_refused():
    for decide in (lambda: N > 1, lambda: int(N), lambda: range(N), lambda: max(N, 1)):
        with pytest.raises(RelayTypeError):
            bool(decide())
    with pytest.raises(RelayTypeError):
        number_of(Axis("i", 3), [1])


def test_products_of_sizes_are_divided_where_their_terms_tell():
    i, j, k = axis_over("i", N), axis_over("j", M), Axis("k", 8)
    simple = Simplifier()
    flat = simple((i * M + j) * 8 + k)
    for root, wanted in [(flat // 8 // M, i), (flat // (M * 8), i), (flat // 8 % M, j), (flat % (M * 8), j * 8 + k)]:
        assert simple(root) is simple(wanted)
    assert simple(flat // (N * 8)) is not simple(i)
