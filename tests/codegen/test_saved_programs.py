"""What the virtual machine saves is compiled again as it was: under the same options, with the same schedules."""

import numpy as np
import pytest

from relaylab import relay, runtime
from relaylab.codegen.vm_executable import VMExecutable
from relaylab.ir import SizeVar
from relaylab.loop.schedule import Schedule
from relaylab.relay.vm import VirtualMachine
from relaylab.runtime import native
from relaylab.runtime.vm_library import VMLibrary
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

STEPS = "split i1 16 as far near\nvectorize near"


def program(n):
    x = relay.var("x", shape=(n, 64))
    return relay.IRModule.from_expr(relay.Function([x], relay.nn.log_softmax(relay.exp(x))))


def loops(exe):
    """The loops of all kernels."""
    if exe.specializations is not None:
        return "\n".join(exe.inspect("loop", k) for k in exe.kernels())
    return "\n".join(n.library.inspect("loop", k) for n in exe.natives.values() for k in n.library.kernels())


@pytest.mark.parametrize("n", [3, SizeVar("n")], ids=["static", "open"])
@pytest.mark.parametrize("parsed", [False, True])
def test_schedules_and_options_come_along(n, parsed, tmp_path):
    given = {"exp": Schedule.parse(STEPS) if parsed else STEPS}
    config = {"relay.codegen.schedules": given, "relay.codegen.winograd": False}
    with PassContext(opt_level=3, disabled_pass=["FastMath"], config=config):
        exe = relay.vm.compile(program(n), "llvm")
    x = np.random.default_rng(0).standard_normal((3, 64)).astype("f4")
    expected = VirtualMachine(exe).invoke("main", x).numpy()
    assert " near " in loops(exe)
    exe.mod.export_library(str(tmp_path / "saved.rlab"))
    for again in (VMExecutable.load_exec(*exe.save()), runtime.load_module(str(tmp_path / "saved.rlab"))):
        vm = VirtualMachine(again)
        np.testing.assert_array_equal(vm.invoke("main", x).numpy(), expected)
        assert " near " in loops(vm.exe)
        assert vm.exe.context.config["relay.codegen.winograd"] is False
        assert vm.exe.context.disabled_pass == ("FastMath",)
        assert bytes(vm.exe.save()[0]) == bytes(exe.save()[0])


@pytest.mark.parametrize("n", [3, SizeVar("n")], ids=["static", "open"])
def test_places_of_this_machine_stay_here(n, tmp_path):
    with PassContext(opt_level=3, config={"relay.codegen.records": ""}):
        exe = relay.vm.compile(program(n), "llvm")
    assert "records" not in bytes(exe.save()[0]).decode()


def test_older_and_damaged_bytes():
    exe = relay.vm.compile(program(3), "llvm")
    code, lib = exe.save()
    older = bytes(code).partition(b"\n")[2]  # the text alone
    x = np.ones((3, 64), "f4")
    got = VirtualMachine(VMExecutable.load_exec(older, lib)).invoke("main", x).numpy()
    np.testing.assert_array_equal(got, VirtualMachine(exe).invoke("main", x).numpy())
    for damaged in (bytes(code).replace(b'"opt_level"', b'"opt"'), bytes(code)[:20], b"\xff\xfe", b""):
        with pytest.raises(RelayError):
            VMExecutable.load_exec(damaged, lib)


def test_what_is_compiled_for_another_machine_is_not_evaluated_here(tmp_path):
    other = "x86_64" if native.host_triple().startswith(("aarch64", "arm64")) else "aarch64"
    exe = relay.vm.compile(program(SizeVar("n")), f"llvm -mtriple={other}-linux-gnu")
    exe.mod.export_library(str(tmp_path / "saved.rlab"))
    static = VMLibrary(exe.target, [], bytes(relay.vm.compile(program(3), "llvm").save()[0]))
    for found in (exe, runtime.load_module(str(tmp_path / "saved.rlab")), static):
        with pytest.raises(RelayError) as error:
            VirtualMachine(found)
        assert error.value.code == "runtime.other-machine"
