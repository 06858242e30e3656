# Names that came with the releases after 0.10, and others that programs of tests lean on.
import pathlib
import warnings

import numpy as np
import tvm
from tvm import relay
from tvm._ffi.base import TVMError
from tvm._ffi.runtime_ctypes import DataType
from tvm.contrib.pickle_memoize import memoize
from tvm.ir.instrument import DumpIR, PassPrintingInstrument

x = relay.var("x", shape=(2, 3))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x + relay.const(1.0))))
assert relay.parser.parse(relay.astext(mod)) is not None and relay.pretty_print(mod) == str(mod)
assert tvm.runtime.DataType("int8x4").lanes == DataType("int8x4").lanes == 4
for kind in (TVMError, tvm.error.OpError, tvm.error.OpAttributeRequired, tvm.error.OpAttributeUnImplemented):
    try:
        raise kind("no")
    except tvm.error.TVMError:
        pass

with tvm.transform.PassContext(instruments=[DumpIR(pathlib.Path("steps"), refresh=True)]):
    relay.transform.FoldConstant()(relay.transform.InferType()(mod))
assert "InferType" in sorted(pathlib.Path("steps").iterdir())[0].name
assert relay.parse(sorted(pathlib.Path("steps").iterdir())[-1].read_text()) is not None
with tvm.transform.PassContext(instruments=[PassPrintingInstrument(["InferType"], ["FoldConstant"])]):
    relay.transform.FoldConstant()(mod)

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    options = {"tir.disable_vectorize": True, "relay.ext.tensorrt.options": {}, "relay.frontend.fill_span": True}
    with tvm.transform.PassContext(opt_level=3, config=options):
        lib = relay.build(mod, target="llvm")
assert sum("does nothing here" in str(w.message) for w in told) == 2, [str(w.message) for w in told]
try:
    tvm.transform.PassContext(config={"relay.disable_vectorize": True})
except AttributeError as error:
    assert "Invalid config option" in str(error)

data, updates = np.ones((3, 4), "float32"), np.array([[2, 3, 4, 5], [6, 7, 8, 9]], "float32")
places = np.array([[0, 1, 2, 0], [0, 2, 1, 2]])
for reduction, combine in {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "update": None}.items():
    y = relay.scatter_elements(relay.const(data), relay.const(places), relay.const(updates), 0, reduction=reduction)
    want = data.copy()
    for row, column in np.ndindex(2, 4):
        to = (places[row, column], column)
        want[to] = combine(want[to], updates[row, column]) if combine else updates[row, column]
    np.testing.assert_array_equal(relay.create_executor("graph").evaluate(y).numpy(), want)
try:
    relay.qnn.op.softmax
except AttributeError as error:
    assert "after TVM 0.10" in str(error)

calls = []


@memoize("reference")
def reference(n):
    calls.append(n)
    return np.arange(n)


assert reference(3) is reference(3) and len(reference(4)) == 4 and calls == [3, 4]

for use in (lambda: tvm.build(mod), lambda: tvm.target.datatype.register("posit8", 150), lambda: tvm.arith.Analyzer()):
    try:
        use()
        raise SystemExit("this is not kept")
    except AttributeError as error:
        assert "help:" in str(error), error
print("ok")
