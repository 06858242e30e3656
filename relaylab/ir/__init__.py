"""The language as data: types, expressions, modules, and the one traversal kernel."""

from types import ModuleType as _ModuleType

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
from relaylab.ir.equal import assert_structural_equal, get_first_structural_mismatch, structural_equal, structural_hash
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
    const,
    var,
)
from relaylab.ir.free import all_type_vars, all_vars, bound_type_vars, bound_vars, free_type_vars, free_vars
from relaylab.ir.functor import ExprFunctor, ExprMutator, ExprVisitor, TypeFunctor, TypeMutator, TypeVisitor
from relaylab.ir.module import IRModule
from relaylab.ir.names import GlobalVarSupply, NameSupply, parameter_names
from relaylab.ir.op import OPERATORS, Op, facets, is_call_to, op_name
from relaylab.ir.scope_builder import ScopeBuilder
from relaylab.ir.types import (
    Any,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    IntImm,
    RefType,
    ShapeVar,
    SizeVar,
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

__all__ = [name for name, value in list(globals().items()) if not name.startswith("_") and not isinstance(value, _ModuleType)]
