"""What is said of an operator that cannot be read back, or has no form."""

from __future__ import annotations

import pytest

from relaylab import relay
from relaylab.ir import TupleType
from relaylab.op.base import Elementwise, Operator, op
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


@pytest.mark.parametrize("stored", [(), (0,)])
def test_a_procedure_stores_all_its_results(stored):
    @op("slips.nothing_stored", inputs=("data",), replace=True)
    class nothing_stored(Operator):
        """Two results, of which some are written."""

        outputs = 2

        def result_type(self, s, data):
            return TupleType([data, data])

        def reference(self, data):
            return data, data

        def procedure(self, p, first, second, x):
            with p.parallel(2) as i:
                for k in stored:
                    p.store((first, second)[k], i, x(i))

    made = nothing_stored(relay.var("x", shape=(2,)))
    mod = relay.IRModule.from_expr(made.astuple() if hasattr(made, "astuple") else made)
    with pytest.raises(RelayError, match=f"slips.nothing_stored stores nothing in result {len(stored)}") as caught:
        relay.build(mod, "llvm")
    assert caught.value.code == "loop.not-stored"
