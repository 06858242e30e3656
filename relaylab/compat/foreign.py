"""`tvm.target.cuda()` and its like: targets of other devices, which are read as this CPU where programs for TVM run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaylab.compat.target import Target

KINDS = {
    "arm_cpu": "llvm -device=arm_cpu", "bifrost": "opencl -device=bifrost", "cuda": "cuda", "hexagon": "hexagon",
    "intel_graphics": "opencl -device=intel_graphics", "mali": "opencl -device=mali", "metal": "metal",
    "micro": "c -device=micro_dev", "opencl": "opencl", "rasp": "llvm -device=arm_cpu",
    "riscv_cpu": "llvm -device=riscv_cpu", "rocm": "rocm", "vulkan": "vulkan", "webgpu": "webgpu",
}  # fmt: skip
"""The targets that `tvm.target` has as functions."""
__all__ = ["create", *KINDS]


def __getattr__(name: str) -> Callable[..., Target]:
    if name not in KINDS:
        raise AttributeError(name)

    def made(model: str = "unknown", options: str | Sequence[str] | None = None, **settings: object) -> Target:
        """The target of this name, with options as its text has them; of other settings nothing is asked here."""
        given = [options] if isinstance(options, str) else [*(options or ())]
        return Target(" ".join([KINDS[name], *([] if model == "unknown" else [f"-model={model}"]), *given]))

    made.__name__ = made.__qualname__ = name
    return made


def create(target: Target | str | Mapping[str, object]) -> Target:
    """The former name of `Target(…)`."""
    return Target(target)
