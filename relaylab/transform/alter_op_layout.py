"""AlterOpLayout: operators work in the layouts that are fastest on this machine.

On a CPU with vector registers that is channels last: the innermost loop of a convolution then runs
over output channels, which lie next to each other in the data (NHWC) and in the weights (HWIO).
"""

from __future__ import annotations

from relaylab.ir import Function
from relaylab.op.layout import convertible, parse_layout
from relaylab.transform.convert_layout import choose_layouts
from relaylab.transform.layout_rewrite import rewrite_layouts
from relaylab.transform.layout_rules import Plan, Site
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

CPU_LAYOUTS = {
    "nn.conv2d": ["NHWC", "default"],
    "nn.conv2d_transpose": ["NHWC", "default"],
    **dict.fromkeys(("nn.max_pool2d", "nn.avg_pool2d", "nn.global_max_pool2d", "nn.global_avg_pool2d"), ["NHWC"]),
    **dict.fromkeys(("nn.adaptive_max_pool2d", "nn.adaptive_avg_pool2d"), ["NHWC"]),
}


def _choose(site: Site) -> Plan | None:
    """Channels last, where the layout that the program was written in has the same whole axes."""
    given = getattr(site.attrs, "data_layout", None) or getattr(site.attrs, "layout", None)
    if (
        not isinstance(given, str)
        or not convertible(parse_layout(given), parse_layout("NHWC"))
        or not parse_layout(given).is_plain()
    ):
        return None
    return choose_layouts(site, CPU_LAYOUTS)


@register_pass()
def AlterOpLayout() -> Pass:
    """Puts convolutions and pooling into channels-last layouts, transforming where the program needs others."""

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite_layouts(func, _choose)

    return FunctionPass(PassInfo(3, "AlterOpLayout", ("InferType",)), run)
