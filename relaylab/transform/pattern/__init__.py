"""Dataflow patterns: constructors, matching, rewriting with callbacks, partitioning."""

from relaylab.transform.pattern.callback import DFPatternCallback, rewrite
from relaylab.transform.pattern.match import Match, Matcher, match
from relaylab.transform.pattern.nodes import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wild,
    wildcard,
)
from relaylab.transform.pattern.partition import partition

__all__ = [name for name in dir() if not name.startswith("_")]
