# MobileNet: build at level 3, run, export, load, equal outputs.
import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor, utils
from tvm.relay import testing

batch_size = 1
num_class = 10
image_shape = (3, 64, 64)
data_shape = (batch_size,) + image_shape
out_shape = (batch_size, num_class)

mod, params = relay.testing.mobilenet.get_workload(batch_size, num_class, image_shape)
print(mod.astext(show_meta_data=False)[:300])

opt_level = 3
target = tvm.target.Target("llvm")
with tvm.transform.PassContext(opt_level=opt_level):
    lib = relay.build(mod, target, params=params)

dev = tvm.cpu(0)
data = np.random.uniform(-1, 1, size=data_shape).astype("float32")
module = graph_executor.GraphModule(lib["default"](dev))
module.set_input("data", data)
module.run()
out = module.get_output(0, tvm.nd.empty(out_shape)).numpy()
print(out.flatten()[0:10])
print(module.benchmark(dev, number=1, repeat=3))
ftimer = module.module.time_evaluator("run", dev, number=1, repeat=2)
assert np.mean(ftimer().results) > 0

temp = utils.tempdir()
path_lib = temp.relpath("deploy_lib.tar")
lib.export_library(path_lib)
print(temp.listdir())

loaded_lib = tvm.runtime.load_module(path_lib)
input_data = tvm.nd.array(data)
module = graph_executor.GraphModule(loaded_lib["default"](dev))
module.run(data=input_data)
out_deploy = module.get_output(0).numpy()
tvm.testing.assert_allclose(out_deploy, out, atol=1e-5)
print("ok")
