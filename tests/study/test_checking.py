"""The check of a program sees errors that its last operator hides."""

from __future__ import annotations

import pytest

from relaylab import RelayError, relay, study

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(4, 8), float32]) {{
  {last}(multiply(nn.dense(%x, %w), {scale}f))
}}
"""


@pytest.mark.parametrize("last, scale", [("nn.softmax", "1e-20"), ("nn.softmax", "1e+4"), ("sigmoid", "1e+4")])
def test_flat_and_saturated_results_are_judged_by_what_went_in(monkeypatch, last, scale):
    mod = relay.parse(TEXT.format(last=last, scale=scale))
    right = study.check(mod)
    assert right.agrees and right.shapes == [(2, 4)]
    create = relay.create_executor

    def wrong(kind, judged):
        return create(kind, relay.parse(str(judged).replace(f"{float(scale):g}f", f"{float(scale) * 1.5:g}f")))

    monkeypatch.setattr(relay, "create_executor", wrong)
    assert not study.check(mod).agrees


HEAD = '#[version = "0.0.5"]\n'
BITS = HEAD + "type Bit { Zero, One, }\ndef @main(%x: float32) { (%x, TURNED) }"
COUNTED = (
    HEAD
    + """type List[A] { Cons(A, List[A]), Nil, }
def @go(%n: int32, %l: List[int32]) -> List[int32] { if (%n < 1) { %l } else { @go(%n - 1, Cons(%n, %l)) } }
def @main() { @go(LENGTH, Nil) }"""
)


def test_values_of_data_types_differ_by_their_constructors_too():
    zero, one = (relay.parse(BITS.replace("TURNED", name)) for name in ("Zero", "One"))
    assert study.difference(zero, zero) == 0 and study.difference(zero, one) >= 1
    assert study.check(zero).agrees


def test_results_may_be_long_lists_and_of_other_lengths():
    long, short = (relay.parse(COUNTED.replace("LENGTH", str(n))) for n in (3000, 2999))
    assert study.difference(long, long) == 0 and study.difference(long, short) == float("inf")
    assert len(study.run(study.load(long))) == 3000


def test_functions_cannot_be_compared():
    mod = relay.parse(HEAD + "def @main(%x: float32) { fn (%y: float32) { %x + %y } }")
    for ask in (study.check, study.bisect, lambda m: study.difference(m, m)):
        with pytest.raises(RelayError, match="cannot be compared"):
            ask(mod)


def test_what_is_no_module_is_told_by_the_parameter():
    with pytest.raises(RelayError, match="check: `mod` must be a module"):
        study.check("mlp")
