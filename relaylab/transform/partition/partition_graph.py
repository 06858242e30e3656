"""PartitionGraph: each region for an external compiler becomes a function of the module."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, cast

from relaylab.analysis.regions import AnnotatedRegion, AnnotatedRegionSet
from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, Tuple, TupleGetItem, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply
from relaylab.ir.op import Op, is_call_to
from relaylab.ir.trail import derived, made_from
from relaylab.ir.visit import children, rebuild, walk
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of, typed
from relaylab.transform.engine.manager import ModulePass, create, is_optimizable
from relaylab.transform.engine.renewal import as_function, copied, rewrite_function
from relaylab.transform.partition.annotate_target import BEGIN, DEFAULT, END, compiler_of


def _tidied(new: Expr, old: Expr) -> Expr:
    """Without borders of the default compiler; a tuple leaves its region field by field."""
    if not is_call_to(new, BEGIN, END):
        return new
    inner = new.args[0]
    if compiler_of(new) == DEFAULT:
        return inner
    if is_call_to(new, END) and isinstance(inner, Tuple):
        fields = [_tidied(copied(call(END, f, compiler=compiler_of(new)), old), old) for f in inner.fields]
        return Tuple(fields, span=new.span)
    if is_call_to(new, END) and is_call_to(inner, BEGIN):
        return inner.args[0]  # nothing is computed between them
    return new


class _Region:
    """One region on its way into a function: what it reads, what it gives."""

    def __init__(self, region: AnnotatedRegion, bind_constants: bool):
        self.region, self.bind = region, bind_constants
        self.outs = list(dict.fromkeys(cast(Call, end).args[0] for end in region.outs))
        inside = {v for n in region.nodes for v in bound_by(n)}
        reads = ((n, c) for n in region.nodes for c in children(n) if c not in region.nodes and c not in inside)
        self.inputs = list(dict.fromkeys(c for n, c in reads if self._is_input(n, c)))
        self.call: Expr | None = None

    def _is_input(self, node: Expr, child: Expr) -> bool:
        if isinstance(child, Constant):
            return is_call_to(node, BEGIN) and not self.bind
        return not isinstance(child, (Op, GlobalVar, Constructor))

    def function(self, symbol: str) -> Function:
        """The function of the region's inputs that gives its output, or the tuple of its outputs."""
        opened = [cast(Call, begin).args[0] for begin in self.region.ins]
        places = {value: k for k, value in reversed(list(enumerate((*opened, *self.inputs))))}
        params = [self._param(value, places[value]) for value in self.inputs]
        made: dict[Expr, Expr] = dict(zip(self.inputs, params))
        for node in walk(self.outs, lambda n: () if n in made else children(n)):
            if node not in made:
                new = made[node.args[0]] if is_call_to(node, BEGIN, END) else None
                made[node] = derived(rebuild(node, [made[c] for c in children(node)]), node) if new is None else new
        body = made[self.outs[0]] if len(self.outs) == 1 else Tuple([made[n] for n in self.outs])
        attrs = {"Inline": 1, "Compiler": self.region.target, "global_symbol": symbol, "Primitive": 1}
        func = Function(params, copied(body, *self.outs), None, (), attrs)
        return copied(func, *self.outs)

    def _param(self, value: Expr, k: int) -> Var:
        name = f"{self.region.target}_{self.region.id}_i{k}"
        return copied(Var(name, type_of(value), span=value.span), value)


class _Partitioner:
    """Takes the regions out of one function; `place` puts the functions made of them into the module."""

    def __init__(self, func: Function, bind_constants: bool, place: Callable[[_Region], GlobalVar]):
        self.func, self.place = func, place
        found = [r for r in AnnotatedRegionSet(func) if r.outs]
        made = [_Region(r, bind_constants) for r in found]
        self.regions = {end: m for m in made for end in m.region.outs}
        self.memo: dict[Expr, Expr] = {}

    def run(self) -> Function:
        """The function with calls in the place of its regions."""
        if not self.regions:
            return self.func
        for node in walk((self.func,), self._below):
            with made_from(node):
                self.memo[node] = derived(self._rewritten(node), node)
        return as_function(self.memo[self.func])

    def _below(self, node: Expr) -> tuple[Expr, ...]:
        region = self.regions.get(node)
        return children(node) if region is None else tuple(region.inputs)

    def _rewritten(self, node: Expr) -> Expr:
        if any(part not in self.memo for part in self._below(node)):
            text = "a region for an external compiler needs a value that depends on the region's own results"
            raise RelayValueError(text, code="partition.circle", help="draw its borders with MergeCompilerRegions")
        region = self.regions.get(node)
        if region is None:
            new = rebuild(node, [self.memo[c] for c in children(node)])
            return cast(Call, new).args[0] if is_call_to(node, BEGIN) else new
        if region.call is None:
            region.call = copied(Call(self.place(region), [self.memo[v] for v in region.inputs]), *region.outs)
        if len(region.outs) == 1:
            return region.call
        return TupleGetItem(region.call, region.outs.index(cast(Call, node).args[0]))


def partition_graph(mod: IRModule, mod_name: str = "default", bind_constants: bool = True) -> IRModule:
    """The module with a function `tvmgen_<mod_name>_<compiler>_<function>_<number>` for each region, last."""
    supply = GlobalVarSupply(mod)
    functions: dict[GlobalVar, Function] = dict(mod.functions)
    made: dict[GlobalVar, Function] = {}
    for gv, func in mod.functions.items():
        if not is_optimizable(func):
            continue

        def place(region: _Region, owner: str = gv.name_hint) -> GlobalVar:
            text = f"tvmgen_{mod_name}_{region.region.target}_{owner}_{region.region.id}"
            name = supply.fresh_global(re.sub(r"\W", "_", text))
            made[name] = region.function(name.name_hint)
            return name

        tidy = typed(rewrite_function(func, _tidied), mod)
        functions[gv] = _Partitioner(tidy, bind_constants, place).run()
    return mod.with_functions({**functions, **made})


@pass_(level=0, requires=("InferType",), idempotent=True)
class PartitionGraph(ModulePass):
    """Moves each region for an external compiler into a function of the module, marked with `Compiler`.

    The functions are called `tvmgen_<mod_name>_<compiler>_<function>_<number>`, with the number of the region as TVM
    counts: one for each `compiler_begin`. Constants that a region reads lie in its function if `bind_constants`, else
    they are arguments. Borders of the default compiler go.
    """

    mod_name: Annotated[str, "What the names of the functions have after `tvmgen_`."] = "default"
    bind_constants: Annotated[bool, "Constants of a region lie in its function; else they are arguments."] = True

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return create("InferType")(partition_graph(mod, self.mod_name, self.bind_constants))
