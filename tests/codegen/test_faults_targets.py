"""Targets, files and caches that are wrong: refused by name, replaced or rebuilt, never a signal."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from fault_programs import program

from relaylab import relay
from relaylab.codegen.llvm import jit
from relaylab.codegen.build import entry_target
from relaylab.codegen.llvm.cache import FORMAT, ObjectCache
from relaylab.codegen.llvm.cache import _store as cache_store
from relaylab.codegen.llvm.cache_file import NAME, CacheFile
from relaylab.codegen.isa.cpus import AARCH64, X86, Architecture
from relaylab.codegen.isa.target import CpuTarget
from relaylab.runtime import cpu, graph_executor, load_module, load_param_dict, save_param_dict
from relaylab.runtime.archive import ArtifactError
from relaylab.support.errors import RelayError, RelayValueError

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).uniform(-2, 2, (4, 8)).astype("float32")
W = np.random.default_rng(1).uniform(-2, 2, (3, 8)).astype("float32")
MOD = program("nn.relu(nn.dense(%a, %b, units=None))", X, W)
WANT = np.maximum(X @ W.T, 0)


def runs(lib: object) -> None:
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(a=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), WANT, rtol=1e-5, atol=1e-5)


def built(target: str = "llvm") -> object:
    return relay.build(MOD, target, params={"b": W})


# ---- targets


@pytest.mark.parametrize(("text", "code", "words"), [
    ("llvm -mcpu=foo", "target.cpu", "there is no x86-64 CPU `foo`"),
    ("llvm -mcpu=haswel", "target.cpu", "did you mean `haswell`"),
    ("llvm -mcpu=cortex-a72", "target.cpu", "cortex-a72"),
    ("llvm -mattr=+avx3", "target.feature", "no CPU feature `avx3`"),
    ("llvm -mattr=+", "target.feature", "no CPU feature"),
    ("llvm -mattr=avx2", "target.feature", "needs a sign"),
    ("llvm -mattr=-sse2", "target.feature", "every x86-64 CPU has `sse2`"),
    ("llvm -mattr=-64bit", "target.feature", "64bit"),
    ("llvm -mcpu='x", "target.text", "quotation"),
    ("llvm -mtriple=arm64", "target.triple", "aarch64-linux-gnu"),
    ("llvm -num-cores=0", "target.cores", "-num-cores=0"),
    ("llvm -num-cores=many", "target.cores", "number of cores"), ("cuda", "target.kind", "llvm"),
])  # fmt: skip
@pytest.mark.skipif(not jit._llvm().get_process_triple().startswith("x86_64"), reason="names of x86-64")
def test_what_is_no_target(text: str, code: str, words: str) -> None:
    with pytest.raises(RelayValueError) as caught:
        relay.build(MOD, text)
    assert caught.value.code == code and words in str(caught.value) and caught.value.help


CPUS = """
import sys
from relaylab.codegen.llvm import jit
from relaylab.codegen.isa.target import CpuTarget
for name in sys.argv[2:]:
    target = CpuTarget.parse(f"llvm -mtriple={sys.argv[1]} -mcpu={name}")
    attributes = f'attributes #0 = {{ {target.attributes} }}'
    assert jit.emit_object(f'define void @f() #0 {{\\n ret void\\n}}\\n{attributes}\\n', target)
"""


@pytest.mark.parametrize(("architecture", "triple"), [(X86, "x86_64-linux-gnu"), (AARCH64, "aarch64-linux-gnu")])
def test_llvm_knows_every_cpu_of_the_table(architecture: Architecture, triple: str) -> None:
    """LLVM ends the process for a CPU that it does not know, and warns of a name that it knows otherwise."""
    command = [sys.executable, "-c", CPUS, triple, *architecture.cpus]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_says_every_feature_that_its_code_may_use() -> None:
    for architecture, triple in ((X86, "x86_64-linux-gnu"), (AARCH64, "aarch64-linux-gnu")):
        for name, level in architecture.cpus.items():
            target = CpuTarget.parse(f"llvm -mtriple={triple} -mcpu={name}")
            assert set(target.needs) == set(architecture.levels[level])
            assert target.stated == ",".join("+" + n for n in target.needs)
    assert set(CpuTarget.host().needs) <= {n for n, here in jit._llvm().get_host_cpu_features().items() if here}
    assert "avx512fp16" in CpuTarget.parse("llvm -mcpu=x86-64-v4 -mattr=+avx512fp16").needs
    assert entry_target(CpuTarget.host()).needs == ()


@pytest.mark.skipif(not jit._llvm().get_process_triple().startswith("x86_64"), reason="features of x86-64")
def test_code_for_another_cpu_is_refused_before_it_runs(tmp_path: Path) -> None:
    absent = sorted(
        n for n, here in jit._llvm().get_host_cpu_features().items() if not here and n.startswith(("avx", "amx", "sm"))
    )
    if not absent:
        pytest.skip("this processor has every feature")
    lib = built(f"llvm -mcpu=x86-64 -mattr=+{absent[0]}")
    lib.export_library(tmp_path / "net.so")
    for module in (lib, load_module(tmp_path / "net.so")):
        with pytest.raises(ArtifactError, match=absent[0]) as caught:
            module["default"](cpu(0))
        assert caught.value.code == "runtime.other-machine" and "-mcpu=x86-64-v3" in caught.value.help


# ---- the cache


def test_an_entry_under_another_name_is_not_taken(tmp_path: Path) -> None:
    cache, store = ObjectCache(tmp_path), CacheFile(tmp_path)
    cache.put("one", b"code of one")
    store.put([("two", *store.get("one"))])
    assert cache.get("two") is None and cache.get("one") == b"code of one" and store.get("two") is None


@pytest.mark.parametrize("place", [0, len(FORMAT) + 31, len(FORMAT) + 32, 400, -1])
def test_a_truncated_or_changed_entry_is_no_entry(tmp_path: Path, place: int) -> None:
    cache, store = ObjectCache(tmp_path), CacheFile(tmp_path)
    for damage in (lambda data: data[:place], lambda data: bytes([*data[:place], data[place] ^ 4, *data[place:][1:]])):
        cache.put("key", bytes(1000))
        used, data = store.get("key")
        store.put([("key", used, damage(data))])
        assert cache.get("key") is None and store.get("key") is None


def test_a_cache_of_damaged_entries_is_made_again(tmp_path: Path) -> None:
    fresh_process(tmp_path)
    store = CacheFile(tmp_path)
    keys = [key for _, _, key in store.entries()]
    assert keys
    for k, key in enumerate(keys):
        used, data = store.get(key)
        store.put([(key, used, data[: -(k + 1)])])
    fresh_process(tmp_path)


@pytest.mark.parametrize("place", [0, 20, 60, 4096, 9000, "cut", "empty", "text", "other table", "other columns"])
def test_a_damaged_file_is_made_again(tmp_path: Path, place: int | str) -> None:
    cache, path = ObjectCache(tmp_path), tmp_path / NAME
    with cache.together():
        for n in range(40):
            cache.put(f"k{n}", bytes([n]) * 1000)
    assert cache.get("k7") == bytes([7]) * 1000
    data = path.read_bytes()
    if isinstance(place, int):
        path.write_bytes(data[:place] + bytes(b ^ 255 for b in data[place : place + 200]) + data[place + 200 :])
    elif place in ("cut", "empty", "text"):
        path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "text": b"no database" * 500}[place])
    else:
        path.unlink()
        with closing(sqlite3.connect(path)) as base:
            base.execute("CREATE TABLE other (a)" if place == "other table" else "CREATE TABLE entries (key, used)")
    for _ in range(2):  # what is damaged is found when it is read, and what is found is right
        cache = ObjectCache(tmp_path)
        found = [cache.get(f"k{n}") for n in range(40)]
        assert all(entry in (None, bytes([n]) * 1000) for n, entry in enumerate(found))
        with cache.together():
            for n in range(40):
                cache.put(f"k{n}", bytes([n]) * 1000)
    cache.put("k7", b"new")
    assert ObjectCache(tmp_path).get("k7") == b"new"


def test_what_is_stored_together_is_found_at_once_and_written_at_the_end(tmp_path: Path) -> None:
    cache, other = ObjectCache(tmp_path), ObjectCache(tmp_path)
    with pytest.raises(KeyboardInterrupt), cache.together():
        with cache.together():
            cache.put("key", b"code")
        assert cache.get("key") == b"code" and other.get("key") is None
        raise KeyboardInterrupt
    assert cache.get("key") == other.get("key") == b"code"


def test_entries_that_had_files_of_their_own_are_removed(tmp_path: Path) -> None:
    for name in ("a" * 64 + ".o", "mine.o", "b" * 64):
        (tmp_path / name).write_bytes(b"")
    ObjectCache(tmp_path).put("key", b"code")
    assert {p.name for p in tmp_path.glob("[!o]*")} == {"mine.o", "b" * 64}


FRESH = """
import numpy as np
from test_faults_targets import built, runs
runs(built())
"""


def fresh_process(directory: Path | str, program: str = FRESH) -> None:
    """Build and run in a process that remembers nothing but the cache."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "RELAYLAB_CACHE_DIR": str(directory)},
    )
    assert done.returncode == 0, done.stderr


def test_a_directory_that_is_a_file_or_not_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    fresh_process(tmp_path / "file")
    for place in (tmp_path / "file" / "below", "/proc/self/none", "x" * 300):
        cache = ObjectCache(place)
        cache.put("key", b"code")
        assert cache.get("key") is None and cache.entries() == []
    assert (tmp_path / "file").read_text() == "no directory"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO, errno.EROFS])
def test_a_disk_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    cache = ObjectCache(tmp_path)
    monkeypatch.setattr("os.open", refuse)
    cache.put("key", b"code")
    assert cache.get("key") is None and not list(tmp_path.iterdir())


def test_a_disk_that_is_full_later(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    with closing(sqlite3.connect(tmp_path / NAME)) as base:
        pages = base.execute("PRAGMA page_count").fetchone()[0]
    full = lambda store: store._base.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    full(cache_store(tmp_path))
    cache.put("large", bytes(100_000))
    assert cache.get("large") is None and cache.get("key") == b"code"


def test_another_process_that_writes_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    connect = lambda *at, **how: (waits.append(at), sqlite3.Connection(*at, **{**how, "timeout": 0.01}))[1]
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    cache_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as base:
        base.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", connect)
        cache.put("other", b"code")
        assert [cache.get("key") for _ in range(200)] == [None] * 200 and len(waits) == 1  # one wait for all of them
        base.execute("ROLLBACK")
    cache_store(tmp_path)._rests_until = 0
    assert cache.get("key") == b"code" and cache.get("other") is None


def test_a_process_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    ObjectCache(tmp_path).put("key", b"code")
    cache_store(tmp_path).close()
    program = f"""
import os, sqlite3
base = sqlite3.connect({str(tmp_path / NAME)!r}, isolation_level=None)
base.execute("PRAGMA cache_size = 1")
base.execute("BEGIN")
base.executemany("INSERT INTO entries VALUES (?, 0, ?)", [(str(n), bytes(5000)) for n in range(500)])
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert [key for _, _, key in ObjectCache(tmp_path).entries()] == ["key"]
    assert ObjectCache(tmp_path).get("key") == b"code"


def test_a_child_has_its_own_connection_and_locks(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    with cache_store(tmp_path)._lock:  # as another thread of the parent may
        child = os.fork()
        if not child:
            signal.alarm(30)
            os._exit(0 if cache.get("key") == b"code" and cache_store(tmp_path)._owner[0] == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0 and cache.get("key") == b"code"


def test_a_file_that_another_process_makes_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the making: what the other one has stored stays."""
    first, make = ObjectCache(tmp_path), os.open

    def other(path: Path, *how: int) -> int:
        monkeypatch.setattr(os, "open", make)
        CacheFile(tmp_path).put([("other", 0, b"entry")])
        return make(path, *how)

    monkeypatch.setattr(os, "open", other)
    first.put("key", b"code")
    assert first.get("key") == b"code" and CacheFile(tmp_path).get("other") == (0, b"entry")


def test_a_file_that_goes_meanwhile(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    cache.put("key", b"code")
    (tmp_path / NAME).unlink()
    assert cache.get("key") is None
    cache.put("key", b"code")
    assert cache.get("key") == b"code" and (tmp_path / NAME).exists()


def test_an_interrupt_while_building_leaves_the_next_build_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(tmp_path))
    mod, count = program("tanh(nn.dense(exp(%a), %b, units=None))", X, W), []

    def once(text: str, target: CpuTarget, emit: object = jit.emit_object) -> bytes:
        count.append(text)
        if len(count) == 2:
            raise KeyboardInterrupt
        return emit(text, target)

    with monkeypatch.context() as patch:
        patch.setattr(jit, "emit_object", once)
        with pytest.raises(KeyboardInterrupt):
            relay.build(mod, "llvm -mcpu=x86-64-v2", params={"b": W})
    module = graph_executor.GraphModule(relay.build(mod, "llvm -mcpu=x86-64-v2", params={"b": W})["default"](cpu(0)))
    module.run(a=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), np.tanh(np.exp(X) @ W.T), rtol=1e-5, atol=1e-5)


def test_two_processes_build_at_once(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path, "RELAYLAB_CACHE_DIR": str(tmp_path), "RELAYLAB_CACHE_LIMIT": "9000"}
    jobs = [subprocess.Popen([sys.executable, "-c", FRESH], env=env, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(job.communicate(timeout=120)[1].decode(), job.returncode) for job in jobs] == [("", 0)] * 2
    assert sum(size for _, size, _ in ObjectCache(tmp_path).entries()) <= 9000


# ---- files


def test_every_place_of_a_library_is_guarded(tmp_path: Path) -> None:
    """One flipped bit anywhere is an error or has no effect on what is executed; nothing ends the process."""
    path = tmp_path / "net.so"
    built().export_library(path)
    data = path.read_bytes()
    for at in np.linspace(0, len(data) - 1, 150, dtype=int):
        (tmp_path / "bad").write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :])
        try:
            runs(load_module(tmp_path / "bad"))
        except RelayError as error:
            assert isinstance(error, ArtifactError) and error.help


@pytest.mark.parametrize("suffix", [".so", ".tar", ".dll", ".o", ""])
def test_every_form_of_file_goes_round(tmp_path: Path, suffix: str) -> None:
    lib = built()
    lib.export_library(tmp_path / f"net{suffix}")
    again = load_module(tmp_path / f"net{suffix}")
    runs(again)
    again.export_library(tmp_path / f"again{suffix}")
    runs(load_module(tmp_path / f"again{suffix}"))
    assert graph_executor.create(again.get_graph_json(), again, cpu(0)).get_num_outputs() == 1


# ---- parameters


@pytest.mark.parametrize(("params", "words"), [
    ({"b": W[:2]}, "b"), ({"b": W.T}, "b"), ({"b": "text"}, "str"), ({"b": None}, "parameter `b`"),
    ({"b": [[1], [2, 3]]}, "parameter `b`"), ({"b": W.astype(complex)}, "complex"),
    (["b"], "not ['b']"), (3, "not 3"),
])  # fmt: skip
def test_parameters_that_do_not_fit(params: object, words: str) -> None:
    with pytest.raises(RelayError) as caught:
        relay.build(MOD, "llvm", params=params)
    assert words in str(caught.value) and caught.value.help


def test_missing_parameters_are_inputs_and_extra_ones_are_left() -> None:
    free = graph_executor.GraphModule(relay.build(MOD, "llvm")["default"](cpu(0)))
    free.run(a=X, b=W)
    np.testing.assert_allclose(free.get_output(0).numpy(), WANT, rtol=1e-5, atol=1e-5)
    runs(relay.build(MOD, "llvm", params={"b": W, "unknown": W}))


def test_damaged_parameters_are_refused_at_every_byte() -> None:
    data = bytes(save_param_dict({"b": W, "second": np.arange(3)}))
    for at in range(len(data)):
        with pytest.raises(RelayError):
            load_param_dict(data[:at])
    for at in range(0, len(data)):
        try:
            found = load_param_dict(data[:at] + bytes([data[at] ^ 0x81]) + data[at + 1 :])
        except RelayError as error:
            assert error.code.startswith("runtime.")
        else:
            assert [v.shape for v in found.values()] in ([(3, 8), (3,)],)


@pytest.mark.parametrize("value", [b"", b"x" * 100, None, "text", 3])
def test_what_is_no_saved_parameters(value: object) -> None:
    with pytest.raises(RelayError):
        load_param_dict(value)
