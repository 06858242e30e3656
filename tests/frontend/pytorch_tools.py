"""Importing PyTorch models, running what comes of them, and comparing with torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylab import relay

torch = pytest.importorskip("torch", reason="reads PyTorch models")
warnings.filterwarnings("ignore", category=FutureWarning, module="copyreg")


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def program(model: Any, *inputs: Any, dynamic: Any = None) -> Any:
    """The model as torch exports it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic)


def run(mod: Any, params: dict, inputs: Any, executor: str) -> list[np.ndarray]:
    """What the imported program gives."""
    values = [i.numpy() for i in inputs]
    out = relay.create_executor(executor, mod=mod).evaluate()(*values, **params)
    return [v.numpy() for v in out] if isinstance(out, (tuple, list)) else [out.numpy()]


def wanted(model: Any, inputs: Any) -> list[np.ndarray]:
    """What torch gives."""
    with torch.no_grad():
        out = model.eval()(*inputs)
    return [v.numpy() for v in (out if isinstance(out, (tuple, list)) else [out])]


def agree(model: Any, *inputs: Any, executor: str = "graph", tolerance: float = 1e-4, dynamic: Any = None) -> Any:
    """Import a model and hold its results against torch's; the module and its parameters."""
    mod, params = relay.frontend.from_pytorch(program(model, *inputs, dynamic=dynamic))
    compare(run(mod, params, inputs, executor), wanted(model, inputs), tolerance)
    return mod, params


def compare(got: list[np.ndarray], want: list[np.ndarray], tolerance: float) -> None:
    """Shapes and data types are equal, floats nearly so, the rest exactly."""
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(g, w)


def agree_together(parts: list[tuple]) -> None:
    """Hold functions, each with its inputs, against torch as one program: an export takes long whatever it exports."""

    def together(*tensors):
        given = iter(tensors)
        results = [function(*(next(given) for _ in inputs)) for function, *inputs in parts]
        return tuple(v for r in results for v in (r if isinstance(r, (tuple, list)) else [r]))

    tensors = [x.clone() for _, *inputs in parts for x in inputs]  # torch opens sizes of what others are views of
    agree(Wrapped(together), *tensors, executor="debug", tolerance=3e-5)
