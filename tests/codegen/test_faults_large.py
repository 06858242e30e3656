"""Shapes that no memory holds: every one is refused by name, and none is computed while building."""

from __future__ import annotations

import pytest

from relaylab import relay
from relaylab.runtime import cpu
from relaylab.runtime.memory import OutOfMemory
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

pytestmark = pytest.mark.slow

MANY, MOST = 2**40, 2**31 - 1
PROGRAMS = {
    "an input": (f"(%x: Tensor[({MANY}), float32]) {{ nn.relu(%x) }}", "the input `x`"),
    "an input beyond int64": (f"(%x: Tensor[({MOST}, {MOST}, {MOST}), float32]) {{ nn.relu(%x) }}", "the input `x`"),
    "bytes beyond int64": (f"(%x: Tensor[({MOST}, {MOST}), float32]) {{ nn.relu(%x) }}", "the input `x`"),
    "a reshape": ("(%x: Tensor[(1048576, 1048576), float32]) { reshape(%x, newshape=[-1]) }", "the input `x`"),
    "an activation": (
        "(%x: Tensor[(1048576, 1), float32], %y: Tensor[(1048576, 1), float32]) {"
        " nn.softmax(nn.dense(%x, %y, units=None)) }", "the intermediate results"),
    "an activation beyond int64": (
        f"(%x: Tensor[({MOST}, 1), float32], %y: Tensor[({MOST}, 1), float32]) {{"
        " nn.softmax(nn.dense(%x, %y, units=None)) }", "the intermediate results"),
    "zeros": (f'() {{ zeros(shape=[{MANY}], dtype="float32") }}', "the output 0"),
    "repeats": (f"(%x: Tensor[(4), float32]) {{ repeat(%x, repeats={MANY}, axis=0) }}", "the output 0"),
    "padding": (f"(%x: Tensor[(4), float32]) {{ nn.pad(%x, 0f, pad_width=[[{MANY}, 0]]) }}", "the output 0"),
    "a constant": (f"() {{ exp(full(2f, shape=[{MANY}], dtype=\"float32\")) }}", "the (output 0|intermediate results)"),
    "a weight": (
        "(%x: Tensor[(1, 65536, 8, 8), float32], %w: Tensor[(1048576, 65536, 3, 3), float32]) {"
        " nn.conv2d(%x, %w, padding=[1, 1, 1, 1]) }", "cannot allocate"),
}  # fmt: skip


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_too_large(name: str, level: int) -> None:
    body, words = PROGRAMS[name]
    mod = relay.transform.InferType()(relay.fromtext(f'#[version = "0.0.5"]\ndef @main{body}'))
    with pytest.raises(OutOfMemory, match=words) as caught, PassContext(opt_level=level):
        relay.build(mod, "llvm")["default"](cpu(0))
    assert caught.value.code == "runtime.out-of-memory" and caught.value.help
    assert isinstance(caught.value, MemoryError)


def test_a_range_of_constants_is_not_counted_out() -> None:
    text = f'#[version = "0.0.5"]\ndef @main() {{ arange(0, {MOST}, 1, start=0, stop=10, step=1, dtype="int64") }}'
    mod = relay.transform.InferType()(relay.fromtext(text))
    with pytest.raises(RelayError), PassContext(opt_level=3):
        relay.build(mod, "llvm")["default"](cpu(0))


def test_what_cannot_be_folded_fails_when_it_runs() -> None:
    """An index outside a constant, read from a constant: building goes on, the interpreter names the operator."""
    data, at = relay.const([[1.0, 2.0]]), relay.const([[5]], "int32")
    mod = relay.IRModule.from_expr(relay.Function([], relay.gather(data, 1, at)))
    folded = relay.transform.FoldConstant()(relay.transform.InferType()(mod))
    assert "gather" in folded.astext()
    with pytest.raises(RelayError, match="gather failed"):
        relay.create_executor("debug", folded).evaluate()()
