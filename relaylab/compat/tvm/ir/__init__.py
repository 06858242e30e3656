"""tvm.ir: modules, types, structural equality."""

from relaylab.compat.tvm.ir import instrument, module, op, supply, transform
from relaylab.contrib.registry import make_node, register_op_attr
from relaylab.ir import (
    Attrs,
    DictAttrs,
    FuncType,
    GlobalTypeVar,
    GlobalVar,
    GlobalVarSupply,
    IncompleteType,
    IRModule,
    NameSupply,
    Op,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeVar,
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)
from relaylab.ir import BaseFunc as BaseFunc
from relaylab.ir import Expr as RelayExpr
from relaylab.ir import RefType as RelayRefType
from relaylab.ir import TensorType as TensorType
from relaylab.support.source import SourceName, Span
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
