# an attention layer: compiled, checked, run node by node
import numpy as np, tvm
from tvm import relay
B,S,D,H=1,8,16,2
x=relay.var("data",shape=(B,S,D))
def lin(x,n,i,o):
    w=relay.var(n+"_weight",shape=(o,i)); b=relay.var(n+"_bias",shape=(o,))
    y=relay.nn.dense(relay.reshape(x,(-1,i)),w)
    return relay.reshape(relay.nn.bias_add(y,b),(B,S,o))
def heads(t): return relay.reshape(relay.transpose(relay.reshape(t,(B,S,H,D//H)),axes=[0,2,1,3]),(B*H,S,D//H))
q,k,v=[heads(lin(x,n,D,D)) for n in "qkv"]
a=relay.nn.softmax(relay.nn.batch_matmul(q,k)/relay.const(float(np.sqrt(D//H)),"float32"),axis=-1)
o=relay.nn.batch_matmul(a,relay.transpose(v,(0,2,1)))
o=relay.reshape(relay.transpose(relay.reshape(o,(B,H,S,D//H)),(0,2,1,3)),(B,S,D))
o=relay.nn.layer_norm(x+lin(o,"o",D,D),relay.var("gamma",shape=(D,)),relay.var("beta",shape=(D,)))
mod,params=relay.testing.create_workload(relay.Function(relay.analysis.free_vars(o),o))
with tvm.transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 10}):
    lib=relay.build(mod,target="llvm",params=params)
rt=tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
xd=np.random.rand(B,S,D).astype("float32"); rt.set_input("data",xd); rt.run()
ref=relay.create_executor("debug",mod=mod).evaluate()(xd,**params)
np.testing.assert_allclose(ref.numpy(),rt.get_output(0).numpy(),rtol=1e-4,atol=1e-5)

from tvm.contrib.debugger import debug_executor
dm = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
dm.set_input("data", xd); dm.set_input(**lib.get_params()); dm.run()
print(rt.module.time_evaluator("run", tvm.cpu(), number=1, repeat=2)().mean)
from tvm.relay.analysis import get_total_mac_number
print(get_total_mac_number(mod["main"]))
print("ok")
