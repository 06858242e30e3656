"""Fusion beyond golden cases: limits, linked parameters, kernels that are there already, meaning of its choices."""

from __future__ import annotations

import numpy as np
import pytest
from support.networks import random_network
from support.programs import programs

import relaylab.text  # noqa: F401
from relaylab import relay
from relaylab.ir import Constant, Function, IRModule, Op, const, op_name, post_order, var, walk
from relaylab.op.base import call_operator as call
from relaylab.transform import PassContext, create


def kernels(mod: IRModule) -> list[Function]:
    return [n for n in walk((mod["main"],)) if isinstance(n, Function) and n.is_primitive]


def operators(func: Function) -> list[str]:
    return [name for n in walk((func.body,)) if (name := op_name(n))]


def fused(expr, level: int = -1, **config) -> IRModule:
    with PassContext(opt_level=3, config={f"relay.FuseOps.{k}": v for k, v in config.items()}):
        return create("FuseOps", level)(create("InferType")(IRModule.from_expr(expr)))


def chain(length: int):
    x = var("x", shape=(4,))
    for _ in range(length):
        x = call("tanh", x)
    return x


@pytest.mark.parametrize(("limit", "sizes"), [(256, [10]), (5, [5, 5]), (3, [1, 3, 3, 3]), (1, [1] * 10)])
def test_max_depth_bounds_the_operators_of_a_kernel(limit, sizes):
    found = sorted(len(operators(k)) for k in kernels(fused(chain(10), max_depth=limit)))
    assert sum(found) == 10 and max(found) <= limit
    assert len(found) == len(sizes)


def test_linked_parameters_stay_inside_the_kernel():
    x, weight = var("x", shape=(4,)), const(np.arange(4, dtype="float32"))
    e = call("multiply", call("tanh", x), weight)
    for link in (False, True):
        (kernel,) = kernels(fused(e, link_params=link))
        assert len(kernel.params) == (1 if link else 2)
        assert any(isinstance(n, Constant) for n in walk((kernel.body,))) is link


@pytest.mark.parametrize("link", [False, True])
def test_a_constant_of_another_shape_is_a_kernel_without_inputs(link):
    """It has no input whose memory its result could be: the build ended with a StopIteration."""
    value = const(np.ones((2, 3), "float32")) if link else const(1.0)
    mod = fused(call("reshape", value, newshape=(-1,)), link_params=link)
    given = relay.parse(mod.astext().replace("Primitive=1)", "Primitive=1, relay.reshape_only=1)"))  # as TVM prints it
    for each in (mod, given):
        np.testing.assert_array_equal(relay.build(each, "llvm").run(), np.ones(6 if link else 1))


def test_small_scalars_stay_inside_and_big_constants_become_parameters():
    x = var("x", shape=(4,))
    (kernel,) = kernels(fused(call("add", x, const(1.0))))
    assert len(kernel.params) == 1
    (kernel,) = kernels(fused(call("add", x, const(np.ones(4, "float32")))))
    assert len(kernel.params) == 2


def test_kernels_that_are_there_are_left_alone():
    once = fused(chain(3))
    assert create("FuseOps")(once) is once


def test_defusing_undoes_fusing():
    plain = create("InferType")(IRModule.from_expr(chain(3)))
    again = create("DefuseOps")(fused(chain(3)))
    assert str(again) == str(plain)


def test_a_value_used_outside_is_not_fused_away():
    x = var("x", shape=(4,))
    a = call("exp", x)
    both = call(
        "concatenate", [call("tanh", a), call("reshape", call("sum", a, axis=[0], keepdims=True), newshape=[1])], axis=0
    )
    mod = fused(both)
    assert sum(operators(k).count("exp") for k in kernels(mod)) == 1


def test_sums_of_products_are_not_computed_again_by_what_reads_them():
    x, y = var("x", shape=(2, 3)), var("y", shape=(3, 4))
    inner = call("einsum", [x, y], equation="ij,jk->ik")
    mod = fused(call("exp", call("einsum", [inner, y], equation="ik,jk->ij")))
    assert sorted(map(operators, kernels(mod))) == [["einsum"], ["einsum", "exp"]]


def test_fused_programs_are_typed_as_inference_types_their_text() -> None:
    for mod in [*programs(20), *(random_network(seed, 14).mod for seed in range(4100, 4106))]:
        with PassContext(opt_level=4):
            fused = create("LabelOps")(create("FuseOps")(mod))
        for gv, func in fused.functions.items():
            bare = relay.parse(fused.astext(show_meta_data=True))[gv.name_hint]
            pairs = list(zip(post_order(func), post_order(bare), strict=True))
            assert pairs and all(str(a.inferred) == str(b.inferred) for a, b in pairs if not isinstance(a, Op))
