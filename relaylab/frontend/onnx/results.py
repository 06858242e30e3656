"""What converters give back: outputs as a list, errors as errors about the node."""

from __future__ import annotations

from typing import Any

from relaylab.frontend.onnx.node import OnnxNode
from relaylab.ir.expr import TupleWrapper
from relaylab.support.errors import RelayError, RelayValueError


def outputs_of(result: object) -> list[Any]:
    """What a converter returned, as a list of expressions (None: an output that it cannot give)."""
    if isinstance(result, TupleWrapper):
        return list(result)
    if isinstance(result, (list, tuple)):
        return [r for x in result for r in (outputs_of(x) if isinstance(x, TupleWrapper) else [x])]
    return [result]


def as_relay_error(error: Exception, node: OnnxNode) -> RelayError:
    """An error in a converter as one about the node: what its operands cannot do, in the user's words."""
    if isinstance(error, RelayError):
        place = f"  --> {node.place}"
        if node.place in error.place:
            return error
        if "(node " in error.place:  # of a node inside this one
            error.place += f"\n{place}"
            return error
        return RelayValueError(
            error.message if error.message.startswith(node.op_type) else f"{node.op_type}: {error.message}",
            code=error.code,
            place=place,
            help=error.help,
        )
    return node.error(
        f"the node cannot be read: {error}", code="import.malformed", help=f"raised as {type(error).__name__}"
    )
