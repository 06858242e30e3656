"""ONNX models whose large weights stay where they lie: onnx parses everything else.

A message of protobuf is fields one after another, each with its number and its length
(protobuf.dev/programming-guides/encoding): the bytes of `raw_data` are found without parsing them, and parsing the
fields before and after them gives the same message without it.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto

LARGE = 1 << 16
"""From how many bytes on weights are not copied."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
"""The numbers of ModelProto.graph, GraphProto.initializer and TensorProto.raw_data in onnx.proto."""

_FIXED = {1: 8, 5: 4}
"""Bytes of values of a fixed length, by the kind of the field."""


def merge_all_but_weights(model: ModelProto, data: memoryview) -> dict[str, memoryview]:
    """Parse an empty `model` without its large weights, and give those by the names of their initializers.

    Raises ValueError, or the error of protobuf, for what has to be parsed as a whole to know what is wrong with it.
    """
    found: list[tuple[TensorProto, memoryview]] = []
    done = 0
    for number, first, begin, end in _fields(data, 0, len(data)):
        if number == _GRAPH:
            model.MergeFromString(bytes(data[done:first]))
            model.graph.SetInParent()  # it may be empty
            found += _merge_graph(model.graph, data, begin, end)
            done = end
    model.MergeFromString(bytes(data[done:]))
    names = Counter(tensor.name for tensor in model.graph.initializer)
    for tensor, weights in found:
        if names[tensor.name] > 1:
            tensor.raw_data = bytes(weights)
    return {tensor.name: weights for tensor, weights in found if names[tensor.name] == 1}


def _merge_graph(graph: GraphProto, data: memoryview, start: int, end: int) -> Iterator[tuple[TensorProto, memoryview]]:
    """Parse a graph from its bytes; initializers that lack their weights, in their order."""
    done = start
    for number, first, begin, stop in _fields(data, start, end):
        raw = _raw_data(data, begin, stop) if number == _INITIALIZER and stop - begin >= LARGE else None
        if raw is not None:
            graph.MergeFromString(bytes(data[done:first]))
            tensor = graph.initializer.add()
            tensor.MergeFromString(b"".join((data[begin : raw[0]], data[raw[2] : stop])))
            yield tensor, data[raw[1] : raw[2]]
            done = stop
    graph.MergeFromString(bytes(data[done:end]))


def _raw_data(data: memoryview, start: int, end: int) -> tuple[int, int, int] | None:
    """Where the one large `raw_data` of a tensor is: its field, its bytes, their end."""
    raw = [places for number, *places in _fields(data, start, end) if number == _RAW_DATA]
    return (raw[0][0], raw[0][1], raw[0][2]) if len(raw) == 1 and raw[0][2] - raw[0][1] >= LARGE else None


def _fields(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: (number, or 0 where the field has no length; where it, its value and the next begin)."""
    while at < end:
        tag, begin = _number(data, at, end)
        kind = tag & 7
        if kind == 2:
            length, begin = _number(data, begin, end)
            stop = begin + length
        else:
            stop = begin + _FIXED[kind] if kind in _FIXED else _number(data, begin, end)[1]
        if stop > end or kind not in (0, 2, *_FIXED):
            raise ValueError("no field of protobuf")
        yield (tag >> 3 if kind == 2 else 0), at, begin, stop
        at = stop


def _number(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and what comes after it."""
    value = 0
    for shift, byte in enumerate(data[at : min(at + 10, end)]):
        value |= (byte & 127) << 7 * shift
        if byte < 128:
            return value, at + shift + 1
    raise ValueError("no number of protobuf")
