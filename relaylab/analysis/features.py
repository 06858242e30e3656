"""Which features of the language a program uses."""

from __future__ import annotations

from enum import IntEnum

from relaylab.ir.adt import Constructor, Match
from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.free import free_vars
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import children, walk


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
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}
_LEAVES = (Var, GlobalVar, Constant, Op, Constructor)


def detect_feature(a: Expr | IRModule, b: Expr | IRModule | None = None) -> set[Feature]:
    """The features of an expression, or of all functions of a module; kernels (`Primitive` functions) are not looked
    into.
    """
    exprs = [x for x in (a, b) if isinstance(x, Expr)]
    roots = exprs[:1] or [f for mod in (a,) if isinstance(mod, IRModule) for f in mod.functions.values()]
    return set().union(*map(_features, roots)) if roots else set()


def _features(root: Expr) -> set[Feature]:
    found: set[Feature] = set()
    used: set[Expr] = set()
    for node in walk((root,), _inside):
        if not _is_kernel(node):
            found.add(_OF_KIND[type(node)])
        if isinstance(node, Let) and node.var in free_vars(node.value):
            found.add(Feature.fLetRec)
        for part in _inside(node):
            if part in used and not isinstance(part, _LEAVES):
                found.add(Feature.fGraph)
            used.add(part)
    return found


def _is_kernel(node: Expr) -> bool:
    return isinstance(node, Function) and node.is_primitive


def _inside(node: Expr) -> tuple[Expr, ...]:
    return () if _is_kernel(node) else children(node)
