"""relay.ty: types."""

from relaylab.ir.types import (
    Any,
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
)
from relaylab.support.missing import missing as _missing

__all__ = [
    "Any",
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "RefType",
    "ShapeVar",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeData",
    "TypeKind",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
]

__getattr__ = _missing(__name__, globals())
