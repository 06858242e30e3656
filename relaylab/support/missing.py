"""What public modules say about a name that they do not have: what it may have been, or why it is not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from relaylab.support.errors import RelayAttributeError
from relaylab.support.table import did_you_mean

_OUT = "; docs/relay_programs.md tells how a program gets from there to here"
_TUNING = "nothing is tuned: kernels are chosen by their shapes when a program is built"
_LEVELS = "the levels below Relay are relaylab's own: see docs/kernels.md"
_REGIONS = "code generators of others are not kept; relay.transform.PartitionGraph shows what they would take"
_CPU = 'code is made for CPUs, through LLVM: Target("llvm") or Target("llvm -mcpu=haswell")'
_FORMS = "this pass is not kept; `relaylab passes` lists those that are"
_GPU = ("arm_cpu", "cuda", "hexagon", "intel_graphics", "mali", "metal", "micro", "opencl", "rocm", "vulkan")

REASONS: dict[str, str] = {
    "relay.frontend": f"ONNX models are imported (from_onnx), other formats are not{_OUT}",
    "relay.quantize": "float programs are not quantized here; quantized ones (relay.qnn) are compiled",
    "relay.collage": _REGIONS,
    "relay.op.contrib": _REGIONS,
    "relay.op.strategy": _TUNING,
    "relay.backend": _LEVELS,
    "tvm.autotvm": _TUNING,
    "tvm.auto_scheduler": _TUNING,
    "tvm.meta_schedule": _TUNING,
    "tvm.driver": "the command is `relaylab`: see relaylab --help",
    "tvm.micro": "there is no runtime for microcontrollers; a saved module runs where Python and its CPU are",
    "tvm.relax": "Relax came after Relay and is not Relay; relaylab keeps the Relay of TVM 0.8 to 0.10",
    "tvm.rpc": "modules run where they are loaded; lib.export_library writes a file to take along",
    "tvm.script": _LEVELS,
    "tvm.te": _LEVELS,
    "tvm.tir": _LEVELS,
    "tvm.topi": _LEVELS,
    **{f"tvm.target.{kind}": _CPU for kind in _GPU},
    **dict.fromkeys((f"relay.transform.{name}" for name in (
        "CollagePartition", "MarkCompilerFunctionsAsExtern",
    )), _REGIONS),
    **dict.fromkeys((f"relay.transform.{name}" for name in (
        "AnnotateSpans", "CapturePostDfsIndexInSpans", "Conv2dToSparse", "Conv2dToSparse2", "Defunctionalization", "DenseToSparse",
        "FlexibleShapeDispatch", "LazyGradientInit", "ToCPS", "recast", "to_cps", "un_cps",
    )), _FORMS),
}
"""What relaylab leaves out of what Relay programs name, and what there is instead; the longest prefix that fits holds."""


def reason(name: str) -> str:
    """Why `relay.x.y` or `tvm.x.y` is not here; empty if that is not known."""
    parts = name.replace("tvm.relay", "relay", 1).split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 1, -1))
    return next((REASONS[prefix] for prefix in prefixes if prefix in REASONS), "")


def shown(module: str) -> str:
    """A module's name as programs write it: `relay.nn`, `tvm.target`."""
    return module.removeprefix("relaylab.").removeprefix("compat.")


def missing(module: str, names: Iterable[str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a public module that has `names`: an error that helps."""

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("_"):  # what Python and notebooks look for in all modules
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        known = [n for n in names if not n.startswith("_")]
        help = reason(f"{shown(module)}.{name}") or did_you_mean(name, known)
        raise RelayAttributeError(f"{shown(module)} has no `{name}`", code="name.unknown", help=help)

    return __getattr__
