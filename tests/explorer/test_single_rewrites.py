"""The questions about single rewrites."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relaylab import relay
from relaylab.explorer.session import Session
from relaylab.ir import Constant
from relaylab.study import explore


@pytest.fixture(scope="module")
def mlp():
    return Session(explore("mlp"))


def test_a_rewrite_is_told_whole_and_leads_to_the_next(mlp):
    """From the operator that a pass replaced to the kernel that the new one went into."""
    items = [item.name for item in mlp.pipeline.items]
    ops, fuse = items.index("CanonicalizeOps"), items.index("FuseOps")
    listed = mlp.ask("steps", ops)["steps"]
    assert [s["rule"] for s in listed] == ["nn.bias_add → add"] * 3 and {s["next"] for s in listed} == {-1}
    found = mlp.ask("rewrite", ops, 1)
    boxes = {f["id"] for f in found["after"]["figures"] if f["kind"] == "node"}
    assert listed[1]["ids"][1] in boxes and "class CanonicalizeOps" in found["code"]
    assert [row[0] for row in found["rows"]] == ["-", "+"] and found["rows"][1][3], "words are marked"
    after = mlp.ask("next_rewrite", ops, 1)
    assert after["index"] == fuse
    kernel = mlp.ask("steps", fuse)["steps"][after["at"]]
    assert kernel["rule"] == "nn.dense, add, nn.relu → one kernel: nn.dense, add, nn.relu"
    assert mlp.ask("next_rewrite", fuse, after["at"]) == {"index": -1, "at": -1} or len(items) > fuse + 1
    place = mlp.ask("code_place", ops, 1)
    assert place["files"][0].endswith("canonicalize_ops.py") and place["line"] > 1 and not place["cell"]


def test_constants_have_their_one_name_in_rewrites_and_code(mlp):
    """The name that text, pictures and the panel have, in rows, small pictures, words of holes and kernels."""
    told = [mlp.ask("rewrite", k, at) for k in range(len(mlp.pipeline.items)) for at in range(_count(mlp, k))]
    assert told and "meta[" not in str(told)
    ops = [item.name for item in mlp.pipeline.items].index("CanonicalizeOps")
    assert [r[1] for r in mlp.ask("rewrite", ops, 1)["rows"]][1] == "%6 = add(%7, fc2_bias)"
    constant = relay.const(np.arange(40, dtype="float32"))
    body = relay.add(relay.var("x", shape=(40,)), constant)
    kernel = relay.Function(relay.analysis.free_vars(body), body).with_attr("Primitive", 1)
    mod = relay.IRModule.from_expr(relay.Call(kernel, [relay.var("y", shape=(40,))]))
    session = Session(explore(mod, passes=["InferType"]))
    listed = session.ask("kernel", 1, "main/add")
    assert "add(%x, const0 " in listed["relay"] and "meta[" not in listed["relay"]


def _count(session: Session, index: int) -> int:
    return len(session.ask("steps", index)["steps"])


def test_a_constant_is_told_by_its_figures_and_first_values(mlp):
    """What the panel shows of a weight is what numpy says of it."""
    view, nodes = mlp.frames.views[0], mlp.frames.nodes[0]
    name, call = next((n.id, nodes[n.id]) for n in view.nodes if n.operator == "nn.dense")
    weight = call.args[1]
    assert isinstance(weight, Constant)
    (told,) = mlp.ask("node", 0, name)["values"]
    data = weight.data.numpy()
    assert told["shape"] == list(data.shape) and data.size / 4 < sum(told["bins"]) <= data.size
    assert told["head"] == [f"{v:.4g}" for v in data.ravel()[:8]]
    found = [told[key] for key in ("min", "max", "mean", "std")]
    np.testing.assert_allclose(found, [data.min(), data.max(), data.mean(), data.std()], rtol=1e-4, atol=1e-7)
    assert max(abs(cell) for row in told["grid"] for cell in row) == 9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "data",
    [
        np.full((2, 3), 2**63 - 1, "int64"),
        np.array([1.0, 1 + 2**-52]),
        np.full(8, np.finfo("float64").min),
        np.array([-1.7e308, 0, 1.7e308]),
        np.array([0, 5e-324]),
        np.array([np.inf, -np.inf, np.nan, 2], "float32"),
    ],
)
def test_constants_at_the_ends_of_their_types_are_told(data):
    """Ends of slices are the largest integers, masks the least floats: finite figures, every number in a bin."""
    x = relay.var("x", shape=data.shape, dtype=str(data.dtype))
    mod = relay.IRModule.from_expr(relay.add(x, relay.const(data, str(data.dtype))))
    session = Session(explore(mod, passes=["InferType"]))
    (told,) = session.ask("node", 0, "main/add")["values"]
    json.dumps(told, allow_nan=False)
    kept = data[np.isfinite(data)]
    assert sum(told["bins"]) == kept.size and (told["min"], told["max"]) == (kept.min(), kept.max())
