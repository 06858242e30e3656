# names of modules that programs import
import numpy as np, tvm
from tvm import relay
import tvm.relay.testing
from tvm.relay.testing import check_grad
x = relay.var("x", shape=(3, 2), dtype="float64"); y = relay.var("y", shape=(3,2), dtype="float64")
check_grad(relay.Function([x, y], relay.tanh(x) * relay.exp(y)))
check_grad(relay.Function([x, y], relay.nn.dense(x,y)), mode="first_order", executor_kind="debug")
try:
    check_grad(relay.Function([x], relay.sum(relay.tanh(x)*x)), eps=10, scale=1); print("wrong")
except AssertionError: pass
from tvm.relay.op import op as _op, transform, tensor
from tvm.relay.op.transform import squeeze
from tvm.relay.expr import RelayExpr
from tvm.relay.ty import TypeConstraint, TypeRelation
from tvm.relay.base import SourceName, Span
from tvm.parser import SpanCheck
from tvm.runtime import Report
print(isinstance(relay.const(1), RelayExpr), tvm.relay.op.op.get("add"), isinstance(relay.op.get("add"), tvm.ir.op.Op), tvm.runtime.enabled("llvm"), tvm.runtime.enabled("cuda"))
from tvm.ir.module import IRModule
from tvm.relay.op.contrib.register import register_pattern_table, get_pattern_table
from tvm.relay.op.contrib import get_pattern_table as g2
from tvm.relay.dataflow_pattern import is_op, wildcard
@register_pattern_table("dnn")
def table(): return [("dnn.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))]
a = relay.var("a", shape=(2,)); m = tvm.IRModule.from_expr(relay.nn.relu(a + a))
print(relay.transform.MergeComposite(get_pattern_table("dnn"))(m))
try: from tvm.relay.op.contrib import ethosu
except ImportError as e: print(e)
try: get_pattern_table("dn")
except AttributeError as e: print(e)
print("ok")
