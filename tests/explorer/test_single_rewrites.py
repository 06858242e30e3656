"""The questions about single rewrites."""

from __future__ import annotations

import pytest

from relaylab.explorer.session import Session
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
