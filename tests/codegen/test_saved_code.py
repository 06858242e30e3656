"""What the virtual machine saves has its machine code: where it is loaded LLVM is not asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay, runtime
from relaylab.codegen.llvm import cache, jit
from relaylab.codegen.vm_executable import VMExecutable
from relaylab.ir import IRModule, SizeVar
from relaylab.codegen.vm import VirtualMachine
from relaylab.runtime.archive import ArchiveReader, ArtifactError, write
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

RNG = np.random.default_rng(0)
W = RNG.standard_normal((32, 16), "float32")
X = RNG.standard_normal((3, 16), "float32")
S = RNG.standard_normal((4, 4), "float32") / 4


def layer(n: object) -> IRModule:
    x = relay.var("x", shape=(n, 16))
    return IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.dense(x, relay.const(W)))))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def counting() -> IRModule:
    """A loop, as often as an input says."""
    return relay.parse("""#[version = "0.0.5"]
        def @main(%x: Tensor[(4, 4), float32], %n: int32) -> Tensor[(4, 4), float32] { @loop(%x, %n) }
        def @loop(%x: Tensor[(4, 4), float32], %n: int32) -> Tensor[(4, 4), float32] {
          if (greater(%n, 0)) { @loop(tanh(nn.dense(%x, %x)), subtract(%n, 1)) } else { negative(%x) }
        }""")


def turned(x: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        x = np.tanh(x @ x.T)
    return -x


def folding() -> IRModule:
    """A data type and a recursive function over it."""
    return relay.parse("""#[version = "0.0.5"]
        type L[A] { C(A, L[A]), N }
        def @fold(%l: L[Tensor[(4, 4), float32]], %a: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] {
          match (%l) { C(%h, %t) => @fold(%t, nn.dense(%h, tanh(%a))), N => %a }
        }
        def @main(%x: Tensor[(4, 4), float32]) -> Tensor[(4, 4), float32] { @fold(C(%x, C(exp(%x), N)), %x) }""")


def chosen() -> IRModule:
    """Open sizes, and a branch."""
    n = SizeVar("n")
    x, c = relay.var("x", shape=(n, 16)), relay.var("c", shape=(), dtype="bool")
    body = relay.If(c, relay.nn.dense(x, relay.const(W)), relay.nn.dense(relay.negative(x), relay.const(W)))
    return IRModule.from_expr(relay.Function([x, c], body))


PROGRAMS: dict[str, tuple[Callable[[], IRModule], list[np.ndarray], np.ndarray]] = {
    "static": (lambda: layer(3), [X], softmax(X @ W.T)),
    "open": (lambda: layer(SizeVar("n")), [X], softmax(X @ W.T)),
    "a loop": (counting, [S, np.array(3, "int32")], turned(S, 3)),
    "a data type": (folding, [S], np.exp(S) @ np.tanh(S @ np.tanh(S).T).T),
    "a branch": (chosen, [X, np.array(False)], -X @ W.T),
}


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", "")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts that LLVM is given."""
    texts, emit = [], jit.emit_object
    monkeypatch.setattr(jit, "emit_object", lambda text, target: texts.append(text) or emit(text, target))
    yield texts


@pytest.mark.parametrize("ran", [False, True], ids=["saved before", "saved after a run"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_compiled_where_it_is_loaded(name: str, ran: bool, compiled: list[str], tmp_path: Path) -> None:
    make, args, wanted = PROGRAMS[name]
    exe = relay.vm.compile(make(), "llvm")
    if ran:
        VirtualMachine(exe).invoke("main", *args)
    before = exe.stats, exe.bytecode
    exe.mod.export_library(str(tmp_path / "saved.rlab"))
    pair = exe.save()
    assert compiled and (exe.stats, exe.bytecode) == before
    for load in (lambda: runtime.load_module(str(tmp_path / "saved.rlab")), lambda: VMExecutable.load_exec(*pair)):
        compiled.clear()
        vm = VirtualMachine(load())
        np.testing.assert_allclose(vm.invoke("main", *args).numpy(), wanted, rtol=1e-5, atol=1e-6)
        assert not compiled
        again = vm.exe.save()[1]
        assert not compiled and again.objects == pair[1].objects


def test_a_form_for_shapes_comes_along(compiled: list[str]) -> None:
    with PassContext(opt_level=2, config={"relay.codegen.open": False}):
        exe = relay.vm.compile(layer(SizeVar("n")), "llvm")
    VirtualMachine(exe).invoke("main", X)
    pair = exe.save()
    compiled.clear()
    vm = VirtualMachine(VMExecutable.load_exec(*pair))
    vm.invoke("main", X)
    forms = vm.exe.specializations
    assert not compiled and forms is not None and len(forms.forms) == 1
    vm.invoke("main", X[:2])
    assert compiled


def test_code_of_a_file_never_goes_to_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There other programs would find it."""
    pair = relay.vm.compile(layer(3), "llvm").save()
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path / "cache"))
    VirtualMachine(VMExecutable.load_exec(*pair)).invoke("main", X)
    assert not (tmp_path / "cache").exists()
    relay.vm.compile(layer(3), "llvm")
    assert list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize("what", ["another compiler", "an older file", "no room"])
def test_what_does_not_fit_is_compiled_anew(
    what: str, compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if what == "no room":
        monkeypatch.setattr(cache, "MOST_NOTED", 0)
    relay.vm.compile(layer(3), "llvm").mod.export_library(tmp_path / "saved.rlab")
    if what == "an older file":
        file = ArchiveReader(tmp_path / "saved.rlab")
        write(tmp_path / "saved.rlab", {name: file.read(name) for name in ("vm", "vm-code")})
    if what == "another compiler":
        monkeypatch.setattr(jit, "compiler_version", lambda: "LLVM 99")
    compiled.clear()
    vm = VirtualMachine(runtime.load_module(tmp_path / "saved.rlab"))
    np.testing.assert_allclose(vm.invoke("main", X).numpy(), softmax(X @ W.T), rtol=1e-5)
    assert compiled


def resealed(path: Path, change: Callable[[bytes], bytes]) -> None:
    """The file with other machine code under a right digest."""
    file = ArchiveReader(path)
    parts = {name: file.read(name).tobytes() for name in file.sections}
    write(path, {**parts, "vm-objects": change(parts["vm-objects"])})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "an entry of its machine code is out of place"),
        (lambda data: data + b"?", "its machine code ends within an entry"),
        (lambda data: data + data, "an entry of its machine code is out of place"),
        (lambda data: data[:32] + b"\xff" * 8 + data[40:], "an entry of its machine code is out of place"),
    ],
)
def test_damaged_code_is_refused_in_words(change: Callable[[bytes], bytes], words: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.rlab"
    relay.vm.compile(layer(3), "llvm").mod.export_library(path)
    whole, at = path.read_bytes(), ArchiveReader(path).section("vm-objects").offset + 99
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ArtifactError, match="the section `vm-objects` has changed since it was written"):
        runtime.load_module(path)
    path.write_bytes(whole)
    resealed(path, change)
    with pytest.raises(ArtifactError, match=words) as error:
        runtime.load_module(path)
    assert error.value.code == "runtime.damaged-file"


def test_code_that_is_none_is_refused_or_made_anew(tmp_path: Path) -> None:
    exe = relay.vm.compile(layer(3), "llvm")
    code, lib = exe.save()
    for key, entry in list(lib.objects.items()):
        lib.objects[key] = b"no code at all"
        try:
            got = VirtualMachine(VMExecutable.load_exec(code, lib)).invoke("main", X).numpy()
            np.testing.assert_allclose(got, softmax(X @ W.T), rtol=1e-5)
        except RelayError as error:
            assert error.code == "runtime.link"
        lib.objects[key] = entry
