"""The same operators give the same loops: nothing follows from where objects happen to lie in memory."""

import pytest

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.ir import OPERATORS
from relaylab.loop.builder import OutSpec
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder

WINOGRAD = "nn.contrib_conv2d_winograd_without_weight_transform"


def text(shapes, out, definition, attrs) -> str:
    group = ProgramBuilder("op")
    inputs = [group.read(f"in{k}", BufferLayout.dense(s, "float32")) for k, s in enumerate(shapes)]
    value = group.compute(OutSpec(out, "float32", 0), definition(**attrs).lower, inputs)
    group.write("out0", value, BufferLayout.dense(out, "float32"))
    return str(group.program())


@pytest.mark.parametrize("number, out", [(0, (1, 2, 5, 6)), (1, (2, 7, 5, 3)), (2, (1, 2, 6, 5))])
def test_loops_do_not_depend_on_addresses(number, out):
    definition = OPERATORS[WINOGRAD].definition
    case = definition.samples()[number]
    shapes = [t.concrete_shape for t in case.args]
    kept: list[list[object]] = []
    first = text(shapes, out, definition, case.attrs)
    for k in range(8):
        kept.append([object() for _ in range(97 * k)])  # what follows lies elsewhere
        assert text(shapes, out, definition, case.attrs) == first
