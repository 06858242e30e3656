"""GraphModule: its whole surface, bad input, outputs that stay, several threads."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import tiny

from relaylab import relay
from relaylab.runtime import BenchmarkResult, array, cpu, cuda, empty, graph_executor, save_param_dict
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.memory import OutOfMemory
from relaylab.runtime.native import Instance
from relaylab.runtime.profiling import Report
from relaylab.support.errors import RelayError, RelayIndexError, RelayTypeError, RelayValueError


@pytest.fixture
def module() -> GraphModule:
    return GraphModule(tiny.factory()["default"](cpu(0)))


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).normal(size=tiny.SIZE).astype("float32")


@pytest.mark.parametrize("given", [("xx",), ("image",), ("xx", "conv0_weight")])
def test_a_keyword_that_was_likely_meant_for_an_input_is_told(module: GraphModule, x: np.ndarray, given) -> None:
    with pytest.warns(UserWarning, match=f"set_input skips `{given[0]}`.*did you mean `x`"):
        module.set_input(**dict.fromkeys(given, x))


@pytest.mark.filterwarnings("error")
def test_parameters_that_were_folded_away_are_skipped_without_a_word(module: GraphModule, x: np.ndarray) -> None:
    module.set_input(**{"conv0_weight": x, "conv1_weight": x[:3]})
    module.set_input("x", x)
    module.set_input(xx=x)


def test_run_and_outputs(module: GraphModule, x: np.ndarray) -> None:
    module.set_input("x", x)
    module.run()
    assert (module.get_num_outputs(), module.get_num_inputs()) == (2, 3)
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)
    out = empty((), "float32")
    assert module.get_output(1, out) is out
    assert float(out.numpy()) == pytest.approx(float(tiny.expected(x).sum()), rel=1e-4)


@pytest.mark.parametrize(
    "give",
    [
        lambda m, x: m.set_input("x", x),
        lambda m, x: m.set_input(0, x),
        lambda m, x: m.set_input(x=x),
        lambda m, x: m.set_input("x", array(x)),
        lambda m, x: m.set_input("x", x.tolist()),
        lambda m, x: m.set_input("x", x.astype("float64")),
        lambda m, x: m.get_input("x").copyfrom(x),
        lambda m, x: m.set_input({"x": x}),
        lambda m, x: m["set_input"]("x", x),
        lambda m, x: m.set_input("x", np.repeat(x, 2)[::2]),
        lambda m, x: m.set_input("x", np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view("float32")),
        lambda m, x: m.load_params(save_param_dict({"x": x, "unknown": x})),
    ],
)
def test_ways_to_give_an_input(module: GraphModule, x: np.ndarray, give: object) -> None:
    give(module, x)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("act", "error", "word"),
    [
        (lambda m: m.set_input("xx", 0), RelayValueError, "did you mean `x`"),
        (lambda m: m.set_input("data", 0), RelayValueError, "inputs: x"),
        (lambda m: m.set_input(7, 0), RuntimeError, "Could not find"),
        (lambda m: m.set_input("x", np.zeros((1, tiny.SIZE))), RelayValueError, "reshape"),
        (lambda m: m.set_input("x", np.zeros(3)), RelayValueError, "the input `x` has shape (576,)"),
        (lambda m: m.set_input("x", np.zeros(tiny.SIZE, complex)), RelayTypeError, "complex"),
        (lambda m: m.set_input("x", None), RelayTypeError, "NoneType"),
        (lambda m: m.run(y=1), RelayValueError, "Could not find `y`"),
        (lambda m: m.get_output(2), RelayIndexError, "the network has 2"),
        (lambda m: m.get_output(-1), RelayIndexError, "-1"),
        (lambda m: m.set_input("p0", np.zeros(tiny.SIZE)), RelayValueError, "built into the code"),
        (lambda m: m.debug_get_output("tvmgen_default_fused_affin"), RelayValueError, "did you mean"),
        (lambda m: m.debug_get_output(99), RelayError, "no node 99"),
        (lambda m: m["rum"], AttributeError, "did you mean `run`"),
        (lambda m: m.benchmark(cuda(0)), RelayValueError, "cuda(0) does not exist"),
        (lambda m: m.benchmark(cpu(0), number=0), RelayValueError, "number"),
        (lambda m: m.benchmark(cpu(0), repeat=10**30), RelayValueError, "31 bits"),
        (lambda m: m.benchmark(cpu(0), min_repeat_ms=1e300), RelayValueError, "24 days"),
        (lambda m: m.benchmark(cpu(0), cooldown_interval_ms=-1), RelayValueError, "24 days"),
        (lambda m: m.load_params(b"junk"), RelayError, "byte"),
        (lambda m: GraphModule(tiny.factory()), RelayTypeError, 'lib["default"](dev)'),
        (lambda m: tiny.factory()["default"](cuda(0)), RelayValueError, "does not exist"),
        (lambda m: tiny.factory().inspect("lop"), RelayValueError, "did you mean `loop`"),
        (lambda m: tiny.factory().inspect("loop", "afine"), RelayValueError, "did you mean `affine`"),
        (lambda m: tiny.factory().inspect("asm", "affine"), RelayValueError, "build the module"),
    ],
)
def test_bad_input(module: GraphModule, act: object, error: type[Exception], word: str) -> None:
    with pytest.raises(error) as caught:
        act(module)
    assert word in str(caught.value)


def test_unknown_keywords_of_set_input_are_skipped(module: GraphModule, x: np.ndarray) -> None:
    module.set_input(x=x, conv0_weight=x, p0=tiny.weights()[0])
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)


def test_outputs_keep_their_values(module: GraphModule, x: np.ndarray) -> None:
    module.run(x=x)
    first = module.get_output(0)
    shared = np.from_dlpack(module.get_output(1))
    before = (first.numpy(), shared.copy())
    module.run(x=-x)
    np.testing.assert_array_equal(first.numpy(), before[0])
    np.testing.assert_array_equal(shared, before[1])
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(-x), rtol=1e-6)


def test_outputs_keep_their_values_where_memory_was_short_once(
    module: GraphModule, x: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(self: Instance, index: int) -> np.ndarray:
        raise OutOfMemory("there is no memory", code="runtime.out-of-memory")

    module.run(x=x)
    held = module.get_output(0)
    with monkeypatch.context() as patch, pytest.raises(OutOfMemory):
        patch.setattr(Instance, "new_output", none_left)
        module.run(x=x)
    del held
    module.run(x=x)
    kept = module.get_output(0)
    before = kept.numpy()
    module.run(x=2 * x + 1)
    np.testing.assert_array_equal(kept.numpy(), before)


def test_inputs_and_parameters_are_listed(module: GraphModule) -> None:
    assert module.get_input_info() == ({"x": (tiny.SIZE,)}, {"x": "float32"})
    assert [module.get_input_index(name) for name in ("x", "p0", "p1", "y")] == [0, 1, 2, -1]
    np.testing.assert_array_equal(module.get_input("p0").numpy(), tiny.weights()[0])


def test_intermediate_values(module: GraphModule, x: np.ndarray) -> None:
    module.set_input("x", x)
    for node in (2, "tvmgen_default_fused_affine"):
        np.testing.assert_allclose(module.debug_get_output(node).numpy(), tiny.expected(x), rtol=1e-6)
    found = module.debug_get_output(0)  # an input
    np.testing.assert_array_equal(found.numpy(), x)
    module.set_input("x", np.zeros_like(x))
    np.testing.assert_array_equal(found.numpy(), x)


def test_shared_parameters(module: GraphModule, x: np.ndarray) -> None:
    other = GraphModule(tiny.factory()["default"](cpu(0)))
    other.set_input("x", x)
    module.share_params(other, save_param_dict({"x": x}))
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)
    assert module.get_input(0).same_as(other.get_input(0))


def test_parameters_of_another_type_are_converted(module: GraphModule, x: np.ndarray) -> None:
    other = GraphModule(tiny.factory()["default"](cpu(0)))
    other._executor._inputs[0] = array(x.astype("float64"))
    module.share_params(other, save_param_dict({"x": x}))
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)


def test_create_from_parts(x: np.ndarray) -> None:
    lib = tiny.factory()
    with pytest.warns(DeprecationWarning):
        graph, kernels, params = lib
    module = graph_executor.create(json.dumps(json.loads(graph), indent=2), kernels, cpu(0))
    module.set_input(**params)
    module.run(x=x)
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)
    for bad in ("{}", "not json", None, "[" * 100_000):
        with pytest.raises(RelayValueError):
            graph_executor.create(bad, kernels, cpu(0))
    with pytest.raises(RelayTypeError):
        graph_executor.create(graph, None, cpu(0))


def test_measurements(module: GraphModule, x: np.ndarray) -> None:
    result = module.benchmark(cpu(0), repeat=3, number=2, end_to_end=True, x=x)
    assert isinstance(result, BenchmarkResult) and len(result.results) == 3
    assert result.min <= result.median <= result.max and "median (ms)" in str(result)
    timed = module.module.time_evaluator("run", cpu(0), number=1, repeat=2, min_repeat_ms=1)()
    assert len(timed.results) == 2


def test_profile(module: GraphModule, x: np.ndarray) -> None:
    report = module.profile(x=x)
    assert [call["Name"] for call in report.calls] == ["affine", "total"]
    assert Report.from_json(report.json()).csv() == report.csv()
    assert report.csv().count("\n") == 3 and "Sum" in str(report)
    with pytest.raises(RelayValueError):
        Report.from_json("[]")


def test_threads_take_turns(module: GraphModule) -> None:
    failures: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=tiny.SIZE).astype("float32")
        own = GraphModule(tiny_lib["default"](cpu(0)))
        for _ in range(200):
            module.run()
            own.run(x=x)
            if not np.allclose(own.get_output(0).numpy(), tiny.expected(x)):
                failures.append(seed)

    tiny_lib = tiny.factory()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_a_program_that_only_copies(x: np.ndarray) -> None:
    """Views of what is copied are kept: they must follow inputs and results that get other memory."""
    data = relay.var("data", shape=x.shape, dtype=x.dtype.name)
    both = relay.Tuple([relay.reshape(data, newshape=(-1,)), data])
    lib = relay.build(relay.IRModule.from_expr(both), target="llvm")
    module, other = GraphModule(lib["default"](cpu(0))), GraphModule(lib["default"](cpu(0)))
    kept = []  # in use: the next run writes elsewhere
    for run, shared in enumerate((False, False, True, True)):
        if shared:
            module.share_params(other, save_param_dict({"data": x}))
        (other if shared else module).set_input("data", x + run)
        module.run()
        kept.append((module.get_output(0), module.get_output(1)))
    for run, (flat, whole) in enumerate(kept):
        np.testing.assert_array_equal(flat.numpy(), x.reshape(-1) + run)
        np.testing.assert_array_equal(whole.numpy(), x + run)
