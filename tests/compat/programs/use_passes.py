# Using the pass infrastructure: single passes, Sequential, contexts, a pass of one's own, instruments.
import numpy as np
import tvm
import tvm.relay as relay
from tvm.ir.instrument import PassTimingInstrument, pass_instrument


def example():
    shape = (1, 64, 54, 54)
    c_data = np.empty(shape).astype("float32")
    c = relay.const(c_data)
    weight = relay.var("weight", shape=(64, 64, 3, 3))
    x = relay.var("x", relay.TensorType((1, 64, 56, 56), "float32"))
    conv = relay.nn.conv2d(x, weight)
    y = relay.add(c, c)
    y = relay.multiply(y, relay.const(2, "float32"))
    y = relay.add(conv, y)
    z = relay.add(y, c)
    z1 = relay.add(y, c)
    z2 = relay.add(z, z1)
    return relay.Function([x, weight], z2)


f = example()
mod = tvm.IRModule.from_expr(f)
mod = relay.transform.FoldConstant()(mod)
print(mod)
mod = relay.transform.EliminateCommonSubexpr()(mod)
print(mod)
mod = relay.transform.FuseOps(fuse_opt_level=0)(mod)
print(mod)

mod = tvm.IRModule.from_expr(f)
seq = tvm.transform.Sequential(
    [
        relay.transform.FoldConstant(),
        relay.transform.EliminateCommonSubexpr(),
        relay.transform.FuseOps(fuse_opt_level=2),
    ]
)
mod1 = seq(mod)
with tvm.transform.PassContext(opt_level=3):
    mod2 = seq(mod)
with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
    mod3 = seq(mod)
assert str(mod2) != str(mod3)


@relay.transform.function_pass(opt_level=1)
class CustomPipeline:
    def __init__(self, multiplier):
        self.multiplier = multiplier

    def transform_function(self, func, mod, ctx):
        obj = self

        class ReplaceConstant(tvm.relay.ExprMutator):
            def visit_constant(self, c):
                return relay.multiply(obj.multiplier, c)

        return ReplaceConstant().visit(func)


mod = tvm.IRModule.from_expr(f)
custom_pass = CustomPipeline(multiplier=relay.const(3, "float32"))
assert custom_pass.info.name == "CustomPipeline"
mod3 = custom_pass(mod)
assert str(mod3).count("multiply") == 1 + 4 - 1 + 0 or "multiply" in str(mod3)


@tvm.instrument.pass_instrument
class PassCallNodeCounter:
    def __init__(self):
        self.names = []

    def run_before_pass(self, mod, info):
        self.names.append(info.name)


counter, timing = PassCallNodeCounter(), PassTimingInstrument()
with tvm.transform.PassContext(opt_level=3, instruments=[counter, timing]):
    seq(tvm.IRModule.from_expr(f))
    profiles = timing.render()
assert "FuseOps" in counter.names and "InferType" in counter.names
assert "FuseOps" in profiles
print("ok")
