"""Before the passes: a program that is a static graph, but written with lets and function calls, as a plain graph.

Calls of functions that do not call themselves are replaced by their bodies and lets by their values, so that
fusion sees through them. Programs with control flow, effects or data types are left as they are.
"""

from __future__ import annotations

from relaylab.analysis.components import strong_components
from relaylab.ir import Call, Constant, Expr, Function, GlobalVar, IRModule, Let, Op, Tuple, TupleGetItem, Var, walk
from relaylab.ir.free import global_vars
from relaylab.transform.engine.purity import changes_state_in
from relaylab.transform.engine.renewal import as_function, inlined, rewrite_function
from relaylab.transform.normal_forms.to_graph_normal_form import to_gnf

PLAIN = (Call, Constant, Function, GlobalVar, Let, Op, Tuple, TupleGetItem, Var)


def first_order(mod: IRModule) -> IRModule:
    """The module with lets and calls resolved in `main`; the same object if `main` has none, or is no such program."""
    main = mod["main"]
    functions = _reachable(mod)
    nodes = [node for function in functions.values() for node in walk((function,))]
    if not any(isinstance(n, Let) or _resolvable(n) for n in nodes) or not all(isinstance(n, PLAIN) for n in nodes):
        return mod
    if any(map(changes_state_in, functions.values())):  # an operator with an effect
        return mod
    resolved = _resolved(functions)
    found = resolved.get(mod.get_global_var("main"))
    return (
        mod
        if found is None or found is main
        else mod.with_functions({**mod.functions, mod.get_global_var("main"): found})
    )


def _reachable(mod: IRModule) -> dict[GlobalVar, Function]:
    """`main` and the functions that it leads to."""
    start = mod.get_global_var("main")
    found: dict[GlobalVar, Function] = {}
    stack = [start]
    while stack:
        name = stack.pop()
        if name not in found and name in mod.functions:
            found[name] = mod[name]
            stack.extend(global_vars(found[name]))
    return found


def _resolvable(node: Expr) -> bool:
    """A call of a function that is known here and not made into a kernel."""
    if not isinstance(node, Call):
        return False
    return isinstance(node.op, GlobalVar) or (isinstance(node.op, Function) and not _foreign(node.op))


def _foreign(function: Function) -> bool:
    return bool(function.is_primitive or function.attr("Compiler") or function.attr("Extern", 0))


def _resolved(functions: dict[GlobalVar, Function]) -> dict[GlobalVar, Function]:
    """The functions that do not call themselves, callees first, each with its calls resolved."""
    calls = {name: [c for c in global_vars(f) if c in functions] for name, f in functions.items()}
    done: dict[GlobalVar, Function] = {}
    for group in strong_components(calls):
        if len(group) == 1 and group[0] not in calls[group[0]] and not _foreign(functions[group[0]]):
            plain = as_function(to_gnf(functions[group[0]]))
            done[group[0]] = rewrite_function(plain, lambda new, old: _inline(new, done))
    return done


def _inline(node: Expr, done: dict[GlobalVar, Function]) -> Expr:
    if not isinstance(node, Call):
        return node
    callee = done.get(node.op) if isinstance(node.op, GlobalVar) else node.op
    if not isinstance(callee, Function) or _foreign(callee) or len(callee.params) != len(node.args):
        return node
    return inlined(callee, node)
