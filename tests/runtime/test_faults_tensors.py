"""Tensors of PyTorch that numpy does not get are refused in one line, with what PyTorch says of them."""

from __future__ import annotations

import pytest

from relaylab import relay
from relaylab.ir import IRModule, SizeVar
from relaylab.support.errors import RelayError

torch = pytest.importorskip("torch")

KEPT = {
    "gradient": lambda: torch.zeros(2, requires_grad=True),
    "conjugate": lambda: torch.zeros(2, dtype=torch.complex64).conj(),
    "sparse": lambda: torch.zeros(2).to_sparse(),
    "meta": lambda: torch.zeros(2, device="meta"),
    "eight bits": lambda: torch.zeros(2).to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("size", [2, SizeVar("n")])
def test_a_tensor_that_keeps_to_itself_is_refused(kind: str, size: object) -> None:
    x = relay.var("x", shape=(size,))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
    runs = [lambda t, e=e: relay.create_executor(e, mod=mod).evaluate()(t) for e in ("debug", "vm")]
    if size == 2:
        lib = relay.build(mod, target="llvm")
        runs += [lambda t: lib.run(x=t), relay.create_executor("graph", mod=mod).evaluate()]
    for run in runs:
        with pytest.raises(RelayError, match="`x` cannot be made of this Tensor"):
            run(KEPT[kind]())


def test_a_tensor_that_is_detached_is_taken() -> None:
    x = relay.var("x", shape=(2,))
    lib = relay.build(IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), target="llvm")
    assert lib.run(x=torch.ones(2, requires_grad=True).detach()).tolist() == [1, 1]
