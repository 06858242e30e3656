"""ConvertLayout: convolutions and pooling work in the layouts that one asks for; the rest follows as far as it can."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence

from relaylab.ir import Call, Function, Op, TensorType, facets, op_name
from relaylab.op.layout import convertible, parse_layout
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform.layout_rewrite import rewrite_layouts
from relaylab.transform.layout_rules import Plan, Site
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass

_KERNELS = {
    "nn.conv1d": {"NCW": "OIW", "NWC": "WIO"},
    "nn.conv2d": {"NCHW": "OIHW", "NHWC": "HWIO", "HWNC": "HWOI"},
    "nn.conv3d": {"NCDHW": "OIDHW", "NDHWC": "DHWIO"},
    "nn.conv1d_transpose": {"NCW": "IOW", "NWC": "WIO"},
    "nn.conv2d_transpose": {"NCHW": "IOHW", "NHWC": "HWIO"},
    "nn.conv3d_transpose": {"NCDHW": "IODHW", "NDHWC": "DHWIO"},
}


class LayoutConfig:
    """A context in which ConvertLayout leaves out some convolutions: `with LayoutConfig(skip_layers=[0]): ...`."""

    _local = threading.local()

    def __init__(self, skip_layers: Iterable[int] | None = None):
        self.skip_layers = frozenset(skip_layers or ())
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
    if name == "nn.conv2d" and data == "NHWC" and _depthwise(site.call, site.types[1]):
        return "HWOI"
    known = _KERNELS[name].get(data)
    if known is None:
        text = f"there is no default weight layout for {name} in {data}"
        raise RelayValueError(
            text, code="layout.no-default", help=f"known: {', '.join(_KERNELS[name])}; or name both: ['{data}', '...']"
        )
    return known


def _convolution(site: Site, desired: Sequence[str]) -> Plan | None:
    attrs = site.attrs
    data = attrs.data_layout if desired[0] == "default" else desired[0]
    kernel = _kernel_layout(site, data, desired[1] if len(desired) > 1 else "default")
    out = attrs.out_layout or attrs.data_layout
    _check(op_name(site.call), (attrs.data_layout, data), (attrs.kernel_layout, kernel))
    changed = attrs.replace(data_layout=data, kernel_layout=kernel, out_layout="" if not attrs.out_layout else data)
    return Plan(((attrs.data_layout, data), (attrs.kernel_layout, kernel)), ((out, data),), changed)


def _own_layout(site: Site, desired: Sequence[str]) -> Plan | None:
    attrs = site.attrs
    want = attrs.layout if desired[0] == "default" else desired[0]
    _check(op_name(site.call), (attrs.layout, want))
    changes = {"layout": want, **({"out_layout": ""} if "out_layout" in attrs.fields else {})}
    rest = (None,) * (len(site.given) - 1)
    return Plan(((attrs.layout, want), *rest), ((attrs.layout, want),), attrs.replace(**changes))


def _check(name: str, *pairs: tuple[str, str]) -> None:
    for old, new in pairs:
        if not convertible(parse_layout(old), parse_layout(new)):
            text = f"{name} in layout {old} cannot be converted to {new}: the axes differ"
            raise RelayValueError(text, code="layout.not-convertible")


def choose_layouts(site: Site, desired: Mapping[str, Sequence[str]]) -> Plan | None:
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


def _warn_unknown(desired: Mapping[str, Sequence[str]]) -> None:
    for name in desired:
        if name not in _KERNELS and "layout" not in Op.get(name).definition.fields:
            warnings.warn(f"ConvertLayout cannot choose the layout of {name}", stacklevel=3)


@register_pass(desired_layouts={"nn.conv2d": ["NHWC", "default"]})
def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:
    """Converts operators to the layouts asked for: `{"nn.conv2d": ["NHWC", "default"]}`; "default" goes with it."""
    if not isinstance(desired_layouts, Mapping):
        text = "desired_layouts is a dictionary from operators to lists of layouts"
        raise RelayTypeError(text, code="layout.bad-argument", help='{"nn.conv2d": ["NHWC", "default"]}')
    _warn_unknown(desired_layouts)

    def run(func: Function, mod: object, ctx: object) -> Function:
        return rewrite_layouts(func, lambda site: choose_layouts(site, desired_layouts))

    return FunctionPass(PassInfo(3, "ConvertLayout", ("InferType", "CanonicalizeOps")), run)
