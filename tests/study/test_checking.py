"""The check of a program sees errors that its last operator hides."""

from __future__ import annotations

import pytest

from relaylab import relay, study

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
