"""AlterOpLayout: operators work in the layouts that are fastest on this machine.

On a CPU with vector registers that is channels last: the innermost loop of a convolution then runs
over output channels, which lie next to each other in the data (NHWC) and in the weights (HWIO).
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, Tuple
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op, op_name
from relaylab.ir.types import IntImm, TensorType
from relaylab.ir.visit import operators_in, users, walk
from relaylab.op.base import OpPattern
from relaylab.op.layout import convertible, parse_layout
from relaylab.op.window import pads
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.layouts.convert_layout import choose_layouts
from relaylab.transform.layouts.layout_rewrite import rewrite_layouts
from relaylab.transform.layouts.layout_rules import LayoutPlan, Site
from relaylab.transform.layouts.registered import asked

POOLS = ("nn.max_pool2d", "nn.avg_pool2d")
LANES = 16  # channels that are worth a transform
LONG = 6  # windows of a row side by side for each column of padding: fewer cost more than transforms
ASKED = "FTVMAlterOpLayout"
CPU_LAYOUTS = {
    "nn.conv2d": ["NHWC", "default"],
    "nn.conv2d_transpose": ["NHWC", "default"],
    **dict.fromkeys(POOLS, ["NHWC"]),
}


def _choose(site: Site) -> LayoutPlan | None:
    """Channels last, where the layout that the program was written in has the same whole axes."""
    if not site.given or (site.given[0] is not None and not op_name(site.call).startswith("nn.conv")):
        return None  # nothing to lay out; poolings follow what comes
    if op_name(site.call) in POOLS and _side_by_side(site):
        return None
    given = getattr(site.attrs, "data_layout", None) or getattr(site.attrs, "layout", None)
    if (
        not isinstance(given, str)
        or not convertible(parse_layout(given), parse_layout("NHWC"))
        or not parse_layout(given).is_plain()
    ):
        return None
    return choose_layouts(site, CPU_LAYOUTS)


def _single_pixels(site: Site) -> bool:
    """Whether a convolution is the product of its weight with images that lie channel by channel, as they come."""
    attrs, result = site.attrs, site.result
    if op_name(site.call) != "nn.conv2d" or site.given[0] is not None or not isinstance(result, TensorType):
        return False
    ones = {*attrs.strides, *(attrs.kernel_size or (0,)), attrs.groups} == {1} and not any(attrs.padding)
    return ones and attrs.data_layout == "NCHW" and not attrs.out_layout and result.dtype == "float32"


def _given_as_written(result: Expr) -> set[Expr]:
    """What nothing reads but its elements one by one, down to the result of the function."""
    order = list(walk((result,)))
    readers, found = users(result, order), {result}
    for node in reversed(order):
        if node not in found and all(reader in found and _by_elements(reader) for reader in readers[node]):
            found.add(node)
    return found


def _by_elements(reader: Expr) -> bool:
    if isinstance(reader, Call):
        return isinstance(reader.op, Op) and reader.op.definition.pattern <= OpPattern.BROADCAST
    return isinstance(reader, Tuple)


def _side_by_side(site: Site) -> bool:
    """Whether vectors of windows side by side do a pooling as it is better than vectors of channels and transforms."""
    layout, result = parse_layout(site.attrs.layout), site.result
    if not any(site.attrs.padding) or not isinstance(result, TensorType) or not layout.is_plain():
        return not any(site.attrs.padding)
    channels, row = (result.shape[layout.position(axis)] for axis in "CW")
    few = isinstance(channels, IntImm) and channels.value < LANES
    (*_, ends), (*_, step) = pads(site.attrs.padding, 2), site.attrs.strides
    return few or isinstance(row, IntImm) and row.value - step > LONG * sum(ends)


@pass_(level=3, requires=("InferType",))
class AlterOpLayout(FunctionPass):
    """Puts convolutions and padded pooling into channels-last layouts, with transforms where the program needs others.

    What `register_alter_op_layout` (the attribute `FTVMAlterOpLayout` of an operator) says comes first.
    """

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        if not any(op.name in CPU_LAYOUTS or op.has_attr(ASKED) for op in operators_in(func)):
            return func
        kept: list[set[Expr]] = []  # found for the first that asks

        def choose(site: Site) -> LayoutPlan | None:
            if _single_pixels(site):
                kept[:] = kept or [_given_as_written(func.body)]
                if site.call in kept[0]:
                    return None
            return _choose(site)

        return rewrite_layouts(func, choose, lambda call: asked(call, ASKED, type_of(call)))
