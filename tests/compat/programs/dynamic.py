# unknown sizes, recursion and loops on the virtual machine
import numpy as np, tvm
from tvm import relay, runtime
from tvm.relay import transform
x = relay.var("x", shape=(relay.Any(), 4), dtype="float32"); y = relay.var("y", shape=(relay.Any(), 4), dtype="float32")
mod = tvm.IRModule(); mod["main"] = relay.Function([x, y], relay.op.concatenate([x, y], axis=0))
print(mod)
for kind in ["debug", "vm"]:
    ex = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm")
    print(ex.evaluate()(np.ones((2,4),"float32"), np.ones((3,4),"float32")).numpy().shape)
i = relay.var("i", shape=(), dtype="int32"); 
st = relay.var("st", shape=(2,), dtype="float32")
from tvm.relay.scope_builder import ScopeBuilder
sb = ScopeBuilder()
gv = relay.GlobalVar("loop")
with sb.if_scope(relay.equal(i, relay.const(0, "int32"))):
    sb.ret(st)
with sb.else_scope():
    one = relay.subtract(i, relay.const(1, "int32"))
    sb.ret(relay.Call(gv, [one, st + st]))
m = tvm.IRModule(); m[gv] = relay.Function([i, st], sb.get(), relay.TensorType((2,), "float32"))
ii = relay.var("ii", shape=(), dtype="int32"); ss = relay.var("ss", shape=(2,), dtype="float32")
m["main"] = relay.Function([ii, ss], gv(ii, ss))
exe = relay.vm.compile(m, target="llvm")

exe2=exe
vm = runtime.vm.VirtualMachine(exe2, tvm.cpu())
print(vm.run(np.array(3,"int32"), np.ones(2,"float32")))
print(exe.bytecode[:200] if hasattr(exe,"bytecode") else "")
from tvm.relay.loops import while_loop
iv = relay.var("i", shape=(), dtype="int32"); sv = relay.var("s", shape=(relay.Any(), 1), dtype="int32")
loop = while_loop(lambda i, s: relay.less(i, relay.const(4)), [iv, sv], lambda i, s: [i + relay.const(1), relay.op.concatenate([s, relay.reshape(i, (1,1))], axis=0)])
start = relay.var("start", shape=(), dtype="int32")
body = loop(start, relay.op.reshape(relay.const(0), newshape=(1, 1)))
mm = tvm.IRModule(); mm["main"] = relay.Function([start], relay.TupleGetItem(body, 1))
print(relay.create_executor("vm", mod=mm, device=tvm.cpu(), target="llvm").evaluate()(np.array(0,"int32")).numpy().T)
print("ok")
