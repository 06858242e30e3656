# a graph convolutional network: sparse products over constants
import numpy as np
from tvm import relay
from tvm.relay.op.nn import sparse_dense
import tvm
from tvm.contrib import graph_executor
from tvm.ir import IRModule
def GraphConv(layer_name, input_dim, output_dim, adj, input, norm=None, bias=True, activation=None):
    if norm is not None:
        input = relay.multiply(input, norm)
    weight = relay.var(layer_name + ".weight", shape=(input_dim, output_dim))
    weight_t = relay.transpose(weight)
    dense = relay.nn.dense(weight_t, input)
    output = relay.nn.sparse_dense(dense, adj)
    output_t = relay.transpose(output)
    if norm is not None:
        output_t = relay.multiply(output_t, norm)
    if bias is True:
        _bias = relay.var(layer_name + ".bias", shape=(output_dim, 1))
        output_t = relay.nn.bias_add(output_t, _bias, axis=-1)
    if activation is not None:
        output_t = activation(output_t)
    return output_t
n, fdim, hid, cls = 12, 5, 4, 3
rng = np.random.RandomState(0)
A = (rng.rand(n, n) < .3).astype("float32"); A = np.maximum(A, A.T); np.fill_diagonal(A, 1)
indptr = np.concatenate([[0], np.cumsum((A != 0).sum(1))]).astype("int32")
indices = np.concatenate([np.nonzero(r)[0] for r in A]).astype("int32")
datav = np.concatenate([r[r != 0] for r in A]).astype("float32")
degs = A.sum(0).astype("float32")
norm = np.power(degs, -0.5)
params = {"infeats": rng.rand(n, fdim).astype("float32"), "g_data": datav, "indices": indices, "indptr": indptr,
          "norm": norm.reshape(-1, 1)}
infeats = relay.var("infeats", shape=(n, fdim))
norm = relay.Constant(tvm.nd.array(params["norm"]))
g_data = relay.Constant(tvm.nd.array(params["g_data"]))
indices = relay.Constant(tvm.nd.array(params["indices"]))
indptr = relay.Constant(tvm.nd.array(params["indptr"]))
from collections import namedtuple
Adjacency = namedtuple("Adjacency", ["data", "indices", "indptr"])
adj = Adjacency(g_data, indices, indptr)
layers = []
layers.append(GraphConv("layers.0", fdim, hid, adj, infeats, norm, activation=relay.nn.relu, bias=False))
layers.append(GraphConv("layers.1", hid, cls, adj, layers[-1], norm, activation=None, bias=False))
output = layers[-1]
func = relay.Function(relay.analysis.free_vars(output), output)
mod = IRModule()
mod["main"] = func
model_params = {"layers.0.weight": rng.rand(fdim, hid).astype("float32"), "layers.1.weight": rng.rand(hid, cls).astype("float32")}
with tvm.transform.PassContext(opt_level=0):
    lib = relay.build(mod, "llvm", params=model_params)
dev = tvm.device("llvm", 0)
m = graph_executor.GraphModule(lib["default"](dev))
m.set_input("infeats", tvm.nd.array(params["infeats"]))
m.run()
got = m.get_output(0).numpy()
nn_ = params["norm"]
h = params["infeats"] * nn_ @ model_params["layers.0.weight"]
h = np.maximum(A @ h * nn_, 0)
h2 = A @ (h * nn_ @ model_params["layers.1.weight"]) * nn_
np.testing.assert_allclose(got, h2, rtol=1e-4)
tvm.testing.assert_allclose(got, h2, atol=1e-3)
print("ok")
