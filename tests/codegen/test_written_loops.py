"""Loops that are written out stand in place of those of a kernel, or are refused with the reason."""

from __future__ import annotations

import re

import pytest
from test_scheduled_kernels import program_of

from relaylab import relay, study
from relaylab.loop.schedule import Schedule
from relaylab.support.errors import RelayError


def product() -> study.Program:
    x, w = relay.var("x", shape=(12, 16)), relay.var("w", shape=(16, 24))
    body = relay.Function([x, w], relay.nn.relu(relay.nn.matmul(x, w)))
    return study.Program("product", relay.transform.InferType()(relay.IRModule.from_expr(body)))


PLAIN = study.schedule(product(), "matmul").loops


@pytest.mark.parametrize("name", ["conv2d", "matmul"])
@pytest.mark.parametrize("begin", ["from plain", "from picked"])
def test_the_loops_that_are_printed_are_the_loops(name: str, begin: str) -> None:
    program = program_of(name)
    printed = study.schedule(program, name, begin)
    again = study.schedule(program, name, printed.loops)
    assert again.loops == printed.loops and again.error == printed.error


def test_edited_loops_are_compiled() -> None:
    edited = PLAIN.replace("for k in 16:", "for k in 16 unrolled:").replace("items=1", "items=12")
    edited = edited.replace("parallel once in 1:\n    for i0 in 12:", "parallel i0 in 12:\n    for once in 1:")
    trial = study.schedule(product(), "matmul", edited)
    assert "parallel i0 in 12:" in trial.loops and trial.error < 1e-6
    wrong = study.schedule(product(), "matmul", PLAIN.replace("sum0: float32 = 0f", "sum0: float32 = 1f"))
    assert wrong.error > 0.01


REFUSED = {
    ("for i0 in 12:", "for i0 in 12"): "loop.parse: expected `:`",
    ("in0[i0 *", "in0[1 + i0 *"): "loop.parse: not proven to stay in its buffer",
    ("float32[192]", "float32[191]"): "loop.parse: not proven to stay",
    (", in1: in1 ", ", in1: in2 "): "schedule.illegal: the operands of these loops are not those of the kernel",
    ("float32[192],", "float32[192] known,"): "schedule.illegal: `in0` is not known when the program is built",
    ("parallel once in 1:", "parallel once in 2:"): "schedule.illegal: several turns of `once` write `out0",
    ("for i0 in 12:", "for i0 in 12 vectorized:\n      if in0[i0] < 0f:\n       for q in 1:"): "different sides",
    ("for i1 in 24:", "for i1 in 24 to i0 + 1:\n       for i2 in 2 vectorized:"): "several turns of `i2` write",
    ("for i1 in 24:\n", "for i1 in 24:\n        acc[i1] = 0f\n"): "schedule.illegal: `acc` lives in registers",
}  # fmt: skip


@pytest.mark.parametrize("edit", REFUSED, ids=range(len(REFUSED)))
def test_loops_that_cannot_be_are_refused(edit: tuple[str, str]) -> None:
    edited = PLAIN.replace(*edit).replace(" items=1", "")
    if edit[1].endswith("0f\n"):
        edited = edited.replace("  parallel", "  registers acc: float32[24]\n  parallel", 1)
    if "q in 1" in edit[1]:
        head, _, body = edited.partition("for q in 1:\n")
        edited = head + "for q in 1:\n" + "\n".join("  " + line for line in body.splitlines())
    assert edited != PLAIN
    with pytest.raises(RelayError) as told:
        study.schedule(product(), "matmul", edited)
    code, _, words = REFUSED[edit].rpartition(": ")
    assert words in told.value.message and code in ("", told.value.code)


def test_a_schedule_of_loops_is_a_value() -> None:
    schedule = Schedule.parse(PLAIN)
    assert str(schedule) == PLAIN and schedule == Schedule.parse(str(schedule)) and hash(schedule)
    assert "unrolled" in study.schedule(product(), "matmul", schedule.then("unroll", "k")).loops


def test_steps_may_follow_loops() -> None:
    schedule = Schedule.parse(PLAIN).then("unroll", "k")
    assert Schedule.parse(str(schedule)) == schedule and Schedule() + schedule == schedule
    for first in (Schedule.parse("unroll k"), schedule):
        with pytest.raises(RelayError, match="stand first"):
            first + schedule
    with pytest.raises(RelayError, match="stands first or not at all"):
        study.schedule(product(), "matmul", f"{PLAIN}\nfrom plain")


def test_a_loop_may_be_empty() -> None:
    """As `inline` leaves one whose only value nothing uses."""
    for how in ("", " unrolled", " vectorized"):
        text = PLAIN.replace("        out0[", f"        for q in 2{how}:\n        out0[")
        assert study.schedule(product(), "matmul", text).error < 1e-6


EXP = study.Program("exp", relay.transform.InferType()(relay.parse("def @main(%x: Tensor[(16), float32]) { exp(%x) }")))


@pytest.mark.parametrize("grain", [5, 16, 1 << 62])
def test_an_item_is_as_many_turns_as_its_loops_say(grain: int) -> None:
    text = f"""kernel exp(x: in0 float32[16], y: out0 float32[16])
  parallel i in 16 by {grain}:
    y[i] = exp(x[i])
"""
    assert study.schedule(EXP, "exp", text).error < 1e-6


@pytest.mark.parametrize("name", ["scratch", "in0", "out0"])
def test_what_is_prepared_is_no_operand(name: str) -> None:
    """Its name was its role: the numbers were read from an operand, or from the scratch memory."""
    text = f"""kernel exp(x: in0 float32[16], y: out0 float32[16])
  scratch own: float32[1]
  prepared {name}: float32[4]
    for i in 4:
      {name}[i] = 1f
  parallel i in 16:
    own[0] = {name}[1]
    y[i] = own[0] * exp(x[i])
"""
    assert study.schedule(EXP, "exp", text).error < 1e-6


NESTS = """
kernel exp(x: in0 float32[16], y: out0 float32[16])
  {own}
  parallel i in 16:
    {first}
  parallel j in {turns}:
    {second}
"""
APART = {
    "same turns": ("y[i] = x[i]", 16, "y[j] = exp(y[j])", ""),
    "other turns": ("y[i] = x[i]", 16, "y[j] = exp(y[15 - j])", "`y[15 - j]` and `y[j]` may be one element"),
    "other shares": ("y[i] = x[i]", 8, "y[j] = exp(y[j])", "written in different nests"),
    "halves": ("y[i // 2] = exp(x[i // 2])", 8, "y[j + 8] = exp(x[j + 8])", "several turns of `i`"),
    "one private element": ("t[0] = x[i]", 16, "y[j] = exp(t[0])", "different turns of `i`"),
    "not filled": ("y[i] = t[0]", 16, "y[j] = exp(x[j])", "`t` is read where it may not be filled"),
}


@pytest.mark.parametrize("case", APART)
def test_nests_hand_on_only_within_a_share(case: str) -> None:
    first, turns, second, reason = APART[case]
    own = "scratch t: float32[1]" * ("t[0]" in first)
    text = NESTS.format(own=own, first=first, turns=turns, second=second)
    if not reason:
        assert study.schedule(EXP, "exp", text).error < 1e-6
        return
    with pytest.raises(RelayError, match=re.escape(reason)):
        study.schedule(EXP, "exp", text)


@pytest.mark.parametrize("how", ["unrolled", "vectorized x100000"])
def test_copies_without_end_are_refused(how: str) -> None:
    text = PLAIN.replace("for k in 16:", f"for q in 100000 {how}:\n          for k in 16:", 1).replace(
        "\n          sum0 +=", "\n            sum0 +="
    )
    with pytest.raises(RelayError, match="more than 4096 copies"):
        study.schedule(product(), "matmul", text)


def test_loops_that_are_written_out_have_their_result_apart() -> None:
    """What they read again after they wrote was the result where operands die with the kernel."""
    x = relay.var("x", shape=(16, 16))
    middle = relay.exp(relay.annotation.stop_fusion(relay.nn.softmax(x)))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.annotation.stop_fusion(middle))))
    text = """
kernel exp(x: in0 float32[256], y: out0 float32[256])
  parallel once in 1:
    for i in 256:
      y[i] = 0f
    for i in 256:
      y[i] = y[i] + exp(x[i])
"""
    assert study.schedule(study.Program("softmax", relay.transform.InferType()(mod)), "exp", text).error < 1e-6
