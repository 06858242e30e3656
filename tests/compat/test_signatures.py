"""Names, order and defaults of the parameters of every operator under `relay`: as TVM 0.10's, in a table."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from relaylab import relay
from relaylab.support.errors import RelayTypeError

TABLE = Path(__file__).parent / "signatures.txt"
MODULES = ("relay", "relay.nn", "relay.image", "relay.vision", "relay.qnn.op", "relay.random")


def signatures() -> list[str]:
    """A line for each operator's builder, under the first module that has it."""
    seen: set[int] = set()
    lines: list[str] = []
    for module in MODULES:
        loaded = relay
        for part in module.split(".")[1:]:
            loaded = getattr(loaded, part)
        for name in sorted(dir(loaded)):
            value = getattr(loaded, name)
            if name[0] != "_" and hasattr(value, "definition") and id(value) not in seen:
                seen.add(id(value))
                lines.append(
                    f"{module}.{name}({', '.join(map(_written, inspect.signature(value).parameters.values()))})"
                )
    return lines


def _written(p: inspect.Parameter) -> str:
    return p.name if p.default is p.empty else f"{p.name}={p.default!r}"


def test_signatures_are_those_of_the_table(update_golden: bool) -> None:
    """`--update-golden` adds those of new operators; one that changed is not written over."""
    recorded = TABLE.read_text(encoding="utf-8").splitlines()
    found = signatures()
    if update_golden and not set(recorded) - set(found):
        TABLE.write_text("\n".join(recorded := found) + "\n", encoding="utf-8")
    changed = sorted(set(recorded) ^ set(found))
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (lambda x: relay.concatenate([x, x]), "axis"),
        (lambda x: relay.stack([x, x]), "axis"),
        (lambda x: relay.scatter(x, x, x), "axis"),
        (lambda x: relay.one_hot(x, x, x), "depth"),
        (lambda x: relay.nn.depth_to_space(x), "block_size"),
        (lambda x: relay.nn.space_to_depth(x), "block_size"),
        (lambda x: relay.nn.group_norm(x, x, x), "num_groups"),
        (lambda x: relay.image.resize2d(x), "size"),
        (lambda x: relay.image.crop_and_resize(x, x, x), "crop_size"),
        (lambda x: relay.vision.yolo_reorg(x), "stride"),
        (lambda x: relay.vision.proposal(x, x, x), "scales"),
        (lambda x: relay.repeat(x, 2), "axis"),
        (lambda x: relay.reverse(x), "axis"),
        (lambda x: relay.qnn.op.dense(x, x, x, x, x, x), "units"),
        (lambda x: relay.qnn.op.conv2d(x, x, x, x, x, x), "kernel_size"),
        (lambda x: relay.qnn.op.concatenate([x], [x], [x], x, x), "axis"),
        (lambda x: relay.image.affine_grid(x), "target_shape"),
    ],
)
def test_what_must_be_given_is_asked_for(call: object, missing: str) -> None:
    with pytest.raises(RelayTypeError, match=missing):
        call(relay.var("x", shape=(1, 4, 4, 4)))  # type: ignore[operator]
