"""ConvertLayout: convolutions and pooling work in the layouts that one asks for; the rest follows as far as it can."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, cast

from relaylab.ir import Call, Expr, Function, IRModule, Op, TensorType, facets, op_name
from relaylab.ir.visit import operators_in
from relaylab.op.layout import convertible, parse_layout
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError, warn
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.layouts.layout_rewrite import rewrite_layouts
from relaylab.transform.layouts.layout_rules import LayoutPlan, Site
from relaylab.transform.layouts.registered import Asked, asked

_KERNELS = {
    "nn.conv1d": {"NCW": "OIW", "NWC": "WIO"},
    "nn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"},
    "nn.deformable_conv2d": {"NCHW": "OIHW", "NHWC": "HWIO"},
    "qnn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO"},
    "qnn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv1d_transpose": {"NCW": "IOW", "NWC": "WIO"},
    "nn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWIO"},
}


@checked
class LayoutConfig:
    """A context in which ConvertLayout leaves out some convolutions: `with LayoutConfig(skip_layers=[0]): ...`."""

    _local = threading.local()

    def __init__(self, skip_layers: Iterable[int] | None = None):
        self.skip_layers = frozenset(() if skip_layers is None else skip_layers)
        self.skip_counter = 0

    def check_skip(self) -> bool:
        """Whether the convolution that comes now is to be left out; counts it."""
        self.skip_counter += 1
        return self.skip_counter - 1 in self.skip_layers

    def reset(self) -> None:
        """Count from the first convolution again."""
        self.skip_counter = 0
        self.skip_layers = frozenset()

    @classmethod
    def current(cls) -> LayoutConfig | None:
        """The innermost context, if any."""
        stack = getattr(cls._local, "stack", [])
        return stack[-1] if stack else None

    def __enter__(self) -> LayoutConfig:
        self._local.__dict__.setdefault("stack", []).append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._local.stack.pop()


def _depthwise(call: Call, weight: object) -> bool:
    attrs = facets(call)
    if attrs.groups == 1 or not isinstance(weight, TensorType):
        return False
    extents = parse_layout(attrs.kernel_layout).whole(weight.shape)
    return extents["O"] == attrs.groups


def _kernel_layout(site: Site, data: str, asked: str) -> str:
    """The layout of the weight: as asked for, or what goes best with the data's."""
    name = op_name(site.call)
    if asked != "default":
        return asked
    if name in ("nn.conv2d", "qnn.conv2d") and data == "NHWC" and _depthwise(site.call, site.types[1]):
        return "HWOI"
    known = _KERNELS[name].get(data)
    if known is None:
        text = f"there is no default weight layout for {name} in {data}"
        raise RelayValueError(
            text, code="layout.no-default", help=f"known: {', '.join(_KERNELS[name])}; or name both: ['{data}', '...']"
        )
    return known


def _convolution(site: Site, desired: Sequence[str]) -> LayoutPlan | None:
    attrs = site.attrs
    data = attrs.data_layout if desired[0] == "default" else desired[0]
    kernel = _kernel_layout(site, data, desired[1] if len(desired) > 1 else "default")
    out = attrs.out_layout or attrs.data_layout
    _check(op_name(site.call), (attrs.data_layout, data), (attrs.kernel_layout, kernel))
    changed = attrs.replace(data_layout=data, kernel_layout=kernel, out_layout="" if not attrs.out_layout else data)
    pairs = {
        "data": (attrs.data_layout, data),
        "offset": (attrs.data_layout, data),
        "weight": (attrs.kernel_layout, kernel),
    }
    names = cast(Op, site.call.op).arguments
    return LayoutPlan(tuple(pairs.get(n) for n in names), ((out, data),), changed)


def _own_layout(site: Site, desired: Sequence[str]) -> LayoutPlan | None:
    attrs = site.attrs
    want = attrs.layout if desired[0] == "default" else desired[0]
    _check(op_name(site.call), (attrs.layout, want))
    changes = {"layout": want, **({"out_layout": want} if "out_layout" in attrs.fields else {})}
    rest = (None,) * (len(site.given) - 1)
    return LayoutPlan(((attrs.layout, want), *rest), ((attrs.layout, want),), attrs.replace(**changes))


def _check(name: str, *pairs: tuple[str, str]) -> None:
    for old, new in pairs:
        if not convertible(parse_layout(old), parse_layout(new)):
            text = f"{name} in layout {old} cannot be converted to {new}: the axes differ"
            raise RelayValueError(text, code="layout.not-convertible")


def choose_layouts(site: Site, desired: Mapping[str, Sequence[str]]) -> LayoutPlan | None:
    """The plan for a call of an operator for which layouts are asked for."""
    name = op_name(site.call)
    if name not in desired:
        return None
    config = LayoutConfig.current()
    if config is not None and name.startswith("nn.conv") and config.check_skip():
        return None
    if name in _KERNELS:
        return _convolution(site, desired[name])
    return _own_layout(site, desired[name]) if "layout" in site.attrs.fields else None


def _check_asked(desired: Mapping[str, Sequence[str]]) -> None:
    for name, layouts in desired.items():
        if not layouts or (name in _KERNELS and len(layouts) > 2):
            raise RelayValueError(
                f"{len(layouts)} layouts are asked for {name}",
                code="layout.count",
                help="give that of the data and, of an operator with a kernel, that of the weight",
            )
        if not _has_layout(Op.get(name)):
            warn(f"ConvertLayout cannot choose the layout of {name}")


def _has_layout(op: Op) -> bool:
    return op.name in _KERNELS or "layout" in op.definition.fields


def _warn_of_none(desired: Mapping[str, Sequence[str]], mod: IRModule) -> None:
    """Lists of operators for all programs are usual; one that only names others than the program has is a slip."""
    ops = sorted({op for f in mod.functions.values() for op in operators_in(f)}, key=lambda op: op.name)
    others = [op.name for op in ops if _has_layout(op)]
    if desired and others and not any(op.name in desired for op in ops):
        warn(f"ConvertLayout finds no {' and no '.join(desired)} in the program, which has {', '.join(others)}")


@pass_(
    level=3, requires=("InferType", "CanonicalizeOps"), example={"desired_layouts": {"nn.conv2d": ["NHWC", "default"]}}
)
class ConvertLayout(FunctionPass):
    """Converts operators to the layouts asked for: `{"nn.conv2d": ["NHWC", "default"]}`; "default" goes with it.

    What `register_convert_op_layout` (the attribute `FTVMConvertOpLayout` of an operator) says comes first.
    """

    desired_layouts: Annotated[
        Mapping[str, Sequence[str]],
        "For each operator its layouts: of the data, of the weight; `default` goes with it.",
    ]

    def __post_init__(self) -> None:
        _check_asked(self.desired_layouts)

    def apply(self, mod: IRModule, ctx: PassContext) -> IRModule:
        _warn_of_none(self.desired_layouts, mod)
        return super().apply(mod, ctx)

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return rewrite_layouts(func, lambda site: choose_layouts(site, self.desired_layouts), self._asked)

    def _asked(self, call: Call) -> Asked | None:
        wanted = self.desired_layouts.get(op_name(call))
        return None if wanted is None else asked(call, "FTVMConvertOpLayout", wanted)
