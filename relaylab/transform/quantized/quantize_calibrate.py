"""QuantizeCalibrate: the scale and the limits of each simulated quantization become known.

The greatest numbers of activations come from outside: one for all, or one for each as `thresholds` finds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, cast

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr, Function, Tuple, Var
from relaylab.ir.leaves import const
from relaylab.ir.module import IRModule
from relaylab.ir.op import facets, is_call_to
from relaylab.ir.trail import derived
from relaylab.ir.visit import walk
from relaylab.support.errors import RelayValueError
from relaylab.transform.bind import bind
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, rewrite_function
from relaylab.transform.quantized.quantize_annotate import SIMULATED, QAnnotateKind

WEIGHT_SCALES = ("power2", "max")


def simulated(func: Function) -> list[Call]:
    """The simulated quantizations of a function in the order in which they are computed."""
    return [n for n in walk((func,)) if isinstance(n, Call) and is_call_to(n, SIMULATED)]


def watched(func: Function) -> Function:
    """The function that gives all values which are to be quantized, weights excepted, and rounds none of them."""
    found = [n for n in simulated(func) if facets(n)["kind"] != QAnnotateKind.WEIGHT]
    exact: dict[Expr, Expr] = {}
    rewrite_function(func, lambda new, old: new.args[0] if is_call_to(new, SIMULATED) else new, memo=exact)
    unused = {p for n in simulated(func) for p in n.args[1:]}
    return Function([p for p in func.params if p not in unused], Tuple([exact[n] for n in found]))


def _greatest_weight(node: Call, scale: str) -> float:
    weight = node.args[0]
    if not isinstance(weight, Constant):
        text = "a weight that is to be quantized is not a constant"
        raise RelayValueError(text, code="quantize.weight", help="give the weights: quantize(mod, params=...)")
    greatest = float(np.max(np.abs(weight.data.numpy()), initial=0.0))
    if not math.isfinite(greatest):
        raise RelayValueError(
            "a weight that is to be quantized has elements that are not finite", code="quantize.weight"
        )
    if greatest == 0.0:
        return 1.0
    return 2.0 ** math.ceil(math.log2(greatest)) if scale == "power2" else greatest


@pass_(level=1, preserves=False)
class QuantizeCalibrate(FunctionPass):
    """Makes the scales and limits of simulated quantizations known: with n bits, 2^(n-1) steps to the greatest number.

    The greatest number of a weight is that of its elements, or the next power of two (`power2`); of others it is
    `thresholds`, in the order of computation, or `global_scale` for all. `RelayValueError` if the numbers do not fit.
    """

    global_scale: Annotated[float, "The greatest number of inputs and activations, where there are no thresholds."] = (
        8.0
    )
    weight_scale: Annotated[str, 'The greatest number of a weight: "max", or "power2", the next power of two.'] = (
        "power2"
    )
    thresholds: Annotated[Sequence[float] | None, "The greatest number of each simulated input and activation."] = None
    nbit_input: Annotated[int, "How many bits an input has."] = 8
    nbit_weight: Annotated[int, "How many bits a weight has."] = 8
    nbit_activation: Annotated[int, "How many bits an activation has."] = 32

    def __post_init__(self) -> None:
        bits = {"nbit_input": self.nbit_input, "nbit_weight": self.nbit_weight, "nbit_activation": self.nbit_activation}
        for name, n in bits.items():
            if not 2 <= n <= 32:
                raise RelayValueError(f"{name} is between 2 and 32, not {n}", code="quantize.option")
        if self.weight_scale not in WEIGHT_SCALES:
            text = f"weight_scale is one of {', '.join(WEIGHT_SCALES)}, not {self.weight_scale!r}"
            raise RelayValueError(text, code="quantize.option")
        for greatest in (self.global_scale, *(self.thresholds or ())):
            if not (greatest > 0 and math.isfinite(greatest)):
                raise RelayValueError(f"a scale is a finite number above 0, not {greatest}", code="quantize.option")

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        found = [n for n in simulated(func) if all(isinstance(a, Var) for a in n.args[1:])]
        wanted = sum(facets(n)["kind"] != QAnnotateKind.WEIGHT for n in found)
        if self.thresholds is not None and wanted and len(self.thresholds) != wanted:
            text = f"{len(self.thresholds)} thresholds for {wanted} simulated inputs and activations"
            raise RelayValueError(text, code="quantize.thresholds", help="measure them on this very program")
        rest = iter(self.thresholds or [self.global_scale] * wanted)
        bits = {QAnnotateKind.WEIGHT: self.nbit_weight, QAnnotateKind.ACTIVATION: self.nbit_activation}
        binds: dict[Var, Expr] = {}
        for node in found:
            kind = facets(node)["kind"]
            greatest = _greatest_weight(node, self.weight_scale) if kind == QAnnotateKind.WEIGHT else next(rest)
            steps = 2.0 ** (bits.get(kind, self.nbit_input) - int(facets(node)["sign"]))
            for param, value in zip(node.args[1:], (greatest / steps, 1.0 - steps, steps - 1.0)):
                binds[cast(Var, param)] = derived(const(value, "float32"), param)
        return as_function(bind(func, binds))
