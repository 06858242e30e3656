"""What a network looked like on its way down: Relay function, loops, LLVM IR and assembly of every kernel, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relaylab.codegen.inspection.control_flow import flows, outline
from relaylab.codegen.inspection.llvm_passes import optimized
from relaylab.codegen.inspection.source_map import SourceMap, coverage
from relaylab.codegen.inspection.why import why
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, module_text
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.network.network import Network
from relaylab.codegen.operations.fused_body import Views
from relaylab.codegen.operations.jobs import Job
from relaylab.codegen.operations.layout import NetworkLayout
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.operations.plan import NetworkPlan
from relaylab.ir import Call, Expr, Function, post_order
from relaylab.ir.display import node_text
from relaylab.support.source import shown

KernelForJob = tuple[Kernel, Job]


@dataclass(frozen=True, slots=True)
class Stages:
    """The texts are made when they are asked for. `calls` are the functions of one name, one for each time that it is
    called: they differ in where they were written. `kernels` are those that serve each fused function, by its name;
    `again` holds what is made once more for its loops."""

    target: CpuTarget
    calls: Mapping[str, Sequence[Function]]
    kernels: Mapping[str, Sequence[KernelForJob]]
    views: Views
    again: KernelMemo

    @staticmethod
    def of(network: Network, planned: NetworkPlan, layouts: NetworkLayout, target: CpuTarget) -> Stages:
        """Those of a network that was planned."""
        calls: dict[str, list[Function]] = {}
        for operation in network.operations:
            calls.setdefault(operation.name, []).append(operation.function)
        kernels: dict[str, dict[str, KernelForJob]] = {}
        for step, job in zip(planned.plan.steps, planned.jobs):
            kernels.setdefault(step.name, {}).setdefault(step.kernel, (planned.kernels[step.kernel], job))
        served = {name: tuple(found.values()) for name, found in kernels.items()}
        return Stages(target, calls, served, layouts, KernelMemo(target, ObjectCache(None)))

    def function(self, name: str) -> Function:
        """The fused function of a name."""
        return self.calls[name][0]

    def __call__(self, stage: str, name: str) -> str:
        """The text of one stage of one fused function."""
        if stage == "relay":
            return "\n".join([node_text(self.function(name)), *dict.fromkeys(map(_places, self.calls[name]))])
        if stage == "asm":
            return self._asm(name)
        return "\n".join(self._texts()[stage](*served) for served in self.kernels[name])

    def _texts(self) -> Mapping[str, Callable[[Kernel, Job], str]]:
        return {
            "loop": self._loops,
            "why": lambda kernel, job: why(kernel, job, self.views, self.target),
            "llvm": lambda kernel, job: self._llvm(kernel),
            "llvm-optimized": lambda kernel, job: optimized(self._llvm(kernel), self.target),
            "flow": lambda kernel, job: "".join(map(outline, flows(kernel.listing))),
        }

    def _loops(self, kernel: Kernel, job: Job) -> str:
        """The loops of a kernel, made again where it came from the cache."""
        if kernel.program is None:
            made = job.launches(self.views, self.target, self.again)
            kernel = next(launch.kernel for launch in made if launch.kernel.name == kernel.name)
        return str(kernel.program)

    def _llvm(self, kernel: Kernel) -> str:
        return module_text([kernel], attributes=self.target.attributes)

    def linked(self, name: str) -> tuple[SourceMap, ...]:
        """The kernels of a fused function with the Relay nodes of their instructions, in the order they run."""
        own = self.function(name)
        return tuple(
            SourceMap(kernel, tuple(map(same_place(job.operation.function, own).get, job.parts())), self.target)
            for kernel, job in self.kernels[name]
        )

    def _asm(self, name: str) -> str:
        found = self.linked(name)
        return "\n".join([f"# {coverage(found)}", *(linked.annotated() for linked in found)])


def _places(function: Function) -> str:
    """Where the operators of a fused function were written: lines of programs, nodes of imported models."""
    places = (shown(n.span) for n in post_order(function.body) if isinstance(n, Call) and n.span is not None)
    return f"// from {', '.join(dict.fromkeys(places)) or 'nowhere that is known'}"


def same_place(one: Function, other: Function) -> dict[Expr | None, Expr]:
    """The expressions of a function's body, and what stands in their places in an equal function."""
    return dict(zip(post_order(one.body), post_order(other.body)))
