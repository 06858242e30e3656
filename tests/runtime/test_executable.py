"""Executables in files: round trip, damage in every section, foreign files, other machines, failed writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny

from relaylab.runtime import ArtifactError, cpu, graph_executor, load_module
from relaylab.runtime.archive import HEAD, ROW, ArchiveReader, write
from relaylab.support.errors import RelayTypeError


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("module") / "net.so"
    tiny.factory().export_library(path)
    return path


def code(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        load_module(path)
    assert str(path) in str(caught.value)
    return caught.value.code


@pytest.mark.parametrize("suffix", [".so", ".tar", ".rlab", ""])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    tiny.factory().export_library(tmp_path / f"net{suffix}")
    loaded = load_module(str(tmp_path / f"net{suffix}"))
    x = np.random.default_rng(0).normal(size=tiny.SIZE).astype("float32")
    module = graph_executor.GraphModule(loaded["default"](cpu(0)))
    module.run(x=x)
    np.testing.assert_allclose(module.get_output(0).numpy(), tiny.expected(x), rtol=1e-6)
    assert json.loads(loaded.get_graph_json()) == json.loads(tiny.graph())
    assert loaded.inspect("loop", "affine") == "for i"
    np.testing.assert_array_equal(loaded.get_params()["p0"].numpy(), tiny.weights()[0])
    assert os.listdir(tmp_path) == [f"net{suffix}"]


def test_truncation_at_every_place(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    ends = [section.offset + d for section in ArchiveReader(file).sections.values() for d in (0, 1, section.length)]
    short = tmp_path / "short"
    for size in sorted({*range(0, 64), *range(64, HEAD.size + 6 * ROW.size + 40, 7), *ends, len(data) - 1}):
        if size < len(data):
            short.write_bytes(data[:size])
            assert code(short) in ("runtime.damaged-file", "runtime.foreign-file")


def test_a_changed_byte_in_every_part(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    sections = [s for s in ArchiveReader(file).sections.values() if s.length]
    places = [*range(16, HEAD.size + 6 * ROW.size + 32, 5), *(s.offset + s.length // 2 for s in sections)]
    bad = tmp_path / "bad"
    for at in places:
        bad.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert code(bad) == "runtime.damaged-file"


@pytest.mark.parametrize(
    ("content", "expected", "word"),
    [
        (b"", "runtime.foreign-file", "empty"),
        (b"\x7fELF\x02\x01\x01", "runtime.foreign-file", "shared library"),
        (b"PK\x03\x04", "runtime.foreign-file", "zip"),
        (b"hello world, this is text", "runtime.foreign-file", "export_library"),
        (b"\x89RLAB\n\x1a" + bytes(100), "runtime.foreign-file", "something else"),
        (HEAD.pack(b"\x89RLAB\r\n\x1a", 99, 0, 64) + bytes(64), "runtime.newer-file", "newer relaylab"),
        (HEAD.pack(b"\x89RLAB\r\n\x1a", 0, 0, 64) + bytes(64), "runtime.older-file", "again"),
    ],
)
def test_foreign_files(tmp_path: Path, content: bytes, expected: str, word: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=word) as caught:
        load_module(path)
    assert caught.value.code == expected


def test_missing_file_and_wrong_kinds(tmp_path: Path) -> None:
    assert code(tmp_path / "absent.so") == "runtime.unreadable-file"
    assert code(tmp_path) == "runtime.unreadable-file"
    with pytest.raises(RelayTypeError):
        load_module(3)


def test_a_forged_manifest_is_refused(tmp_path: Path, file: Path) -> None:
    for text in (b"[]", b"{", b'{"name": 3}', b"[" * 100_000, b"\xff"):
        for sections in ({"manifest": text, "entry": b""}, {"vm": text}):
            write(tmp_path / "forged", sections)
            assert code(tmp_path / "forged") == "runtime.damaged-file"


@pytest.mark.parametrize(("features", "triple"), [(("mythical512",), ""), ((), "riscv64-unknown-linux-gnu")])
def test_other_machines_are_refused(tmp_path: Path, features: tuple[str, ...], triple: str) -> None:
    executable = tiny.executable(features)
    if triple:
        executable = type(executable)(**{**fields(executable), "target": type(executable.target)(triple, ())})
    executable.save(tmp_path / "other")
    with pytest.raises(ArtifactError, match="does not run on this machine") as caught:
        load_module(tmp_path / "other")["default"](cpu(0))
    assert caught.value.code == "runtime.other-machine"


def fields(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_unwritable_target_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot write"):
        tiny.factory().export_library(tmp_path / "absent" / "net.so")
    (tmp_path / "directory").mkdir()
    with pytest.raises(ArtifactError, match="cannot write"):
        tiny.factory().export_library(tmp_path / "directory")
    assert os.listdir(tmp_path) == ["directory"]


def test_an_interrupted_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.so"
    path.write_bytes(b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relaylab.runtime.archive._write_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tiny.factory().export_library(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["net.so"]


def test_loads_without_the_compiler(file: Path) -> None:
    program = f"""
import sys
from relaylab.runtime import load_module, cpu, graph_executor
m = graph_executor.GraphModule(load_module({str(file)!r})["default"](cpu(0)))
m.run(x=[1.0] * {tiny.SIZE})
rooms = {{n.split(".")[1] for n in sys.modules if n.startswith("relaylab.")}}
assert rooms <= {{"runtime", "support", "compat"}}, rooms  # compat: the table of public names, none of them loaded
print(float(m.get_output(1).numpy()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(float(tiny.expected(np.ones(tiny.SIZE, "float32")).sum()), rel=1e-5)


def test_a_module_says_what_it_is() -> None:
    relay = pytest.importorskip("relaylab.relay")
    x = relay.var("x", shape=(2, 3))
    shown = repr(relay.build(relay.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm", mod_name="net"))
    assert (
        shown.startswith("<compiled network 'net': 1 step of 1 kernel, for ") and "0x" not in shown and len(shown) < 120
    )
