# Draw ResNet-18 with its parameters to a PDF.
import os

import tvm
from tvm import relay
from tvm.contrib import relay_viz
from tvm.relay import testing

mod, param = testing.resnet.get_workload(num_layers=18)
viz = relay_viz.RelayVisualizer(mod, relay_param=param, plotter=relay_viz.DotPlotter(), parser=relay_viz.DotVizParser())
viz.render("1")
assert open("1.pdf", "rb").read(5) == b"%PDF-"
assert os.path.getsize("1.pdf") > 10_000
assert isinstance(mod, tvm.IRModule) and isinstance(mod["main"], relay.Function)
print("ok")
