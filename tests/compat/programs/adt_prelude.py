# Algebraic data types, the prelude, match, recursion, in the debug interpreter.
import numpy as np
import tvm
from tvm import relay
from tvm.relay.prelude import Prelude
from tvm.relay.testing import count, make_nat_expr

p = Prelude()
p.mod.import_from_std("nat.rly")
_, z, s = p.mod.get_type("nat")
add = p.mod.get_global_var("nat_add")
ev = relay.create_executor("debug", mod=p.mod)
res = ev.evaluate(add(make_nat_expr(p, 3), make_nat_expr(p, 4)))
assert count(p, res) == 7

_, cons, nil = p.mod.get_type("List")
length = p.mod.get_global_var("length")
lst = cons(relay.const(1), cons(relay.const(2), cons(relay.const(3), nil())))
assert int(ev.evaluate(length(lst)).numpy()) == 3

text = """
#[version = "0.0.5"]
def @fact(%n: int32) -> int32 {
  if (%n < 2) { 1 } else { %n * @fact(%n - 1) }
}
def @main(%n: int32) -> int32 { @fact(%n) }
"""
mod = tvm.parser.fromtext(text)
assert int(relay.create_executor("debug", mod=mod).evaluate()(5).numpy()) == 120
assert tvm.ir.structural_equal(tvm.parser.parse(mod.astext()), mod)
print("ok")
