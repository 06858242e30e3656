# The code of what was built, and the text of modules, in the words of all releases.
import contextlib
import io

import tvm
from tvm import relay
from tvm.contrib import cc, ndk

x = relay.var("x", shape=(4, 8))
w = relay.var("w", shape=(16, 8))
mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
lib = relay.build(mod, target="llvm")
for source in (lib.get_source(), lib.lib.get_source(), lib.get_lib().get_source("ll")):
    assert "define" in source and lib.kernels()[0] in source
assert lib.get_lib().imported_modules[0].get_source() == lib.get_source()
assert lib.imported_modules[0].type_key == "llvm" and not lib.imported_modules[0].imported_modules
assert lib.get_source("asm") and lib.get_source("asm") != lib.get_source("ll")
try:
    lib.get_source("cu")
except tvm.TVMError as error:
    assert '"ll" and "asm"' in str(error)
lib.export_library("net.so", cc.create_shared)
lib.export_library("net.so", fcompile=ndk.create_shared)
assert tvm.runtime.load_module("net.so").get_source() == lib.get_source()
graph, old, params = relay.build(mod, target="llvm")
assert old.get_source() == lib.get_source()
shown = io.StringIO()
with contextlib.redirect_stdout(shown):
    mod.show()
assert shown.getvalue() == f"{mod}\n" and mod.script() == str(mod) and "nn.dense" in mod.script()
print("ok")
