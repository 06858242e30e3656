"""Which features of the language a program uses."""

from __future__ import annotations

from enum import IntEnum

from relaylab import ir
from relaylab.ir.visit import LEAVES


class Feature(IntEnum):
    """A kind of node that a program has; `fGraph`: a node other than a leaf is shared, `fLetRec`: a `let` refers to
    itself.
    """

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_OF_KIND: dict[type, Feature] = {
    ir.Var: Feature.fVar,
    ir.GlobalVar: Feature.fGlobalVar,
    ir.Constant: Feature.fConstant,
    ir.Tuple: Feature.fTuple,
    ir.TupleGetItem: Feature.fTupleGetItem,
    ir.Function: Feature.fFunction,
    ir.Op: Feature.fOp,
    ir.Call: Feature.fCall,
    ir.Let: Feature.fLet,
    ir.If: Feature.fIf,
    ir.RefCreate: Feature.fRefCreate,
    ir.RefRead: Feature.fRefRead,
    ir.RefWrite: Feature.fRefWrite,
    ir.Constructor: Feature.fConstructor,
    ir.Match: Feature.fMatch,
}


def detect_feature(a: ir.Expr | ir.IRModule, b: ir.Expr | ir.IRModule | None = None) -> set[Feature]:
    """The features of an expression, or of all functions of a module; kernels (`Primitive` functions) are not looked
    into.
    """
    exprs = [x for x in (a, b) if isinstance(x, ir.Expr)]
    roots = exprs[:1] or [f for mod in (a,) if isinstance(mod, ir.IRModule) for f in mod.functions.values()]
    return set().union(*map(_features, roots)) if roots else set()


def _features(root: ir.Expr) -> set[Feature]:
    found: set[Feature] = set()
    used: set[ir.Expr] = set()
    place = {node: k for k, node in enumerate(ir.walk((root,), _unbound))}
    for node in ir.walk((root,), _inside):
        if not _is_kernel(node):
            found.add(_OF_KIND[type(node)])
        if isinstance(node, ir.Let) and place.get(node.var, len(place)) <= place[node.value]:  # met before the body
            found.add(Feature.fLetRec)
        for part in _inside(node):
            if part in used and type(part) not in LEAVES:
                found.add(Feature.fGraph)
            used.add(part)
    return found


def _is_kernel(node: ir.Expr) -> bool:
    return isinstance(node, ir.Function) and node.is_primitive


def _unbound(node: ir.Expr) -> tuple[ir.Expr, ...]:
    """What is looked into, without the variables that a `let` or a function binds."""
    if isinstance(node, ir.Let):
        return (node.value, node.body)
    return _inside(node)[-1:] if isinstance(node, ir.Function) else _inside(node)


def _inside(node: ir.Expr) -> tuple[ir.Expr, ...]:
    return () if _is_kernel(node) else ir.children(node)
