# Matching and rewriting with dataflow patterns.
import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, rewrite, wildcard


class BatchnormCallback(DFPatternCallback):
    def __init__(self, require_type=False):
        super().__init__(require_type)
        self.x = wildcard()
        self.var = wildcard()
        self.mean = wildcard()
        self.beta = wildcard()
        self.gamma = wildcard()
        self.eps = wildcard()
        self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

    def callback(self, pre, post, node_map):
        x = node_map[self.x][0]
        var = node_map[self.var][0]
        mean = node_map[self.mean][0]
        beta = node_map[self.beta][0]
        gamma = node_map[self.gamma][0]
        eps = node_map[self.eps][0]
        return relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]


x = relay.var("x", shape=(1, 4, 3, 3))
var, mean, beta, gamma = (relay.var(n, shape=(4, 1, 1)) for n in ("var", "mean", "beta", "gamma"))
BN = gamma * (x - mean) / relay.op.sqrt(var + relay.const(1e-5)) + beta
out = rewrite(BatchnormCallback(), BN)
assert tvm.ir.structural_equal(out, relay.op.nn.batch_norm(x, gamma, beta, mean, var, epsilon=1e-5)[0])

conv = is_op("nn.conv2d")(wildcard(), wildcard())
pattern = is_op("nn.relu")(conv.optional(lambda c: is_op("nn.bias_add")(c, wildcard())))
data, w, b = relay.var("data", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)), relay.var("b", shape=(4,))
expr = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(data, w), b))
assert pattern.match(expr)
assert not pattern.match(relay.nn.conv2d(data, w))
part = pattern.partition(expr)
assert isinstance(part, relay.Call) and isinstance(part.op, relay.Function)
assert part.op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_nn.relu_"
assert is_constant().match(relay.const(1))
print("ok")
