"""FlexibleShapeDispatch: one program for several extents of an axis."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import AnyDim, IRModule, TensorType
from relaylab.support.errors import RelayValueError
from relaylab.transform import FlexibleShapeDispatch
from relaylab.transform.flexible_shape_dispatch import flexible_dispatch, override_shape, specialize_body


def networks() -> tuple[IRModule, IRModule]:
    x, w = relay.var("x", shape=(6, 5)), relay.var("w", shape=(6, 5))
    both = relay.Tuple([relay.nn.dense(x, w), relay.exp(x)])
    return IRModule.from_expr(relay.nn.dense(x, w)), IRModule.from_expr(relay.Function([x, w], both))


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_every_extent_gives_the_numbers_of_numpy(kind):
    reduced, both = networks()
    rng = np.random.default_rng(1)
    by_depth = flexible_dispatch(reduced, [3, 5], axis=1, input_indices=[0, 1], affects_output=False)
    batches = FlexibleShapeDispatch([2, 6], auto_pad=True, pad_value=1.5, input_indices=[0])(both)
    assert {"main_3", "main_5", "main_any"} < {gv.name_hint for gv in by_depth.functions}
    depth, batch = (relay.create_executor(kind, mod=m).evaluate() for m in (by_depth, batches))
    for n in (3, 4, 5):
        a, b = rng.random((6, n), "float32"), rng.random((6, n), "float32")
        np.testing.assert_allclose(depth(a, b).numpy(), a @ b.T, rtol=1e-5)
    w = rng.random((6, 5), "float32")
    for n in (1, 2, 5, 7):
        x = rng.random((n, 5), "float32")
        dense, exp = batch(x, w)
        np.testing.assert_allclose(dense.numpy(), x @ w.T, rtol=1e-5)
        np.testing.assert_allclose(exp.numpy(), np.exp(x), rtol=1e-5)


def test_types_and_copies():
    typ = TensorType((2, 3), "int8")
    assert override_shape(typ, -1, 7) == TensorType((2, 7), "int8")
    assert override_shape(typ, 0, AnyDim()).is_dynamic
    mod = networks()[0]
    gv, types = specialize_body(mod, mod["main"], 1, 9, [0, 1])
    assert gv.name_hint == "main_9" and types == [TensorType((6, 9), "float32")] * 2 and "main_9" in mod


@pytest.mark.parametrize(
    "options",
    [{"axis": 2}, {"input_indices": [2]}, {"input_indices": []}, {"buckets": [0]}, {"axis": 1, "auto_pad": True}],
)
def test_options_that_do_not_fit_are_refused(options):
    x = relay.var("x", shape=(6, 5))
    mod = IRModule.from_expr(relay.Function([x], relay.sum(x, axis=1)))
    with pytest.raises(RelayValueError) as caught:
        FlexibleShapeDispatch(**{"buckets": [2], **options})(mod)
    assert caught.value.code == "dispatch.options" and caught.value.help
