"""An argument that does not fit is told with what makes it fit."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import SizeVar
from relaylab.support.errors import RelayTypeError

GIVEN = {
    "axis 1 has to be 3 long, not 2": np.ones((5, 2), "float32"),
    'convert it: x.astype("float32")': np.ones((5, 3), "float64"),
    "give an array of 2 dimensions: this one has 1": np.ones(3, "float32"),
}


@pytest.mark.parametrize("help", GIVEN)
def test_the_remedy_is_for_what_is_wrong(help: str) -> None:
    """Of every wrong argument it was said that another data type would help."""
    x = relay.var("x", shape=(SizeVar("n"), 3))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"))
    for run in (machine.run, relay.create_executor("debug", mod).evaluate()):
        with pytest.raises(RelayTypeError) as told:
            run(GIVEN[help])
        assert told.value.code == "interp.wrong-argument" and told.value.help == help
