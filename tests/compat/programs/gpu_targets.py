# Targets and devices that are not here are read as this CPU, with one warning.
import warnings

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

x = relay.var("x", shape=(2, 3))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
value = np.array([[-1, 2, -3], [4, -5, 6]], "float32")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for target, dev in [
        (tvm.target.cuda(), tvm.cuda(0)),
        (tvm.target.Target("cuda", host="llvm"), tvm.device("cuda", 0)),
        ("cuda -arch=sm_75", tvm.gpu(0)),
        ("opencl", tvm.cl(0)),
        (tvm.target.rocm(), tvm.rocm()),
        ("metal", tvm.metal(0)),
        ("vulkan", tvm.vulkan(0)),
        (tvm.target.Target({"kind": "cuda"}), tvm.cuda()),
        (tvm.target.arm_cpu("rasp3b"), tvm.cpu(0)),
        ("llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon", tvm.cpu(0)),
        ("llvm -mcpu=cortex-a72", tvm.cpu(0)),
        ({"cpu": "llvm", "cuda": "cuda"}, tvm.cuda(0)),
        ("llvm --executor=aot -libs=mkl", tvm.cpu(1)),
    ]:
        lib = relay.build(mod, target=target)
        net = graph_executor.GraphModule(lib["default"](dev))
        net.set_input("x", tvm.nd.array(value, dev))
        net.run()
        np.testing.assert_array_equal(net.get_output(0).numpy(), np.maximum(value, 0))
told = [str(w.message) for w in caught if "read as this CPU" in str(w.message)]
assert len(told) == 1 and "`cuda`" in told[0], told
assert not tvm.cuda(0).exist and tvm.target.cuda().kind.name == "cuda" and str(tvm.target.cuda()) == "cuda"
with tvm.target.Target("cuda") as current:
    assert tvm.target.Target.current() is current and "gpu" in current.keys
run = relay.create_executor("vm", mod, device=tvm.cuda(0), target="cuda").evaluate()
np.testing.assert_array_equal(run(value).numpy(), np.maximum(value, 0))
print("ok")
