# Names of 0.6 to 0.16: each is there, and says what it is called now.
import warnings

import numpy as np

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import tvm
    import tvm.relay as relay
    from tvm.contrib import graph_runtime, util
    from tvm.contrib.debugger import debug_runtime
    from tvm.relay import ir_pass
    from tvm.relay.testing.config import ctx_list

    x = relay.var("x", shape=(2, 2))
    func = relay.expr.Function([x], relay.divide(x, relay.const(4.0)))
    mod = relay.Module.from_expr(func)
    ctx = tvm.context("llvm", 0)
    with relay.build_config(opt_level=3):
        graph, lib, params = relay.build(mod, target=tvm.target.create("llvm"))
    temp = util.tempdir()
    lib.export_library(temp.relpath("net.tar"))
    net = graph_runtime.create(graph, tvm.module.load(temp.relpath("net.tar")), ctx)
    net.set_input("x", tvm.nd.array(np.full((2, 2), 8, "float32"), ctx=ctx))
    net.run(**params)
    assert net.get_output(0, tvm.nd.empty((2, 2), ctx=ctx)).asnumpy().tolist() == [[2, 2], [2, 2]]
    assert ir_pass.infer_type(func.body).checked_type == relay.TensorType((2, 2))
    assert ir_pass.alpha_equal(func, func)
    prelude = relay.prelude.Prelude(tvm.IRModule())
    assert prelude.cons(x, prelude.nil()) is not None and prelude.l.name_hint == "List"
    assert ctx_list()[0][0] == "llvm"
    assert isinstance(tvm.ndarray.array(np.ones(2)), tvm.nd.NDArray)
    made, host = tvm.target.Target.check_and_update_host_consist("llvm", "llvm")
    assert str(made) == "llvm" == str(host)
told = " ".join(str(w.message) for w in caught if w.category is DeprecationWarning)
for name in ("contrib.util", "graph_runtime", "debug_runtime", "expr.Function", "relay.Module", "tvm.context",
             "tvm.module", "tvm.ndarray", "`ctx`", "asnumpy", "prelude.cons", "one module"):  # fmt: skip
    assert name in told, (name, told)

# later than 0.10
multiplied = relay.transform.DivToMul()(relay.transform.InferType()(mod))
assert "multiply(%x, 0.25f" in str(multiplied), multiplied
with tvm.transform.PassContext(instruments=[tvm.ir.instrument.PrintBeforeAll(), tvm.ir.instrument.PrintAfterAll()]):
    relay.transform.InferType()(mod)
print("ok")
