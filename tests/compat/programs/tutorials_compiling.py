# What tutorials do with a compiled program: deploy, measure, look inside, save and load, in the spellings that they use.
import importlib
import os
import timeit

import numpy as np
import tvm
from tvm import autotvm, auto_scheduler, relay
from tvm.autotvm.tuner import XGBTuner
from tvm.contrib import graph_executor, utils
from tvm.contrib.debugger import debug_executor
from tvm.relay.backend import Executor, Runtime
from tvm.relay.frontend.onnx import from_onnx
from tvm.relay.op import dyn
from tvm.relay.op.image.image import resize2d
from tvm.relay.op.random.kernel import threefry_key
from tvm.relay.op.vision.nms import get_valid_counts
from tvm.runtime.executor import AotModule
from tvm.runtime.params import load_param_dict, save_param_dict
from tvm.runtime.vm import VirtualMachine
from tvm.target.compilation_config import make_compilation_config
from tvm.target.target import Target
from tvm.target.virtual_device import VirtualDevice

dev, folder = tvm.cpu(0), utils.tempdir()
mod, params = relay.testing.mlp.get_workload(batch_size=1)
data = np.random.default_rng(0).random((1, 1, 28, 28), "float32")


def result(module):
    module.set_input("data", tvm.nd.array(data))
    module.run()
    return module.get_output(0).numpy()


# compile, run, time: by a timer of Python and by one of the module
target = Target("llvm", host="llvm")
with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target=target, params=params)
module = graph_executor.GraphModule(lib["default"](dev))
want = result(module)
np.testing.assert_array_equal(module.get_output(0, tvm.nd.empty((1, 10))).numpy(), want)
spent = np.array(timeit.Timer(lambda: module.run()).repeat(repeat=2, number=1)) * 1000
timer = module.module.time_evaluator("run", dev, number=1, repeat=3)
assert np.mean(spent) > 0 and len(timer().results) == 3 and module.benchmark(dev, repeat=2, number=1).mean > 0

# autotuning: the tasks of a network, a tuner with its options, the best of what was found, and the same by templates
tasks = autotvm.task.extract_from_program(mod["main"], target=target, params=params)
log = folder.relpath("tuning.json")
runner = autotvm.LocalRunner(number=10, repeat=1, timeout=10, min_repeat_ms=0, enable_cpu_cache_flush=True)
options = autotvm.measure_option(builder=autotvm.LocalBuilder(build_func="default"), runner=runner)
for task in tasks:
    callbacks = [autotvm.callback.progress_bar(20), autotvm.callback.log_to_file(log)]
    XGBTuner(task, loss_type="rank").tune(n_trial=20, early_stopping=100, measure_option=options, callbacks=callbacks)
with autotvm.apply_history_best(log):
    tuned = relay.build(mod, target=target, params=params)
np.testing.assert_array_equal(result(graph_executor.GraphModule(tuned["default"](dev))), want)
tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, target)
tuner = auto_scheduler.TaskScheduler(tasks, weights)
measured = [auto_scheduler.RecordToFile(log)]
tuner.tune(auto_scheduler.TuningOptions(num_measure_trials=20, measure_callbacks=measured))
with auto_scheduler.ApplyHistoryBest(log):
    with tvm.transform.PassContext(opt_level=3, config={"relay.backend.use_auto_scheduler": True}):
        relay.build(mod, target=target, params=params)

# the debugger: times of nodes, all that they gave
graph, code, bound = relay.build(mod, "llvm", params=params)
debugged = debug_executor.create(graph, code, dev, dump_root=folder.relpath("dump"))
debugged.set_input(**bound)
np.testing.assert_allclose(result(debugged), want, rtol=1e-5)
assert os.listdir(folder.relpath("dump")) == ["_tvmdbg_device_CPU_0"]
lib = relay.build(mod, "llvm", params=params)
debugged = debug_executor.GraphModuleDebug(lib["debug_create"]("default", dev), [dev], lib.graph_json, None)
assert "nn_dense" in str(debugged.profile(data=data)) and len(debugged.run_individual(number=1, repeat=1)) > 3

# ahead of time, under a name of one's own, with parameters apart
with tvm.transform.PassContext(opt_level=3, config={"tir.disable_vectorize": True}):
    ahead = relay.build(mod, target="llvm", executor=Executor("aot"), runtime=Runtime("cpp"), params=params)
ahead.export_library(folder.relpath("aot.so"))
loaded = AotModule(tvm.runtime.load_module(folder.relpath("aot.so"))["default"](dev))
loaded.set_input("data", data)
loaded.run()
np.testing.assert_allclose(loaded.get_output(0).numpy(), want, rtol=1e-5)
named = relay.build(mod, target="llvm", params=params, mod_name="mine")
named.export_library(folder.relpath("mine.so"))
assert named.libmod_name == "mine" and set(load_param_dict(save_param_dict(params))) == set(params)
again = tvm.runtime.load_module(folder.relpath("mine.so"))
np.testing.assert_allclose(result(graph_executor.GraphModule(again["mine"](dev))), want, rtol=1e-5)

# boxes of a detector in the virtual machine, saved and loaded
box = relay.var("boxes", relay.ty.TensorType((1, 20, 6), "float32"))
valid, kept, places = relay.vision.get_valid_counts(box, 0.3, id_index=0, score_index=1)
nms = relay.vision.non_max_suppression(kept, valid, places, -1, 0.5, force_suppress=False, return_indices=False)
detector = tvm.IRModule.from_expr(relay.Function([box], nms))
with tvm.transform.PassContext(opt_level=3, disabled_pass=["FoldScaleAxis"]):
    executable = relay.vm.compile(detector, target="llvm", params={})
boxes = np.random.default_rng(1).random((1, 20, 6), "float32")
machine = VirtualMachine(executable, dev)
machine.set_input("main", **{"boxes": boxes})
found = machine.run().numpy()
bytecode, code = executable.save()
code.export_library(folder.relpath("vm.so"))
restored = tvm.runtime.vm.Executable.load_exec(bytearray(bytecode), tvm.runtime.load_module(folder.relpath("vm.so")))
np.testing.assert_array_equal(VirtualMachine(restored, dev).run(boxes).numpy(), found)
for name, instead in (("rpc", "export_library"), ("micro", "microcontrollers"), ("driver.tvmc", "relay.build")):
    try:
        importlib.import_module(f"tvm.{name}").load("x")
        raise SystemExit(f"{name} is not kept")
    except tvm.error.TVMError as error:
        assert instead in str(error)

assert get_valid_counts is relay.vision.get_valid_counts and resize2d is relay.image.resize2d
assert threefry_key is relay.random.threefry_key and from_onnx is relay.frontend.from_onnx and dyn.reshape
assert make_compilation_config(tvm.transform.PassContext.current(), [target]) is not None
assert VirtualDevice(dev, target).device_type == dev.device_type
print("ok")
