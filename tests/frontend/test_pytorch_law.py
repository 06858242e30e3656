"""The law of the PyTorch importer: which of torch's core ATen operators it does not know, each with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylab.frontend.pytorch import operators
from relaylab.frontend.pytorch.table import TABLE, name_of, unsupported, way_on

torch = pytest.importorskip("torch", reason="reads PyTorch models")

# core operators without converter, by the reason; the list may only shrink
REASONS = {
    "gradients, of programs that train": [
        "_adaptive_avg_pool2d_backward.default",
        "avg_pool2d_backward.default",
        "convolution_backward.default",
        "embedding_dense_backward.default",
        "max_pool2d_with_indices_backward.default",
        "native_group_norm_backward.default",
        "native_layer_norm_backward.default",
    ],
    "changes the running statistics of a model in training": ["_native_batch_norm_legit.default"],
    "numbers are drawn at random": ["rand.default", "randn.default", "randperm.default"],
    "writes into an argument, which exported programs never do": ["atan2.out", "resize_.default"],
}
MOST = 13


def core() -> set[str]:
    """The names of all operators that torch tags as core."""
    found: set[str] = set()
    for schema in torch._C._jit_get_all_schemas():  # dir(torch.ops.aten) has only those that were asked for
        packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"), None) if "aten::" in schema.name else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and torch.Tag.core in overload.tags:
            found.add(name_of(overload))
    return found


def test_every_core_operator_is_known_or_has_a_reason() -> None:
    unknown = {name for name in core() if name not in TABLE}
    listed = [name for names in REASONS.values() for name in names]
    assert unknown == set(listed) and len(listed) == len(set(listed)) <= MOST


def test_whatever_is_refused_has_a_way_on() -> None:
    listed = [name for names in REASONS.values() for name in names]
    assert [name for name in listed if not way_on(name)] == []
    error = unsupported({name: f"{name} `x` (net.py:{k})" for k, name in enumerate(listed, 1)})
    assert all(name in error.message for name in listed)
    assert error.place.count("  --> ") == len(listed) and all(way_on(name) in error.help for name in listed)


def test_the_page_says_how_many() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text(encoding="utf-8")
    known = len(core()) - sum(map(len, REASONS.values()))
    assert f"{known} of the {len(core())} core operators of torch {torch.__version__.split('+')[0][:-2]}" in page
    assert f"{len(operators())} overloads" in page
    other = (Path(__file__).resolve().parents[2] / "docs" / "coming_from_tvm.md").read_text(encoding="utf-8")
    assert f"lists the {len(core()) - known} of torch's {len(core())} core" in " ".join(other.split())
