"""FoldScaleAxis: scales of channels move into the weights next to them, backward, then forward."""

from __future__ import annotations

from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import Sequential
from relaylab.transform.simplify.fold_constant import FoldConstant
from relaylab.transform.simplify.fold_scale_axis_backward import BackwardFoldScaleAxis
from relaylab.transform.simplify.fold_scale_axis_forward import ForwardFoldScaleAxis


@pass_(level=0)
class FoldScaleAxis(Sequential):
    """Folds multiplications of channels into the weights of convolutions and dense layers, and computes them."""

    passes = (BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant())
