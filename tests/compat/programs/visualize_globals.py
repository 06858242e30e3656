# Two functions made by hand that call each other through GlobalVars, drawn.
import tvm
from tvm import relay
from tvm.contrib import relay_viz

shape = (1, 16)
even, odd = relay.GlobalVar("even"), relay.GlobalVar("odd")
ty = relay.TensorType(shape, "float32")


def half(callee, name):
    x = relay.var("x", ty)
    n = relay.var("n", relay.scalar_type("int32"))
    done = relay.equal(n, relay.const(0))
    rest = callee(relay.nn.relu(x), relay.subtract(n, relay.const(1)))
    return relay.Function([x, n], relay.If(done, x, rest), ty)


mod = tvm.IRModule({even: half(odd, "even"), odd: half(even, "odd")})
x, n = relay.var("x", ty), relay.var("n", relay.scalar_type("int32"))
mod["main"] = relay.Function([x, n], even(x, n))
mod = relay.transform.InferType()(mod)
viz = relay_viz.RelayVisualizer(mod, {}, relay_viz.DotPlotter(), relay_viz.DotVizParser())
viz.render("calls")
assert open("calls.pdf", "rb").read(5) == b"%PDF-"

import numpy as np

out = relay.create_executor("debug", mod=mod, device=tvm.cpu(), target="llvm").evaluate()(np.full(shape, -1.0, "float32"), 3)
tvm.testing.assert_allclose(out.numpy(), np.zeros(shape))
print("ok")
