"""What is said of an operator that cannot be read back, or has no form."""

from __future__ import annotations

import pytest

from relaylab import relay
from relaylab.op.base import Elementwise, op
from relaylab.support.errors import RelayError


@pytest.mark.parametrize("name", ["two words", "", "my-own", "1st", "a.", "größe"])
def test_a_name_that_text_cannot_have_is_refused(name):
    with pytest.raises(RelayError, match="is no name of an operator"):
        op(name)


def test_an_operator_without_a_form_is_told_what_to_write():
    @op("slips.no_form", inputs=("data",))
    class no_form(Elementwise):
        """Has a meaning only."""

        def reference(self, data):
            return data

    mod = relay.IRModule.from_expr(no_form(relay.var("x", shape=(2,))))
    with pytest.raises(RelayError, match=r"def scalar\(self, b, x\)"):
        relay.build(mod, "llvm")
