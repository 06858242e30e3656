"""What public modules say about a name that they do not have: what it may have been, or why it is not kept.

Choices: docs/choices.md, The house.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.support.errors import RelayAttributeError
from relaylab.support.table import did_you_mean

_OUT = "; what TVM imports and prints with mod.astext() and relay.save_param_dict(params) is read here, too"
_TUNING = "kernels are chosen by their shapes when a program is built; `relaylab tune` searches schedules for them"
LEVELS = (
    "the levels below Relay are relaylab's own: `relaylab asm NET` shows loops, "
    "`relaylab schedule NET KERNEL` rewrites them by steps"
)
_TENSORS = f"{LEVELS}; docs/te_and_tir.md has the words of TE and TIR beside ours"
_FORMATS = "data types are numpy's and bfloat16; numbers of another format are simulated by operators on float32"
_LATER = "this operator came after TVM 0.10; it is written with the others, a quantized one on what it dequantizes"
_REGIONS = "code generators of others are not kept; relay.transform.PartitionGraph shows what they would take"

_ROUTES = {
    "from_keras": 'model.export("model.onnx", format="onnx") of Keras 3 writes ONNX',
    "from_tensorflow": "python -m tf2onnx.convert --saved-model FOLDER --output model.onnx writes ONNX",
    "from_tflite": "python -m tf2onnx.convert --tflite FILE --output model.onnx writes ONNX",
}
"""How models of other formats become ONNX."""

REASONS: dict[str, str] = {
    "relay.frontend": f"ONNX and PyTorch models are imported (from_onnx, from_pytorch), other formats are not{_OUT}",
    **{f"relay.frontend.{name}": f'{write}; from_onnx("model.onnx") reads it{_OUT}' for name, write in _ROUTES.items()},
    **dict.fromkeys(("OpImplementation", "OpSpecialization", "OpStrategy"), _TUNING),
    **dict.fromkeys(("AOTLowerMain", "copy_shape_func", "register_intrin_lowering"), LEVELS),
    "CollagePartition": _REGIONS,
    "load_static_library": "lib.export_library writes a file that tvm.runtime.load_module reads",
    "system_lib": "lib.export_library writes a file that tvm.runtime.load_module reads",
    "relay.collage": _REGIONS,
    "relay.op.contrib": _REGIONS,
    "relay.op.strategy": _TUNING,
    "relay.backend": LEVELS,
    **dict.fromkeys(("relay.dft", "relay.fixed_point_multiply_per_axis", "relay.qnn.op.avg_pool2d"), _LATER),
    **dict.fromkeys(("relay.qnn.op.softmax", "relay.qnn.op.contrib_dense_pack", "relay.qnn.op.csi_conv2d"), _LATER),
    "relay.frontend.ChangeDatatype": _FORMATS,
    "tvm.arith": LEVELS,
    "tvm.autotvm": _TUNING,
    "tvm.build": _TENSORS,
    "tvm.contrib": "code is made, saved and loaded without other compilers: lib.export_library(FILE)",
    "tvm.contrib.dlpack": "tvm.nd.from_dlpack reads arrays of others, and others read those of tvm.nd by __dlpack__",
    "tvm.contrib.pipeline_executor": "parts of a program are built one by one: relay.build of each",
    "tvm.contrib.target": "relay.frontend.to_onnx(mod, params) writes a program as ONNX",
    "tvm.contrib.torch": "relay.frontend.from_pytorch imports the model; what is built takes and gives arrays",
    "tvm.auto_scheduler": _TUNING,
    "tvm.lower": _TENSORS,
    "tvm.meta_schedule": _TUNING,
    "tvm.driver": "in Python relay.frontend.from_onnx and relay.build, in a shell `relaylab run`, `profile`, `tune`",
    "tvm.micro": "there is no runtime for microcontrollers; a saved module runs where Python and its CPU are",
    "tvm.relax": "Relax came after Relay and is not Relay; relaylab keeps the Relay of TVM 0.8 to 0.10",
    "tvm.rpc": "modules run where they are loaded; lib.export_library writes a file to take along",
    "tvm.script": _TENSORS,
    "tvm.support": "`relaylab --version` says which relaylab this is; code is made with llvmlite alone",
    "tvm.target.codegen": "llvmlite.binding says what LLVM and this CPU have",
    "tvm.target.datatype": _FORMATS,
    "tvm.target.generic_func": _TUNING,
    "tvm.te": _TENSORS,
    "tvm.tir": _TENSORS,
    "tvm.topi": _TENSORS,
    "relay.transform.CollagePartition": _REGIONS,
    "relay.transform.recast.RecastMutator": "recast(expr, dtype, out_dtype, ops, skip_layers) is all that it does",
    "relay.nn.Constant": "the class is relay.Constant",
}
"""What relaylab leaves out of what Relay programs name, and what there is instead; the longest prefix holds."""


def reason(name: str) -> str:
    """Why `relay.x.y` or `tvm.x.y` is not here; empty if that is not known."""
    parts = name.replace("tvm.relay", "relay", 1).split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((REASONS[prefix] for prefix in prefixes if prefix in REASONS), "")


def absent(module: str, name: str, names: Iterable[str]) -> RelayAttributeError:
    """The error for a name that a public module such as `relay.nn` does not have, beside those that it has."""
    help = reason(f"{module}.{name}") or did_you_mean(name, [n for n in names if not n.startswith("_")])
    return RelayAttributeError(f"{module} has no `{name}`", code="name.unknown", help=help)


def absent_module(key: str, names: Iterable[str], tvm: bool) -> ModuleNotFoundError:
    """The error for a module, or what an import takes from one, that is not there, under the name that programs use."""
    name = f"tvm.{key.removeprefix('tvm.')}" if tvm else f"relaylab.{key}"
    package, _, last = name.rpartition(".")
    here = last in names and f"`{last}` is no module but a name: from {package} import {last}"
    why = here or reason(key) or did_you_mean(last, names)
    if tvm and not why:
        why = "relaylab keeps Relay, its runtime and its visualizer under the name tvm"
    return ModuleNotFoundError(f"there is no {name}{why and f': {why}'}", name=name)
