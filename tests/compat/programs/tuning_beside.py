# Programs that could tune, or use te and rpc, run as far as they are Relay.
import warnings

import numpy as np
import tvm
from tvm import auto_scheduler, autotvm, meta_schedule, micro, relay, rpc, te, tir, topi
from tvm.autotvm.tuner import GATuner, GridSearchTuner, RandomTuner, XGBTuner
from tvm.autotvm.graph_tuner import DPTuner
from tvm.driver import tvmc
from tvm.script import tir as T

x = relay.var("x", shape=(2, 3))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    runner = autotvm.LocalRunner(number=5, repeat=1)
    measure = {"measure_option": autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=runner)}
    tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params={})
    for task in reversed(tasks):
        XGBTuner(task, loss_type="rank").tune(n_trial=10, **measure)
    with autotvm.apply_history_best("log.json"), autotvm.tophub.context("llvm"):
        lib = relay.build(mod, target="llvm")
    tasks, weights = auto_scheduler.extract_tasks(mod["main"], {}, "llvm")
    auto_scheduler.TaskScheduler(tasks, weights).tune(auto_scheduler.TuningOptions(num_measure_trials=2))
    with auto_scheduler.ApplyHistoryBest("log.json"):
        relay.build(mod, target="llvm")
told = [str(w.message) for w in caught if "does nothing here" in str(w.message)]
assert len(told) == 2 and "tvm.autotvm" in told[0] and "auto_scheduler" in told[1], told
np.testing.assert_array_equal(lib.run(x=-np.ones((2, 3), "float32")), np.zeros((2, 3)))
assert te.size_var("n") is not None and not isinstance(x, te.Tensor)
for use in (
    lambda: te.placeholder((1,), name="A"),
    lambda: te.create_schedule([]),
    lambda: topi.nn.relu(3),
    lambda: XGBTuner(1),
    lambda: rpc.connect("host", 9090),
    lambda: micro.Session(1),
    lambda: meta_schedule.tune_relay(mod),
    lambda: tir.decl_buffer((1,)),
    lambda: T.prim_func(lambda: 0),
    lambda: tvmc.load("model.onnx"),
    lambda: type("Mine", (*GATuner.__mro_entries__(()),), {}),
    lambda: [*RandomTuner],
    lambda: DPTuner.graph(GridSearchTuner),
):
    try:
        use()
    except tvm.TVMError as error:
        assert "is not kept" in str(error) and "help: " in str(error), error
    else:
        raise AssertionError("it was used")
print("ok")
