"""The call graph: which functions of a module refer to which."""

from __future__ import annotations

from collections import Counter

from relaylab.analysis.components import strong_components
from relaylab.ir.expr import GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.visit import children, walk
from relaylab.support.checked import checked


@checked
class CallGraph:
    """For every function of `module` the functions it refers to; look-ups take a `GlobalVar` or a name."""

    def __init__(self, module: IRModule):
        self.module = module
        self.edges: dict[GlobalVar, Counter[GlobalVar]] = {gv: _references(module, gv) for gv in module.functions}

    def _var(self, var: GlobalVar | str) -> GlobalVar:
        return self.module.get_global_var(var if isinstance(var, str) else var.name_hint)

    def callees(self, var: GlobalVar | str) -> list[GlobalVar]:
        """The functions that a function refers to, in the order of first use."""
        return list(self.edges[self._var(var)])

    def callers(self, var: GlobalVar | str) -> list[GlobalVar]:
        """The functions that refer to a function."""
        wanted = self._var(var)
        return [gv for gv, targets in self.edges.items() if wanted in targets]

    def ref_count(self, var: GlobalVar | str) -> int:
        """How often a function is referred to in the module."""
        wanted = self._var(var)
        return sum(targets[wanted] for targets in self.edges.values())

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How many references to functions of the module a function makes."""
        return sum(self.edges[self._var(var)].values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Whether a function refers to itself directly."""
        return self._var(var) in self.edges[self._var(var)]

    def in_cycle(self, var: GlobalVar | str) -> bool:
        """Whether a function can reach itself."""
        gv = self._var(var)
        return self.is_recursive(gv) or any(gv in group and len(group) > 1 for group in strong_components(self.edges))

    def reachable(self, *roots: GlobalVar | str) -> list[GlobalVar]:
        """The functions that `roots` can reach, roots included, in the order of the module."""
        seen: set[GlobalVar] = set()
        stack = [self._var(r) for r in roots]
        while stack:
            gv = stack.pop()
            if gv not in seen:
                seen.add(gv)
                stack.extend(self.edges[gv])
        return [gv for gv in self.module.functions if gv in seen]

    def topological_order(self) -> list[GlobalVar]:
        """Every function, callers before callees; functions of a cycle in the order of the module."""
        return [gv for group in reversed(strong_components(self.edges)) for gv in group]

    def __contains__(self, var: GlobalVar | str) -> bool:
        return self.module.contain_global_var(var if isinstance(var, str) else var.name_hint)

    def __getitem__(self, var: GlobalVar | str) -> str:
        return self.print_var(var)

    def print_var(self, var: GlobalVar | str) -> str:
        """The references of one function, as text: how often it is referred to, and a line for each that it makes."""
        gv = self._var(var)
        lines = [
            f"  call site: <{gv.name_hint}> calls {t.name_hint}" for t, n in self.edges[gv].items() for _ in range(n)
        ]
        return "\n".join([f"Call graph node: {gv.name_hint},  #refs = {self.ref_count(gv)}", *lines])

    def __str__(self) -> str:
        return "\n".join(self.print_var(gv) for gv in self.topological_order())


def _references(mod: IRModule, gv: GlobalVar) -> Counter[GlobalVar]:
    """One for each place that names a function: a call of it, or a use of it as a value."""
    counts: Counter[GlobalVar] = Counter()
    for node in walk((mod.functions[gv],)):
        for part in children(node):
            if isinstance(part, GlobalVar) and mod.contain_global_var(part.name_hint):
                counts[mod.get_global_var(part.name_hint)] += 1
    return counts
