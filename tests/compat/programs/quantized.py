# the quantized dialect, lowered and run
import numpy as np, tvm
from tvm import relay
x = relay.var("x", shape=(1,4,8,8), dtype="uint8"); w = relay.var("w", shape=(4,4,3,3), dtype="int8")
c = relay.qnn.op.conv2d(x, w, relay.const(128,"int32"), relay.const(0,"int32"), relay.const(0.1,"float32"), relay.const(0.05,"float32"), kernel_size=(3,3), channels=4)
r = relay.qnn.op.requantize(c, relay.const(0.005,"float32"), relay.const(0,"int32"), relay.const(0.2,"float32"), relay.const(10,"int32"), out_dtype="int8")
d = relay.qnn.op.dequantize(r, relay.const(0.2,"float32"), relay.const(10,"int32"))
mod = tvm.IRModule.from_expr(relay.Function([x, w], d))
mod = relay.transform.InferType()(mod); print(mod)
print(relay.qnn.transform.CanonicalizeOps()(mod))
X = np.random.randint(0,255,(1,4,8,8)).astype("uint8"); W = np.random.randint(-127,127,(4,4,3,3)).astype("int8")
a = relay.create_executor("graph", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(X, W).numpy()
b = relay.create_executor("debug", mod=mod).evaluate()(X, W).numpy()
np.testing.assert_allclose(a, b, atol=0.21)
with relay.transform.PassContext(opt_level=3, disabled_pass=["qnn.Legalize"]): relay.build(mod, "llvm")
print("ok")
