# Functions, lets, tuples, types, attributes, analysis: the language by hand.
import numpy as np
import tvm
from tvm import relay, te, tir
from tvm.relay.analysis import all_vars, bound_vars, free_vars, well_formed

x = relay.var("x", shape=(2, 2))
y = relay.var("y", "float32")
let = relay.Let(y, relay.const(3.0), relay.add(x, y))
assert free_vars(let) == [x] and bound_vars(let) == [y] and set(all_vars(let)) == {x, y}
assert well_formed(let)

sb = relay.ScopeBuilder()
cond = relay.var("cond", "bool")
with sb.if_scope(cond):
    one = relay.const(1.0)
    t1 = sb.let("t1", relay.add(x, one))
    sb.ret(t1)
with sb.else_scope():
    sb.ret(x)
func = relay.Function([cond, x], sb.get())
mod = tvm.IRModule.from_expr(func)
mod = relay.transform.InferType()(mod)
assert mod["main"].checked_type.ret_type == relay.TensorType((2, 2), "float32")

dyn = relay.var("d", relay.TensorType((relay.Any(), 3), "float32"))
f = relay.Function([dyn], relay.nn.relu(dyn))
typed = relay.transform.InferType()(tvm.IRModule.from_expr(f))["main"]
assert "?" in str(typed.checked_type)
assert isinstance(typed.ret_type.shape[0], tir.Any)

f = f.with_attr("my_attr", 3)
assert f.attrs["my_attr"] == 3
assert tvm.ir.structural_equal(relay.Function([x], x + x), relay.Function([x], x + x))
assert tvm.ir.structural_hash(relay.Function([x], x)) == tvm.ir.structural_hash(relay.Function([x], x))

n = te.var("n")
ex = relay.create_executor("debug", mod=mod, device=tvm.cpu(0), target="llvm")
got = ex.evaluate()(np.array(True), np.ones((2, 2), "float32"))
tvm.testing.assert_allclose(got.numpy(), np.full((2, 2), 2.0))
for kind in ("vm", "debug"):
    got = relay.create_executor(kind, mod=mod).evaluate()(np.array(False), np.ones((2, 2), "float32"))
    tvm.testing.assert_allclose(got.numpy(), np.ones((2, 2)))
try:
    x + 1
except TypeError as error:
    assert "const" in str(error)
print("ok")
