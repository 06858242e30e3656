# ConvertLayout in a Sequential, the virtual machine over control flow, debug executor, devices, errors.
import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor
from tvm.runtime.vm import VirtualMachine

x = relay.var("x", shape=(1, 8, 12, 12))
w1, w2 = relay.var("w1", shape=(8, 8, 3, 3)), relay.var("w2", shape=(4, 8, 1, 1))
y = relay.nn.conv2d(x, w1, channels=8, kernel_size=(3, 3), padding=(1, 1))
y = relay.nn.conv2d(relay.nn.relu(y), w2, channels=4, kernel_size=(1, 1))
mod = tvm.IRModule.from_expr(relay.Function([x, w1, w2], relay.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))))
seq = tvm.transform.Sequential(
    [relay.transform.RemoveUnusedFunctions(), relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]})]
)
with tvm.transform.PassContext(opt_level=3):
    nhwc = seq(mod)
assert 'data_layout="NHWC"' in str(nhwc)

values = [np.random.RandomState(i).uniform(-1, 1, p.type_annotation.concrete_shape).astype("float32") for i, p in enumerate(mod["main"].params)]
want = relay.create_executor("debug", mod=mod).evaluate()(*values).numpy()
for m in (mod, nhwc):
    for kind in ("graph", "vm", "debug"):
        got = relay.create_executor(kind, mod=m, device=tvm.cpu(0), target="llvm").evaluate()(*values)
        tvm.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)

with tvm.transform.PassContext(opt_level=3):
    exe = relay.vm.compile(mod, target="llvm")
vm = VirtualMachine(exe, tvm.cpu())
tvm.testing.assert_allclose(vm.invoke("main", *values).numpy(), want, rtol=1e-4, atol=1e-5)

i, acc = relay.var("i", "int32"), relay.var("acc", shape=(3,))
loop = relay.loops.while_loop(lambda i, acc: relay.less(i, relay.const(5)), [i, acc], lambda i, acc: [i + relay.const(1), acc + acc])
start = relay.var("start", shape=(3,))
main = relay.Function([start], relay.TupleGetItem(loop(relay.const(0), start), 1))
lm = tvm.IRModule.from_expr(main)
for kind in ("vm", "debug"):
    out = relay.create_executor(kind, mod=lm).evaluate()(np.ones(3, "float32"))
    tvm.testing.assert_allclose(out.numpy(), np.full(3, 32.0))

d = relay.var("d", shape=(relay.Any(), 4))
dm = tvm.IRModule.from_expr(relay.Function([d], relay.nn.softmax(d * relay.const(2.0))))
out = relay.create_executor("vm", mod=dm).evaluate()(np.zeros((3, 4), "float32"))
tvm.testing.assert_allclose(out.numpy(), np.full((3, 4), 0.25))

lib = relay.build(mod, target="llvm")
g = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
try:
    g.set_input("nope", values[0])
    raise SystemExit("should have raised")
except (RuntimeError, tvm.TVMError) as error:
    assert "nope" in str(error)
shape_dict, dtype_dict = g.get_input_info()
assert tuple(shape_dict["x"]) == (1, 8, 12, 12) and dtype_dict["x"] == "float32"
print("ok")
