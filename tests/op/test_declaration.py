"""Operators that a user declares: in a file or a cell, with text or real annotations, once or again."""

from __future__ import annotations

import sys
import types

import pytest

from relaylab import relay
from relaylab.ir import OPERATORS
from relaylab.op.base import Operator, op
from relaylab.support.errors import RelayTypeError, RelayValueError

FUTURE = "from __future__ import annotations\n"
CELL = '''
import numpy as np
from relaylab.op.base import Dtype, Elementwise, Ints, op

@op("test.declared", attrs_key="Declared")
class declared(Elementwise):
    """Clips smoothly at a limit, with some more attributes."""

    limit: float = 1.0
    steps: int | None = None
    exact: bool = False
    sizes: Ints = (1, 2)
    out_dtype: Dtype = None

    def reference(self, data):
        return np.tanh(data / self.limit) * self.limit

    def scalar(self, b, x):
        return b.tanh(x / self.limit) * self.limit
'''
x = relay.var("x", shape=(2, 3))


def run(cell: str, module: str = "cell_of_a_test"):
    """What a cell defines, run as a module of that name (`exec` does not pass this file's own future imports on)."""
    sys.modules[module] = found = types.ModuleType(module)
    exec(compile(cell, "<cell>", "exec", dont_inherit=True), found.__dict__)
    return found


@pytest.fixture(autouse=True)
def forget():
    yield
    OPERATORS.remove("test.declared")
    sys.modules.pop("cell_of_a_test", None)


@pytest.mark.parametrize("head", ["", FUTURE], ids=["objects", "text"])
@pytest.mark.parametrize(
    "wrong", [{"limit": "abc"}, {"steps": 2.7}, {"exact": "no"}, {"sizes": (1, 2.5)}, {"sizes": "ab"}, {"steps": True}]
)
def test_a_cell_without_the_future_import_is_checked_like_a_file_with_it(head, wrong):
    declared = run(head + CELL).declared
    with pytest.raises(RelayTypeError) as caught:
        declared(x, **wrong)
    assert caught.value.code == "attrs.bad-value" and caught.value.help.startswith("it is ")


@pytest.mark.parametrize("head", ["", FUTURE], ids=["objects", "text"])
def test_what_fits_is_converted_alike(head):
    attrs = run(head + CELL).declared(x, limit=2, sizes=[3], out_dtype="float", exact=1).attrs
    assert dict(attrs.items()) == {"limit": 2.0, "steps": None, "exact": True, "sizes": (3,), "out_dtype": "float32"}
    assert [f.kind for f in attrs.list_field_info()] == ["float", "int | None", "bool", "Ints", "Dtype"]
    assert all(f.type_info == f.kind and f.description == f.doc for f in attrs.list_field_info())
    given = OPERATORS["add"].arguments
    assert given == ("lhs", "rhs") and given[0].name == "lhs" and given[0].description == "the left operand"


@pytest.mark.parametrize("annotation", ["list", "object", "'Any'", "int | str", "dict[str, int]"])
def test_an_annotation_that_says_nothing_is_refused(annotation):
    with pytest.raises(RelayTypeError) as caught:
        run(
            CELL.replace("limit: float", f"limit: {annotation}").replace(
                "import numpy", "from typing import Any; import numpy"
            )
        )
    assert caught.value.code == "attrs.annotation"
    assert "Ints" in caught.value.help and "`limit`" in caught.value.message


def test_an_annotation_that_is_not_defined_is_named():
    with pytest.raises(RelayTypeError, match="Whatever") as caught:
        run(FUTURE + CELL.replace("limit: float", "limit: Whatever"))
    assert caught.value.code == "attrs.annotation"


def test_a_default_that_does_not_fit_is_refused_where_it_is_declared():
    with pytest.raises(RelayTypeError, match="`limit`"):
        run(CELL.replace("limit: float = 1.0", 'limit: float = "wide"'))


def test_a_cell_that_is_run_again_replaces_its_operator():
    first = run(CELL).declared
    old = first(x, limit=2.0)
    second = run(CELL.replace("self.limit", "3 * self.limit")).declared
    assert OPERATORS["test.declared"] is second.op is not first.op
    assert OPERATORS["test.declared"].definition is second.definition
    infer = relay.transform.InferType()
    for call in (old, second(x, limit=2.0), first(x, limit=1.0)):
        mod = infer(relay.IRModule.from_expr(call))
        assert "test.declared(%x" in mod.astext()
        relay.build(mod, target="llvm")


def test_another_authors_operator_of_that_name_is_not_replaced_unless_it_is_said():
    run(CELL)
    with pytest.raises(RelayValueError) as caught:
        run(CELL, "cell_of_another_test")
    assert caught.value.code == "operator.duplicate" and "cell_of_a_test.declared" in caught.value.help
    mine = run(CELL.replace('"Declared"', '"Declared", replace=True'), "cell_of_another_test").declared
    assert OPERATORS["test.declared"] is mine.op


def test_a_built_in_operator_is_not_replaced_by_accident():
    with pytest.raises(RelayValueError, match="`nn.relu` exists already"):
        op("nn.relu")(type("relu", (Operator,), {}))
    assert OPERATORS["nn.relu"] is relay.nn.relu.op
