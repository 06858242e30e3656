# What tutorials do with programs: passes and layouts of one's own, patterns, other compilers' parts, training, loops.
import numpy as np
import tvm
from tvm import relay
from tvm.relay import ExprMutator, ExprVisitor
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from tvm.relay.loops import while_loop
from tvm.relay.op import op as _op
from tvm.relay.op import register_mixed_precision_conversion
from tvm.relay.op.contrib.register import get_pattern_table, register_pattern_table
from tvm.relay.scope_builder import ScopeBuilder
from tvm.relay.testing import run_infer_type
from tvm.relay.transform import ToMixedPrecision, gradient

resnet, params = relay.testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32), num_classes=10)


# a pass with a parameter, in a sequence with others
@relay.transform.function_pass(opt_level=1)
class Multiplied:
    def __init__(self, multiplier):
        self.multiplier = multiplier

    def transform_function(self, func, mod, ctx):
        multiplier = self.multiplier

        class Replace(ExprMutator):
            def visit_constant(self, const):
                return relay.multiply(multiplier, const)

        return Replace().visit(func)


@tvm.transform.module_pass(opt_level=2, name="add_one")
def add_one(mod, ctx):
    mod["extra"] = relay.Function([], relay.const(1.0))
    return mod


class Calls(ExprVisitor):
    def __init__(self):
        super().__init__()
        self.count = 0

    def visit_call(self, call):
        self.count += 1
        super().visit_call(call)


x = relay.var("x", shape=(1, 64))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(np.ones((1, 64), "float32")))))
mine = Multiplied(relay.const(3.0))
assert mine.info.name == "Multiplied" and mine.info.opt_level == 1
with tvm.transform.PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]), tvm.target.Target("llvm"):
    passes = [mine, relay.transform.FoldConstant(), tvm.transform.PrintIR("after"), add_one]
    mod = tvm.transform.Sequential([*passes, relay.transform.EliminateCommonSubexpr()])(mod)
calls = Calls()
calls.visit(mod["main"])
assert calls.count == 1 and len(mod.functions) == 2
assert (relay.create_executor("graph", mod).evaluate()(np.zeros((1, 64), "float32")).numpy() == 3).all()


# a layout that the program asks for
@_op.register_convert_op_layout("nn.conv2d", level=11)
def convert(attrs, inputs, tinfos, desired):
    new = dict(attrs)
    new["data_layout"], new["kernel_layout"] = str(desired[0]), "HWIO"
    return relay.nn.conv2d(*inputs, **new)


layouts = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"], "qnn.conv2d": ["NHWC", "default"]})
with tvm.transform.PassContext(opt_level=3):
    turned = tvm.transform.Sequential([relay.transform.RemoveUnusedFunctions(), layouts])(resnet)
assert "NHWC" in turned.astext(show_meta_data=False)


# a batch normalization that is written out, found by a pattern
class FindBatchNorm(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x, self.var, self.mean, self.beta, self.gamma, self.eps = (wildcard() for _ in range(6))
        under = is_op("sqrt")(self.var + self.eps)
        self.pattern = self.gamma * (self.x - self.mean) / under + self.beta

    def callback(self, pre, post, node_map):
        parts = (self.x, self.gamma, self.beta, self.mean, self.var)
        epsilon = node_map[self.eps][0].data.numpy().item()
        return relay.op.nn.batch_norm(*(node_map[p][0] for p in parts), epsilon=epsilon)[0]


v, mean, beta, gamma = (relay.var(name) for name in ("var", "mean", "beta", "gamma"))
written = gamma * (x - mean) / relay.op.sqrt(v + relay.const(1e-5)) + beta
norm = relay.op.nn.batch_norm(x, gamma, beta, mean, v, epsilon=1e-5)[0]
assert tvm.ir.structural_equal(rewrite(FindBatchNorm(), written), norm)


# a part for another compiler
@tvm.ir.register_op_attr("nn.max_pool2d", "target.elsewhere")
def pools(expr):
    return True


@register_pattern_table("elsewhere")
def table():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    return [("elsewhere.conv_bias_relu", is_op("nn.relu")(is_op("add")(conv, wildcard())))]


image, kernel, bias = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3)), relay.var("b", shape=(4, 1, 1))
conv = relay.nn.relu(relay.add(relay.nn.conv2d(image, kernel, padding=(1, 1)), bias))
taken = relay.nn.max_pool2d(conv, (2, 2), strides=(2, 2))
network = tvm.IRModule.from_expr(relay.Function([image, kernel, bias], relay.tanh(taken)))
steps = [relay.transform.MergeComposite(get_pattern_table("elsewhere")), relay.transform.AnnotateTarget(["elsewhere"])]
steps += [relay.transform.MergeCompilerRegions(), relay.transform.PartitionGraph()]
with tvm.transform.PassContext(opt_level=3):
    parted = tvm.transform.Sequential([relay.transform.InferType(), *steps])(network)
outside = [f for gv, f in parted.functions.items() if gv.name_hint != "main"]
assert [f.attrs["Compiler"] for f in outside] == ["elsewhere"] and "elsewhere.conv_bias_relu" in str(outside[0])


# half precision, with a word on one operator
@register_mixed_precision_conversion("nn.relu", level=11)
def never(call, dtype):
    return [2, dtype, dtype]


with tvm.transform.PassContext(config={"relay.ToMixedPrecision.keep_orig_output_dtype": True}):
    half = ToMixedPrecision("float16")(relay.transform.InferType()(resnet))
assert relay.transform.InferType()(half)["main"].ret_type.dtype == "float32" and "float16" in str(half)

# training: both forms of the gradient agree, and a step of it makes the loss smaller
inputs = [relay.var("a", shape=(8, 4)), relay.var("w", shape=(2, 4)), relay.var("t", shape=(8, 2))]
loss = relay.nn.cross_entropy(relay.nn.softmax(relay.nn.dense(*inputs[:2])), inputs[2])
func = run_infer_type(relay.Function(inputs, loss))
rng = np.random.default_rng(0)
a, w, t = rng.random((8, 4), "float32"), np.zeros((2, 4), "float32"), np.eye(2, dtype="float32")[rng.integers(0, 2, 8)]
higher = relay.create_executor("debug", device=tvm.cpu(0), target="llvm").evaluate(run_infer_type(gradient(func)))
first = relay.create_executor("graph").evaluate(run_infer_type(gradient(func, mode="first_order")))
before, (_, by_w, _) = higher(a, w, t)
np.testing.assert_allclose(first(a, w, t)[1][1].numpy(), by_w.numpy(), rtol=1e-5)
assert higher(a, w - 0.1 * by_w.numpy(), t)[0].numpy() < before.numpy()

# a loop over a tensor that grows, and a recursion of a scope builder
i, grown = relay.var("i", shape=(), dtype="int32"), relay.var("grown", shape=(relay.Any(), 3))
row = relay.const(np.ones((1, 3), "float32"))
loop = while_loop(
    lambda i, grown: relay.less(i, relay.const(5, "int32")),
    [i, grown],
    lambda i, grown: [i + relay.const(1, "int32"), relay.concatenate([grown, row], 0)],
)
start = relay.var("start", shape=(1, 3))
main = relay.Function([start], relay.TupleGetItem(loop(relay.const(0, "int32"), start), 1))
for kind in ("debug", "vm"):
    ran = relay.create_executor(kind, mod=tvm.IRModule.from_expr(main), device=tvm.cpu(), target="llvm").evaluate()
    assert ran(np.zeros((1, 3), "float32")).numpy().shape == (6, 3)
n, total, self_ = relay.var("n", shape=(), dtype="int32"), relay.var("s", shape=(), dtype="int32"), relay.GlobalVar("sum_up")
scope = ScopeBuilder()
with scope.if_scope(relay.equal(n, relay.const(0, "int32"))):
    scope.ret(total)
with scope.else_scope():
    one = scope.let("one", relay.const(1, "int32"))
    scope.ret(relay.Call(self_, [relay.subtract(n, one), relay.add(total, n)]))
summing = tvm.IRModule({self_: relay.Function([n, total], scope.get(), relay.scalar_type("int32"))})
summing["main"] = relay.Function([], relay.Call(self_, [relay.const(10, "int32"), relay.const(0, "int32")]))
assert int(relay.create_executor("vm", mod=summing).evaluate()().numpy()) == 55
print("ok")
