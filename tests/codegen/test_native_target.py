"""Targets from strings, compiling in parallel, linking, and the object cache under bad conditions."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time

import pytest
from support.verifier import verify

from relaylab import relay
from relaylab.codegen.llvm import jit
from relaylab.codegen.llvm.cache import FORMAT, FRESH, SPARE, ObjectCache, default_directory, digest
from relaylab.codegen.llvm.cache_file import NAME, CacheFile
from relaylab.codegen.isa.target import CpuTarget
from relaylab.runtime.native import Library, linker
from relaylab.support.errors import RelayError, RelayValueError

HOST = CpuTarget.host()


def answer(n: int) -> str:
    """A module whose function `f<n>` gives n."""
    return f"define i64 @f{n}() #0 {{\n  ret i64 {n}\n}}\nattributes #0 = {{ {HOST.attributes} }}\n"


def call(library: Library, symbol: str) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64)(library[symbol])()


@pytest.mark.parametrize(
    "text,isa,lanes,registers",
    [
        ("llvm -mattr=+avx2,+fma", "avx2", 8, 16),
        ("llvm -mcpu=x86-64", "generic", 4, 16),
        ("llvm -mcpu=x86-64-v4", "avx512", 16, 32),
        ("llvm -mcpu=skylake", "avx2", 8, 16),
        ("llvm -mcpu=skylake-avx512 -mattr=-avx512f", "avx2", 8, 16),
        ("llvm -mattr=+avx2", "generic", 4, 16),
        ("llvm -mcpu=haswell -mattr=-fma", "generic", 4, 16),
    ],
)
def test_features_decide(text, isa, lanes, registers):
    target = CpuTarget.parse(text)
    assert (target.isa, target.lanes("float32"), target.registers) == (isa, lanes, registers)
    assert CpuTarget.parse(str(target)) == target


def test_the_host_with_a_feature_taken_away():
    assert CpuTarget.parse("llvm") == CpuTarget.parse(None) == HOST
    assert CpuTarget.parse("llvm -mattr=-avx512f").isa != "avx512"
    assert CpuTarget.parse("llvm -mattr=-avx2").isa == "generic"


@pytest.mark.parametrize(
    "text,code",
    [("cuda", "target.kind"), ("llvm -mattr=avx2", "target.feature"), ("llvm -march=x", "target.option"), ("", None)],
)
def test_bad_targets_are_explained(text, code):
    if code is None:
        assert CpuTarget.parse(text) == HOST
        return
    with pytest.raises(RelayValueError) as caught:
        CpuTarget.parse(text)
    assert caught.value.code == code


def test_parallel_and_serial_compilation_give_the_same_objects(monkeypatch):
    texts = [answer(n) for n in range(6)]
    parallel = jit.compile_objects(texts, HOST, threads=3)
    assert jit.compile_objects(texts, HOST, threads=1) == parallel
    monkeypatch.setattr(jit, "_compiler", lambda: None)  # an llvmlite that does not show its library
    assert jit.compile_objects(texts, HOST, threads=3) == parallel
    library = linker().link(tuple(parallel), {f"f{n}" for n in range(6)})
    assert [call(library, f"f{n}") for n in range(6)] == list(range(6))


def test_an_object_is_what_llvmlite_makes_and_its_errors_are_llvms(monkeypatch):
    """Python is let go of for parsing and emitting alone, whatever of llvmlite's is at hand."""
    made = jit.emit_object(answer(3), HOST)
    for name in ("parse_assembly", "ModuleRef"):
        monkeypatch.setattr(f"llvmlite.binding.{name}", lambda *_: pytest.fail("not by llvmlite's calls"))
    assert jit.emit_object(answer(3), HOST) == made
    with pytest.raises(RelayError, match=r"LLVM rejects the generated code: .*expected top-level entity"):
        jit.emit_object("no text of LLVM", HOST)
    monkeypatch.undo()
    monkeypatch.setattr(jit, "_compiler", lambda: None)
    assert jit.emit_object(answer(3), HOST) == made
    with pytest.raises(RelayError, match=r"(?s)LLVM rejects the generated code: .*expected top-level entity"):
        jit.emit_object("no text of LLVM", HOST)


def test_the_entry_is_compiled_while_the_passes_run(monkeypatch, tmp_path):
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    begun, emit = threading.Event(), jit.emit_object
    monkeypatch.setattr(jit, "emit_object", lambda *at: (begun.set(), emit(*at))[1])
    seen = relay.transform.module_pass(lambda mod, _: (begun.wait(60) and mod) or pytest.fail("not begun"), opt_level=0)
    passes = relay.transform.default_passes()
    monkeypatch.setattr("relaylab.transform.pipeline.default_passes", lambda **vm: [seen, *passes])
    x = relay.var("x", shape=(3,))
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.tanh(x))), "llvm")
    assert lib.run(x=[0.0] * 3).tolist() == [0.0] * 3


def test_who_waits_for_code_compiles_too():
    """Both threads are needed: each module waits until the other one is being compiled."""
    both, texts = threading.Barrier(2, timeout=60), [answer(n) for n in range(2)]
    with jit.Compilation(HOST, threads=2) as compilation, pytest.MonkeyPatch.context() as patch:
        emit = jit.emit_object
        patch.setattr(jit, "emit_object", lambda text, target: (both.wait(), emit(text, target))[1])
        started = [compilation.add(text) for text in texts]
        made = [compilation.result(one) for one in started]
    assert made == [jit.emit_object(text, HOST) for text in texts]


def test_an_error_belongs_to_its_module_whoever_compiled_it():
    texts = [answer(0), "define void @x( {", answer(1)]
    with jit.Compilation(HOST, threads=2) as compilation:
        started = [compilation.add(text) for text in texts]
        assert compilation.result(started[0]) and compilation.result(started[2])
        with pytest.raises(RelayError, match="LLVM rejects"):
            compilation.result(started[1])


def test_an_interrupt_at_the_end_leaves_the_cache_as_others_expect_it(tmp_path, monkeypatch):
    """What was compiled is kept, and the file is looked at again: another process may replace it."""
    cache = ObjectCache(tmp_path)

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), jit.Compilation(HOST, cache, threads=1) as compilation:
        made = compilation.result(compilation.add(answer(4)))
        monkeypatch.setattr(compilation._pool, "shutdown", interrupt)
    assert cache.get(jit.object_key(answer(4), HOST)) == made
    (tmp_path / NAME).unlink()
    assert cache.get(jit.object_key(answer(4), HOST)) is None


def test_bad_text_and_missing_symbols_are_errors_not_crashes():
    with pytest.raises(RelayError, match="LLVM rejects"):
        jit.emit_object("define void @x( {", HOST)
    with pytest.raises(RuntimeError):
        verify("define i64 @x(i64 %a) {\n  %c = add i64 %b, 1\n  %b = add i64 %a, 1\n  ret i64 %c\n}\n", HOST)
    with pytest.raises(RelayError, match="cannot be linked"):
        linker().link((jit.emit_object(answer(1), HOST),), {"absent"})


def test_cache_round_trip_and_keys(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path)
    texts = [answer(n) for n in range(3)]
    first = jit.compile_objects(texts, HOST, cache=cache)
    monkeypatch.setattr(jit, "emit_object", lambda *_: pytest.fail("compiled although cached"))
    assert jit.compile_objects(texts, HOST, cache=cache) == first
    with jit.Compilation(HOST, cache) as compilation:  # what is there needs no thread
        monkeypatch.setattr(compilation, "_pool", None)
        assert [compilation.add(text).result() for text in texts] == first
        monkeypatch.undo()
    assert jit.object_key(texts[0], HOST) != jit.object_key(texts[0], CpuTarget.parse("llvm -mattr=+avx2,+fma"))
    assert digest("ab", "c") != digest("a", "bc")


@pytest.mark.parametrize("damage", [b"", b"junk", FORMAT, FORMAT + bytes(32) + b"x"])
def test_damaged_entries_are_replaced(tmp_path, damage):
    cache = ObjectCache(tmp_path)
    text, key = answer(7), jit.object_key(answer(7), HOST)
    (good,) = jit.compile_objects([text], HOST, cache=cache)
    CacheFile(tmp_path).put([(key, int(time.time()), damage)])
    assert cache.get(key) is None and not cache.entries()
    assert jit.compile_objects([text], HOST, cache=cache) == [good] and cache.get(key) == good


def test_least_recently_used_entries_go_first(tmp_path, monkeypatch):
    clock = iter(range(0, 10**9, FRESH))
    monkeypatch.setattr(time, "time", lambda: next(clock))
    cache = ObjectCache(tmp_path, limit=(3 * (100 + len(FORMAT) + 32) * SPARE) // (SPARE - 1) + 1)
    for n in range(3):
        cache.put(f"k{n}", bytes(100))
    assert cache.get("k0") == bytes(100)  # now the most recent
    cache.put("k3", bytes(100))
    assert [cache.get(f"k{n}") is not None for n in range(4)] == [True, False, True, True]
    cache.put("large", bytes(10_000))
    assert cache.get("large") is None and cache.get("k3") is not None


def test_a_cache_is_not_read_through_for_every_entry(tmp_path, monkeypatch):
    looks = []
    monkeypatch.setattr(ObjectCache, "_evict", lambda *at, old=ObjectCache._evict: (looks.append(1), old(*at))[1])
    for n in range(3000):  # as one build after the other does, each with an object of its own
        cache = ObjectCache(tmp_path, limit=100_000)
        cache.put(f"k{n}", bytes(100))
    assert 4 < len(looks) < 500 and sum(size for _, size, _ in cache.entries()) <= 100_000


@pytest.mark.parametrize("directory", ["/proc/none", "file/inside", None])
def test_a_cache_that_cannot_be_written_is_empty(tmp_path, directory):
    (tmp_path / "file").write_text("a file, not a directory")
    place = directory and (directory if directory[0] == "/" else tmp_path / directory)
    cache = ObjectCache(place)
    (data,) = jit.compile_objects([answer(9)], HOST, cache=cache)
    assert data and cache.get(jit.object_key(answer(9), HOST)) is None


def test_the_environment_moves_and_stops_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", "")
    assert default_directory() is None
    monkeypatch.setenv("RELAYLAB_CACHE_LIMIT", "none")
    assert ObjectCache(tmp_path).limit > 0


WRITER = """
import sys
from relaylab.codegen.llvm.cache import ObjectCache
cache = ObjectCache(sys.argv[1], limit=40_000)
for turn in range(150):
    key = f"k{turn % 20}"
    found = cache.get(key)
    assert found in (None, key.encode() * 1000), "a torn entry was read"
    cache.put(key, key.encode() * 1000)
"""


def test_two_processes_at_once(tmp_path):
    jobs = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(2)]
    assert [(job.communicate()[1].decode(), job.returncode) for job in jobs] == [("", 0)] * 2
    assert sum(size for _, size, _ in ObjectCache(tmp_path).entries()) <= 45_000
    assert {p.name for p in tmp_path.iterdir()} <= {NAME, NAME + "-journal"}


def test_threads_compile_at_once():
    results: dict[int, list[bytes]] = {}
    work = lambda n: results.__setitem__(n, jit.compile_objects([answer(20 + n)] * 3, HOST, threads=2))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 1, 2] and all(len(set(objects)) == 1 for objects in results.values())
