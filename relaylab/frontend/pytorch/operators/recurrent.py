"""Recurrent networks of torch: all layers and directions of RNN, GRU and LSTM, step by step.

torch takes them apart into the same steps and traces each; an open number of steps it does not export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn

LONGEST = 4096
"""How many steps are written out at most."""

State = list[Expr]
"""What a step leaves to the next: the output, and the cell's content of an LSTM; (batch, hidden) each."""
Step = Callable[["LayerWeights", Expr, State], State]


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """Those of a layer and direction: (gates * hidden, inputs), (gates * hidden, hidden), two vectors, a projection."""

    g: TorchGraph
    of_input: Expr
    of_state: Expr
    input_bias: Expr | None
    state_bias: Expr | None
    projection: Expr | None

    def of_inputs(self, x: Expr) -> Expr:
        """What the inputs of all steps add to the gates: one product."""
        return _plus(nn.dense(x, self.of_input), self.input_bias)

    def recur(self, h: Expr) -> Expr:
        """What the state adds to them."""
        return _plus(nn.dense(h, self.of_state), self.state_bias)

    def part(self, x: Expr, k: int, count: int) -> Expr:
        """The k-th of so many gates."""
        size = self.g.extent(x, 1) // count
        return op.strided_slice(x, [k * size], [(k + 1) * size], [1], axes=[1])


def _plus(x: Expr, bias: Expr | None) -> Expr:
    return x if bias is None else op.add(x, bias)


def _plain(activation: Callable[[Expr], Expr]) -> Step:
    return lambda w, x, state: [activation(op.add(x, w.recur(state[0])))]


def _gru(w: LayerWeights, x: Expr, state: State) -> State:
    """Gates: reset, update, new."""
    [h] = state
    recurrent = w.recur(h)
    reset, update = (op.sigmoid(op.add(w.part(x, k, 3), w.part(recurrent, k, 3))) for k in (0, 1))
    new = op.tanh(op.add(w.part(x, 2, 3), op.multiply(reset, w.part(recurrent, 2, 3))))
    return [op.add(op.multiply(op.subtract(h, new), update), new)]


def _lstm(w: LayerWeights, x: Expr, state: State) -> State:
    """Gates: input, forget, new, output."""
    h, c = state
    gates = op.add(x, w.recur(h))
    i, f, new, o = (w.part(gates, k, 4) for k in range(4))
    kept = op.add(op.multiply(op.sigmoid(f), c), op.multiply(op.sigmoid(i), op.tanh(new)))
    out = op.multiply(op.sigmoid(o), op.tanh(kept))
    return [out if w.projection is None else nn.dense(out, w.projection), kept]


def _run(w: LayerWeights, step: Step, x: Expr, state: State, axis: int, back: bool) -> tuple[list[Expr], State]:
    """One direction over the steps of an axis: the outputs in the order of time."""
    inputs, steps = w.of_inputs(x), w.g.extent(x, axis)
    outs: list[Expr] = []
    for t in reversed(range(steps)) if back else range(steps):
        # the number of a step is data, not an attribute: all steps have one kernel
        row = op.squeeze(op.take(inputs, Constant(np.array([t])), axis=axis), axis=[axis])
        state = step(w, row, state)
        outs.append(state[0])
    return outs[::-1] if back else outs, state


def _layers(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    start: Sequence[Expr],
    params: Sequence[Expr],
    options: tuple[bool, int, float, bool, bool, bool],
    step: Step,
) -> list[Expr]:
    """The outputs of the last layer, then each part of the last state of all layers and directions."""
    biased, layers, dropout, train, both, batch_first = options
    if train and dropout:
        raise node.error("dropout of a network that is being trained is random", "import.training", "model.eval()")
    axis, ways = int(batch_first), 2 if both else 1
    steps, each = g.extent(x, axis), len(params) // max(layers * ways, 1)
    if not 0 < steps <= LONGEST:
        raise node.error(f"{steps} steps; 1 to {LONGEST} are written out", code="import.shape")
    projected = each == (5 if biased else 3)
    ends: list[State] = []
    for layer in range(layers):
        outs = []
        for way in range(ways):
            k = layer * ways + way
            given = list(params[k * each : (k + 1) * each])
            first, second = given[2:4] if biased else (None, None)
            weights = LayerWeights(g, given[0], given[1], first, second, given[-1] if projected else None)
            state: State = [op.squeeze(op.strided_slice(s, [k], [k + 1], [1], axes=[0]), axis=[0]) for s in start]
            out, end = _run(weights, step, x, state, axis, way == 1)
            outs.append(out)
            ends.append(end)
        rows = [list(s) for s in zip(*outs)]
        x = g.settle(op.stack([r[0] if len(r) == 1 else op.concatenate(r, axis=1) for r in rows], axis))
    return [x, *(op.stack([end[k] for end in ends], 0) for k in range(len(start)))]


@converts("lstm.input")
def lstm(
    g: TorchGraph, node: AtenNode, x: Expr, start: Sequence[Expr], params: Sequence[Expr], biased: bool, layers: int,
    dropout: float, train: bool, both: bool, batch_first: bool,
) -> list[Expr]:  # fmt: skip
    return _layers(g, node, x, start, params, (biased, layers, dropout, train, both, batch_first), _lstm)


@converts("gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(
    g: TorchGraph, node: AtenNode, x: Expr, start: Expr, params: Sequence[Expr], biased: bool, layers: int,
    dropout: float, train: bool, both: bool, batch_first: bool,
) -> list[Expr]:  # fmt: skip
    step = {"gru": _gru, "rnn_tanh": _plain(op.tanh), "rnn_relu": _plain(nn.relu)}[node.name.partition(".")[0]]
    return _layers(g, node, x, [start], params, (biased, layers, dropout, train, both, batch_first), step)
