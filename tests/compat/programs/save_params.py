# Parameters as bytes; a module from a library and its parameters; the debug executor's numbers.
import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import testing

mod, params = testing.mlp.get_workload(1)
blob = relay.save_param_dict(params)
back = relay.load_param_dict(blob)
assert set(back) == set(params)
for name in params:
    np.testing.assert_equal(back[name].numpy(), params[name].numpy())

with tvm.transform.PassContext(opt_level=2):
    lib = relay.build(mod, "llvm")  # parameters stay inputs
m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
m.load_params(blob)
x = np.random.RandomState(0).uniform(size=(1, 1, 28, 28)).astype("float32")
m.run(data=x)
a = m.get_output(0).numpy()
with tvm.transform.PassContext(opt_level=0):
    lib = relay.build(mod, "llvm", params=params)
m = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
m.run(data=x)
tvm.testing.assert_allclose(m.get_output(0).numpy(), a, rtol=1e-4, atol=1e-6)
assert m.get_num_outputs() == 1
print("ok")
