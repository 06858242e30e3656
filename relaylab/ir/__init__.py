"""The language as data: types, expressions, modules, and the one traversal kernel."""

from relaylab.ir.adt import (
    Clause,
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from relaylab.ir.attrs import REQUIRED, Attrs, DictAttrs
from relaylab.ir.digest import structural_hash
from relaylab.ir.dims import AnyDim, IntImm, SizeVar
from relaylab.ir.equal import StructuralTable, assert_structural_equal, get_first_structural_mismatch, structural_equal
from relaylab.ir.expr import (
    BaseFunc,
    Call,
    Constant,
    Expr,
    ExprWithOp,
    Function,
    FunctionWithFields,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TempExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    as_expr,
)
from relaylab.ir.free import all_type_vars, all_vars, bound_type_vars, bound_vars, free_type_vars, free_vars
from relaylab.ir.functor import ExprFunctor, ExprMutator, ExprVisitor, TypeFunctor, TypeMutator, TypeVisitor
from relaylab.ir.leaves import const, var
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply, NameSupply, parameter_names
from relaylab.ir.op import OPERATORS, Op, facets, is_call_to, op_name
from relaylab.ir.scope_builder import ScopeBuilder
from relaylab.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    ShapeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeVar,
    is_dynamic,
    scalar_type,
    type_text,
)
from relaylab.ir.visit import (
    children,
    fold,
    let_chain,
    post_order,
    post_order_visit,
    rebuild,
    rewrite,
    substitute,
    users,
    walk,
)

__all__ = [
    "AnyDim", "Attrs", "BaseFunc", "Call", "Clause", "Constant", "Constructor", "DictAttrs", "Expr", "ExprFunctor",
    "ExprMutator", "ExprVisitor", "ExprWithOp", "FuncType", "Function", "FunctionWithFields", "GlobalTypeVar",
    "GlobalVar", "GlobalVarSupply", "IRModule", "If", "IncompleteType", "IntImm", "Let", "Match", "NameSupply",
    "OPERATORS", "Op", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard", "REQUIRED",
    "RefCreate", "RefRead", "RefType", "RefWrite", "ScopeBuilder", "ShapeVar", "SizeVar", "StructuralTable", "TempExpr",
    "TensorType", "Tuple", "TupleGetItem", "TupleType", "TupleWrapper", "Type", "TypeCall", "TypeData", "TypeFunctor",
    "TypeKind", "TypeMutator", "TypeVar", "TypeVisitor", "Var", "all_type_vars", "all_vars", "as_expr",
    "assert_structural_equal", "bound_type_vars", "bound_vars", "children", "const", "facets", "fold", "free_type_vars",
    "free_vars", "get_first_structural_mismatch", "is_call_to", "is_dynamic", "let_chain", "op_name", "parameter_names",
    "post_order", "post_order_visit", "rebuild", "rewrite", "scalar_type", "structural_equal", "structural_hash",
    "substitute", "type_text", "users", "var", "walk",
]  # fmt: skip
