# A network made by hand with untyped variables, built from a bare Function.
import warnings

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.testing import init

data = relay.var("data", relay.TensorType((1, 3, 32, 32), "float32"))
weight = relay.var("weight")
gamma, beta = relay.var("bn_gamma"), relay.var("bn_beta")
mean, var = relay.var("bn_mean"), relay.var("bn_var")
simple_net = relay.nn.conv2d(data=data, weight=weight, kernel_size=(3, 3), channels=8, padding=(1, 1))
simple_net = relay.nn.batch_norm(simple_net, gamma, beta, mean, var)[0]
simple_net = relay.nn.relu(simple_net)
simple_net = relay.Function(relay.analysis.free_vars(simple_net), simple_net)
net, params = init.create_workload(simple_net)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(simple_net, target="llvm", params=params)
assert any(issubclass(w.category, DeprecationWarning) for w in caught), caught

x = np.random.uniform(-1, 1, (1, 3, 32, 32)).astype("float32")
m = graph_executor.GraphModule(lib["default"](tvm.cpu()))
m.set_input("data", x)
m.run()
out = m.get_output(0).numpy()

expected = relay.create_executor("debug", mod=net).evaluate()(x, **params).numpy()
np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    graph, lib2, params2 = relay.build(net, target="llvm", params=params)
m = graph_executor.create(graph, lib2, tvm.cpu())
m.set_input(**params2)
m.set_input("data", tvm.nd.array(x))
m.run()
np.testing.assert_allclose(m.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)
print("ok")
