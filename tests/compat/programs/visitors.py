# visitors, mutators and functors of a program
import tvm
from tvm import relay
from tvm.relay.expr_functor import ExprMutator, ExprVisitor, ExprFunctor
class CountOps(ExprVisitor):
    def __init__(self):
        super().__init__()
        self.n = {}
    def visit_call(self, call):
        self.n[call.op.name] = self.n.get(call.op.name, 0) + 1
        super().visit_call(call)
class Replace(ExprMutator):
    def visit_call(self, call):
        new_fn = self.visit(call.op)
        new_args = [self.visit(a) for a in call.args]
        if call.op == relay.op.get("nn.relu"):
            return relay.tanh(new_args[0])
        return relay.Call(new_fn, new_args, call.attrs, call.type_args, call.span)
    def visit_function(self, fn):
        new_body = self.visit(fn.body)
        return relay.Function(list(relay.analysis.free_vars(new_body)), new_body, None, fn.type_params, fn.attrs)
mod, params = relay.testing.mlp.get_workload(1)
c = CountOps(); c.visit(mod["main"]); print(c.n)
new = Replace().visit(mod["main"]); print(new)
m2 = tvm.IRModule.from_expr(new); m2 = relay.transform.InferType()(m2)
c = CountOps(); c.visit(m2["main"]); print(c.n)
class ToStr(ExprFunctor):
    def visit_var(self, v): return v.name_hint
    def visit_call(self, c): return c.op.name + "(" + ", ".join(self.visit(a) for a in c.args) + ")"
    def visit_constant(self, c): return str(c.data.numpy())
    def visit_function(self, f): return self.visit(f.body)
print(ToStr().visit(relay.Function([], relay.const(1.0) + relay.var("q"))))
def fvisit(e):
    if isinstance(e, relay.expr.Call) and isinstance(e.op, tvm.ir.Op): print(e.op.name)
relay.analysis.post_order_visit(mod["main"], fvisit)

print(tvm.relay.op.get("nn.dense").num_inputs)
from tvm.relay.expr import RelayExpr, Expr
print(isinstance(relay.const(1), RelayExpr), isinstance(relay.const(1), Expr))
print("ok")
