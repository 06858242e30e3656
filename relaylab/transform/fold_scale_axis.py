"""FoldScaleAxis: scales of channels move into the weights next to them, backward, then forward."""

from __future__ import annotations

from relaylab.transform.fold_constant import FoldConstant
from relaylab.transform.fold_scale_axis_backward import BackwardFoldScaleAxis
from relaylab.transform.fold_scale_axis_forward import ForwardFoldScaleAxis
from relaylab.transform.manager import Pass, Sequential, register_pass


@register_pass()
def FoldScaleAxis() -> Pass:
    """Folds multiplications of channels into the weights of convolutions and dense layers, and computes them."""
    return Sequential([BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()], name="FoldScaleAxis")
