"""Orders: the largest, the smallest, all of them."""

from __future__ import annotations

from relaylab.frontend.onnx.export.rules.base import attributes, dtype_of, fields_of, operator, rule, shape_of, type_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call


def _ordered(w: Writer, call: Call, x: str, count: int) -> list[str]:
    """Values and places of the first `count` along the axis of a call; equal ones keep their order."""
    a = attributes(call)
    settings = {"axis": int(a["axis"]), "largest": int(not a["is_ascend"]), "sorted": 1}
    return w.several("TopK", [x, w.numbers([count])], 2, **settings)


@rule("sort", "argsort")
def _sort(w: Writer, call: Call, ins: list[str]) -> Value:
    axis = int(attributes(call)["axis"])
    values, places = _ordered(w, call, ins[0], shape_of(call.args[0])[axis])
    return values if operator(call) == "sort" else w.cast(places, dtype_of(call))


@rule("topk")
def _topk(w: Writer, call: Call, ins: list[str]) -> Value:
    a, kind = attributes(call), str(attributes(call)["ret_type"])
    found = fields_of(call) if kind == "both" else [type_of(call)]
    axis = int(a["axis"])
    count = int(found[0].concrete_shape[axis])
    values, places = _ordered(w, call, ins[0], count)
    if kind == "values":
        return values
    places = w.cast(places, found[-1].dtype)
    return places if kind == "indices" else [values, places]
