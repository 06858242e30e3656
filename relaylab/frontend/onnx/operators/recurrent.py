"""Recurrent networks: RNN, GRU and LSTM, unrolled over their steps, in both directions.

Shapes: X (steps, batch, inputs), W (directions, gates * hidden, inputs), R (directions, gates * hidden, hidden), B
(directions, 2 * gates * hidden); Y (steps, directions, batch, hidden). Gates are ordered as in the ONNX specification.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.activation import exponential, softplus, straight
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.operators.quantized import dynamic_quantize_matmul
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.frontend.open_loops import open_loop, turns_of
from relaylab.ir import AnyDim, Call, Constant, Expr, Tuple, const, is_call_to
from relaylab.op import nn

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
LONGEST = 4096
"""How many steps are unrolled at most."""

Function = Callable[[Expr], Expr]
_DEFAULTS = {
    "LeakyRelu": (0.01, None),
    "Elu": (1.0, None),
    "HardSigmoid": (0.2, 0.5),
    "ScaledTanh": (1.0, 1.0),
    "Affine": (1.0, 0.0),
    "ThresholdedRelu": (1.0, None),
}
"""Alpha and beta of the activations that have them."""


def function_of(g: Graph, node: OnnxNode, name: str, alpha: float, beta: float) -> Function:
    """An activation by its name in ONNX, whatever the case of its letters."""
    scaled = lambda x: op.multiply(g.const(alpha, x), op.tanh(op.multiply(g.const(beta, x), x)))
    known: dict[str, Function] = {
        "tanh": op.tanh, "sigmoid": op.sigmoid, "relu": nn.relu, "softplus": lambda x: softplus(g, node, x),
        "leakyrelu": lambda x: nn.leaky_relu(x, alpha=alpha), "elu": lambda x: exponential(g, x, alpha),
        "scaledtanh": scaled,
        "hardsigmoid": lambda x: straight(g, x, alpha, beta),
        "softsign": lambda x: op.divide(x, op.add(g.const(1, x), op.abs(x))),
        "affine": lambda x: op.add(op.multiply(g.const(alpha, x), x), g.const(beta, x)),
        "thresholdedrelu": lambda x: op.where(op.greater(x, g.const(alpha, x)), x, g.const(0, x)),
    }  # fmt: skip
    if name.lower() not in known:
        raise node.error(
            f"the activation {name!r} is not known", code="import.attribute", help=f"known: {', '.join(sorted(known))}"
        )
    return known[name.lower()]


def _kind(node: OnnxNode) -> str:
    return node.op_type.removeprefix("DynamicQuantize")


def _functions(g: Graph, node: OnnxNode, directions: int) -> list[list[Function]]:
    """The activations of each direction; those that have parameters take them from the lists in turn."""
    usual = USUAL[_kind(node)]
    names = node.get("activations") or usual * directions
    if directions == 1 and names == usual * 2:  # what the specification gives as the default, for both directions
        names = usual
    if len(names) != len(usual) * directions:
        raise node.error(
            f"{len(names)} activations for {directions} directions of {len(usual)}", code="import.attribute"
        )
    alphas, betas = iter(node.get("activation_alpha") or ()), iter(node.get("activation_beta") or ())
    made = []
    for name in names:
        alpha, beta = next((v for k, v in _DEFAULTS.items() if k.lower() == name.lower()), (None, None))
        alpha = next(alphas, alpha) if alpha is not None else 0.0
        made.append(function_of(g, node, name, alpha, next(betas, beta) if beta is not None else 0.0))
    return [made[k : k + len(usual)] for k in range(0, len(made), len(usual))]


Product = Callable[[Expr, Expr, bool], Expr]
"""Rows times weights, those of the state or those of the inputs."""


def _plainly(rows: Expr, weights: Expr, of_state: bool) -> Expr:
    return nn.dense(rows, weights)


@dataclass(slots=True)
class RecurrentCell:
    """One direction: its weights, its state, and how gates are made."""

    g: Graph
    node: OnnxNode
    hidden: int
    w: Expr
    r: Expr
    wb: Expr | None
    rb: Expr | None
    peephole: Expr | None
    act: list[Function]
    times: Product

    def limit(self, x: Expr) -> Expr:
        """The sum before an activation, clipped if the node says so."""
        bound = self.node.get("clip")
        return x if bound is None else op.clip(x, -bound, bound)

    def part(self, x: Expr, k: int, axis: int = -1) -> Expr:
        """The k-th gate."""
        return op.strided_slice(x, [k * self.hidden], [(k + 1) * self.hidden], [1], axes=[axis % self.g.rank(x)])

    def recur(self, h: Expr) -> Expr:
        """What the state adds to all gates."""
        out = self.times(h, self.r, True)
        return out if self.rb is None else op.add(out, self.rb)


def rnn_step(cell: RecurrentCell, x: Expr, h: Expr, c: Expr) -> tuple[Expr, Expr]:
    """f(W x + R h + b)"""
    return cell.act[0](cell.limit(op.add(x, cell.recur(h)))), c


def gru_step(cell: RecurrentCell, x: Expr, h: Expr, c: Expr) -> tuple[Expr, Expr]:
    """Gates: update, reset, new; `linear_before_reset` says whether the reset comes before the product or after it."""
    f, g_ = cell.act[:2]
    if cell.node.get("linear_before_reset", 0):
        recurrent = cell.recur(h)
        z, r = (f(cell.limit(op.add(cell.part(x, k), cell.part(recurrent, k)))) for k in (0, 1))
        new = g_(cell.limit(op.add(cell.part(x, 2), op.multiply(r, cell.part(recurrent, 2)))))
    else:
        first = nn.dense(h, op.strided_slice(cell.r, [0], [2 * cell.hidden], [1], axes=[0]))
        bias = cell.rb
        sums = [op.add(cell.part(x, k), cell.part(first, k)) for k in (0, 1)]
        sums = sums if bias is None else [op.add(s, cell.part(bias, k)) for k, s in enumerate(sums)]
        z, r = (f(cell.limit(s)) for s in sums)
        last = op.add(cell.part(x, 2), nn.dense(op.multiply(r, h), cell.part(cell.r, 2, axis=0)))
        new = g_(cell.limit(last if bias is None else op.add(last, cell.part(bias, 2))))
    return op.add(op.multiply(op.subtract(cell.g.const(1, z), z), new), op.multiply(z, h)), c


def lstm_step(cell: RecurrentCell, x: Expr, h: Expr, c: Expr) -> tuple[Expr, Expr]:
    """Gates: input, output, forget, new; peepholes let the cell's content take part."""
    gates = op.add(x, cell.recur(h))
    i, o, f, new = (cell.part(gates, k) for k in range(4))
    peep = cell.peephole
    if peep is not None:
        i, f = op.add(i, op.multiply(cell.part(peep, 0), c)), op.add(f, op.multiply(cell.part(peep, 2), c))
    i = cell.act[0](cell.limit(i))
    f = op.subtract(cell.g.const(1, i), i) if cell.node.get("input_forget", 0) else cell.act[0](cell.limit(f))
    kept: Expr = op.add(op.multiply(f, c), op.multiply(i, cell.act[1](cell.limit(new))))
    o = op.add(o, op.multiply(cell.part(peep, 1), kept)) if peep is not None else o
    return op.multiply(cell.act[0](cell.limit(o)), cell.act[2](kept)), kept


STEPS = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


@converts("RNN", "GRU", since=7, unused=("output_sequence",))
def simple(
    g: Graph,
    node: OnnxNode,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    lens: Expr | None = None,
    h: Expr | None = None,
) -> list[Expr]:
    return unrolled(g, node, x, w, r, b, lens, h, None, None)[:2]


@converts("LSTM", since=7, unused=("output_sequence",))
def lstm(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, r: Expr, b: Expr | None = None, lens: Expr | None = None,
    h: Expr | None = None,
    c: Expr | None = None, p: Expr | None = None,
) -> list[Expr]:  # fmt: skip
    return unrolled(g, node, x, w, r, b, lens, h, c, p)


@converts("DynamicQuantizeLSTM", domain=CONTRIB)
def dynamic_quantize_lstm(
    g: Graph, node: OnnxNode, x: Expr, w: Expr, r: Expr, b: Expr | None, lens: Expr | None, h: Expr | None,
    c: Expr | None, p: Expr | None, w_scale: Expr, w_zero: Expr, r_scale: Expr, r_zero: Expr,
) -> list[Expr]:  # fmt: skip
    """Products of integers; the inputs, and at each step the state, are quantized by their own extrema."""

    def product(rows: Expr, weights: Expr, of_state: bool, d: int) -> Expr:
        scale, zero = (_direction(v, d) for v in ((r_scale, r_zero) if of_state else (w_scale, w_zero)))
        return dynamic_quantize_matmul(g, node, rows, op.transpose(weights, [1, 0]), scale, zero)

    products = [partial(product, d=d) for d in (0, 1)]
    w, r = (op.transpose(v, [0, 2, 1]) for v in (w, r))
    return unrolled(g, node, x, w, r, b, lens, h, c, p, products)


def unrolled(
    g: Graph,
    node: OnnxNode,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None,
    lens: Expr | None,
    h: Expr | None,
    c: Expr | None,
    p: Expr | None,
    products: Sequence[Product] = (_plainly, _plainly),
) -> list[Expr]:
    """Y, Y_h and Y_c of a recurrent node; `products` has one for each direction."""
    batch_first = node.get("layout", 0)
    x = op.transpose(x, [1, 0, 2]) if batch_first else x
    h, c = (op.transpose(v, [1, 0, 2]) if batch_first and v is not None else v for v in (h, c))
    steps, batch, _ = _three(g, node, x)
    hidden = g.shape(r)[-1]
    if node.get("hidden_size", hidden) != hidden or g.shape(w)[1] != GATES[_kind(node)] * hidden:
        raise node.error(
            f"hidden_size {node.get('hidden_size')} does not fit the weights {g.shape(w)} and {g.shape(r)}",
            code="import.shape",
        )
    kind = node.choice("direction", "forward", ("forward", "reverse", "bidirectional"))
    backwards = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]
    functions = _functions(g, node, len(backwards))
    lengths = None if lens is None or _all_steps(g, lens, steps) else lens
    for name in ("clip", "linear_before_reset", "input_forget"):  # cells read what they know
        node.get(name)
    zero = op.zeros((batch, hidden), g.dtype(x)) if is_open(batch) else Constant(np.zeros((batch, hidden), g.dtype(x)))
    ends = []
    for d, back in enumerate(backwards):
        take = partial(_direction, d=d)
        wb, rb = _biases(g, b, d, GATES[_kind(node)] * hidden)
        peep = None if p is None else take(p)
        cell = RecurrentCell(g, node, hidden, take(w), take(r), wb, rb, peep, functions[d], products[d])
        state = zero if h is None else take(h), zero if c is None else take(c)
        ends.append(_run(cell, x, back, lengths, steps, *state))
    y = _together([out for out, _, _ in ends])
    last = [op.stack([e[k] for e in ends], 0) for k in (1, 2)]
    if batch_first:
        return [op.transpose(y, [2, 0, 1, 3]), *(op.transpose(v, [1, 0, 2]) for v in last)]
    return [y, *last]


def _together(ways: list[Expr]) -> Expr:
    """The outputs of all directions as (steps, directions, batch, hidden)."""
    if len(ways) < 2 or not all(is_call_to(y, "stack") for y in ways):
        return op.stack(ways, 1)
    # In the order of memory: then every step writes where its output belongs.
    steps = zip(*(cast("Tuple", cast("Call", y).args[0]).fields for y in ways))
    return op.stack([op.stack(list(step), 0) for step in steps], 0)


def _three(g: Graph, node: OnnxNode, x: Expr) -> tuple[Any, Any, Any]:
    shape = g.named(x)
    if len(shape) != 3 or (not is_open(shape[0]) and not 0 < shape[0] <= LONGEST):
        raise node.error(
            f"the input has the shape {shape}; (steps, batch, inputs) with 1 to {LONGEST} steps are unrolled",
            code="import.shape",
        )
    return shape[0], shape[1], shape[2]


def _all_steps(g: Graph, lens: Expr, steps: int | AnyDim) -> bool:
    known = g.value(lens)
    return known is not None and not is_open(steps) and bool((known == steps).all())


def _direction(v: Expr, d: int) -> Expr:
    return op.squeeze(op.strided_slice(v, [d], [d + 1], [1], axes=[0]), axis=[0])


def _biases(g: Graph, b: Expr | None, d: int, size: int) -> tuple[Expr | None, Expr | None]:
    if b is None:
        return None, None
    both = _direction(b, d)
    of_input, of_state = (op.strided_slice(both, [k * size], [(k + 1) * size], [1], axes=[0]) for k in (0, 1))
    return of_input, of_state


def _run(
    cell: RecurrentCell, x: Expr, back: bool, lens: Expr | None, steps: int | AnyDim, h: Expr, c: Expr
) -> tuple[Expr, Expr, Expr]:
    """All steps of a direction: the outputs in the order of time, the last state. Products with inputs are one."""
    g = cell.g
    _, batch, width = g.named(x)
    inputs = cell.times(op.reshape(x, (-1, width)), cell.w, False)
    inputs = inputs if cell.wb is None else op.add(inputs, cell.wb)
    inputs = op.reshape(inputs, (steps, batch, g.shape(cell.w)[0]), allowzero=True)
    if isinstance(steps, AnyDim):
        return _open_run(cell, inputs, turns_of(x, 0), back, lens, steps, h, c)
    outs: list[Expr] = []
    for t in reversed(range(steps)) if back else range(steps):
        at = None if lens is None else g.const(t, lens)
        out, h, c = _step(cell, _row(inputs, t), at, lens, h, c)
        outs.append(out)
    return op.stack(outs[::-1] if back else outs, 0), h, c


def _row(inputs: Expr, t: int) -> Expr:
    """The inputs of a step. Its number is data, not an attribute, so that all steps have one kernel."""
    return op.squeeze(op.take(inputs, Constant(np.array([t])), axis=0), axis=[0])


def _step(
    cell: RecurrentCell, x: Expr, at: Expr | None, lens: Expr | None, h: Expr, c: Expr
) -> tuple[Expr, Expr, Expr]:
    """The output and the state of one step; past its length a sequence keeps its state and gives zeros."""
    new = STEPS[_kind(cell.node)](cell, x, h, c)
    if lens is None or at is None:
        return new[0], *new
    alive = op.expand_dims(op.less(at, lens), 1)
    out = op.where(alive, new[0], cell.g.const(0, new[0]))
    return out, op.where(alive, new[0], h), op.where(alive, new[1], c)


def _open_run(
    cell: RecurrentCell, inputs: Expr, count: Expr, back: bool, lens: Expr | None, steps: int | AnyDim, h: Expr, c: Expr
) -> tuple[Expr, Expr, Expr]:
    """The same for steps that only run time knows: a loop."""

    def turn(t: Expr, shared: list[Expr], state: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        count, inputs, *of_batch = shared
        lens = of_batch[0] if of_batch else None
        at = op.subtract(op.subtract(count, const(1, "int64")), t) if back else t
        where = None if lens is None else same(cell.g, at, cell.g.dtype(lens))
        out, *new = _step(cell, op.take(inputs, at, axis=0), where, lens, *state)
        return new, [out]

    (h, c), (y,) = open_loop(cell.g, [count, inputs] + ([] if lens is None else [lens]), [h, c], turn, steps, [back])
    return y, h, c
