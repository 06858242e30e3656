"""Recurrent cells unrolled over a list of inputs: plain, gated (Cho et al., 2014) and LSTM (Hochreiter, 1997)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylab.ir.base import Expr
from relaylab.op import nn, sigmoid, split, tanh
from relaylab.op.base import call_operator as call

Activation = Callable[[Expr], Expr]


def _dense(x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    y = nn.dense(x, weight)
    return y if bias is None else call("add", y, bias)


def _add(x: Expr, y: Expr) -> Expr:
    return call("add", x, y)


def _mul(x: Expr, y: Expr) -> Expr:
    return call("multiply", x, y)


def _steps(input_seqs: Sequence[Expr], backwards: bool) -> Sequence[Expr]:
    return list(reversed(input_seqs)) if backwards else list(input_seqs)


def rnn_cell(
    input_seqs: Sequence[Expr],
    hidden_state: Expr,
    w_inp: Expr,
    w_hid: Expr,
    b_inp: Expr | None = None,
    b_hid: Expr | None = None,
    backwards: bool = False,
    act: Activation = tanh,
) -> tuple[list[Expr], Expr]:
    """h' = act(x W^T + b + h R^T + c) for each x (batch, features): all h' in the order of the steps, and the last.

    Weights are (hidden, features) and (hidden, hidden).
    """
    outputs: list[Expr] = []
    for x in _steps(input_seqs, backwards):
        hidden_state = act(_add(_dense(x, w_inp, b_inp), _dense(hidden_state, w_hid, b_hid)))
        outputs.append(hidden_state)
    return outputs, hidden_state


def gru_cell(
    input_seqs: Sequence[Expr],
    hidden_state: Expr,
    w_inp: Expr,
    w_hid: Expr,
    b_inp: Expr | None = None,
    b_hid: Expr | None = None,
    rz_act: Activation = sigmoid,
    n_act: Activation = tanh,
    backwards: bool = False,
    linear_before_reset: bool = True,
) -> tuple[list[Expr], Expr]:
    """Gated recurrent units; weights (3 * hidden, …) hold reset, update and new gate in this order.

    With `linear_before_reset` the reset gate is applied after the product with the hidden state, as in PyTorch.
    """
    outputs: list[Expr] = []
    recurrent = list(split(w_hid, 3, axis=0))
    biases = list(split(b_hid, 3, axis=-1)) if b_hid is not None else [None] * 3
    for x in _steps(input_seqs, backwards):
        i_r, i_z, i_n = split(_dense(x, w_inp, b_inp), 3, axis=-1)
        h_r, h_z = (_dense(hidden_state, w, b) for w, b in zip(recurrent[:2], biases[:2]))
        reset, update = rz_act(_add(i_r, h_r)), rz_act(_add(i_z, h_z))
        if linear_before_reset:
            inner = _mul(reset, _dense(hidden_state, recurrent[2], biases[2]))
        else:
            inner = _dense(_mul(reset, hidden_state), recurrent[2], biases[2])
        new = n_act(_add(i_n, inner))
        hidden_state = _add(_mul(call("subtract", hidden_state, new), update), new)
        outputs.append(hidden_state)
    return outputs, hidden_state


def lstm_cell(
    input_seqs: Sequence[Expr],
    hidden_state: Expr,
    cell_state: Expr,
    w_inp: Expr,
    w_hid: Expr,
    b_inp: Expr | None = None,
    b_hid: Expr | None = None,
    proj: Expr | None = None,
    p_i: Expr | None = None,
    p_f: Expr | None = None,
    p_o: Expr | None = None,
    f_act: Activation = sigmoid,
    g_act: Activation = tanh,
    h_act: Activation = tanh,
    backwards: bool = False,
) -> tuple[list[Expr], Expr, Expr]:
    """LSTM cells; weights (4 * hidden, …) hold input, forget, cell and output gate in this order.

    `p_i`, `p_f` and `p_o` are weights of peepholes, `proj` (projected, hidden) is applied to each hidden state. All
    hidden states in the order of the steps, the last one, and the last cell state.
    """
    peep = lambda gate, weight, state: gate if weight is None else _add(gate, _mul(weight, state))
    outputs: list[Expr] = []
    for x in _steps(input_seqs, backwards):
        gates = _add(_dense(x, w_inp, b_inp), _dense(hidden_state, w_hid, b_hid))
        i, f, g, o = split(gates, 4, axis=-1)
        i, f = f_act(peep(i, p_i, cell_state)), f_act(peep(f, p_f, cell_state))
        cell_state = _add(_mul(f, cell_state), _mul(i, g_act(g)))
        hidden_state = _mul(f_act(peep(o, p_o, cell_state)), h_act(cell_state))
        if proj is not None:
            hidden_state = nn.dense(hidden_state, proj)
        outputs.append(hidden_state)
    return outputs, hidden_state, cell_state
