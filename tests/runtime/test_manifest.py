"""Manifests that say what cannot be, behind right digests: refused before any memory is touched."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from relaylab.runtime import ArtifactError, cpu, load_module
from relaylab.runtime.archive import ArchiveReader, write
from relaylab.support.errors import RelayError

MANIFEST, STAGES = "manifest", "stages"


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("module") / "net.so"
    tiny.factory().export_library(path)
    file = ArchiveReader(path)
    return {name: file.read(name).tobytes() for name in file.sections}


def resealed(sections: dict[str, bytes], path: Path, manifest: object = None, stages: bytes | None = None) -> Path:
    """The file with another manifest or other stages, and right digests."""
    changed = dict(sections)
    if manifest is not None:
        changed[MANIFEST] = json.dumps(manifest).encode()
    if stages is not None:
        changed[STAGES] = zlib.compress(stages)
    write(path, changed)
    return path


def put(data: Any, place: str, value: object) -> object:
    """`data` with another value at a place such as `plan.steps.0.items`."""
    *way, last = (int(k) if k.isdigit() else k for k in place.split("."))
    at = data
    for key in way:
        at = at[key]
    at[last] = value
    return data


HUGE = 1 << 64
WRONG: dict[str, tuple[str, object]] = {
    "shares": ("plan.steps.0.shares", HUGE),
    "no share": ("plan.steps.0.shares", 0),
    "items": ("plan.steps.1.items", -1),
    "a truth value": ("plan.steps.1.items", True),
    "a fraction": ("plan.steps.1.items", 1.5),
    "no symbol": ("plan.steps.0.kernel", "a\0b"),
    "half a character": ("plan.steps.0.kernel", "a\ud800"),
    "base": ("plan.steps.0.operands.0", [6, 0, 0]),
    "arena": ("plan.steps.0.operands.0", [0, 1 << 40, 0]),
    "constants": ("plan.steps.0.operands.2", [1, 1 << 40, 0]),
    "scratch": ("plan.steps.0.operands.2", [2, 0, 1]),
    "inputs": ("plan.steps.0.operands.1", [3, 4, tiny.SIZE * 4]),
    "outputs": ("plan.steps.1.operands.0", [5, 0, 5]),
    "an operand that ends behind its memory": ("plan.steps.0.operands.0.1", 68),
    "a constant that ends behind the constants": ("plan.steps.0.operands.3.2", 65),
    "an operand without its size": ("plan.steps.0.operands.0", [0, 64]),
    "a size that overflows": ("plan.steps.1.operands.1.2", HUGE - 1),
    "a negative extent": ("plan.outputs.0.shape", [-(1 << 63)]),
    "a large extent": ("plan.outputs.0.shape", [1 << 62]),
    "large beside nothing": ("plan.outputs.0.shape", [0, 1 << 62]),
    "rank": ("plan.inputs.0.shape", [1] * 65),
    "a path": ("plan.outputs.0.dtype", "../../etc/passwd"),
    "objects": ("plan.outputs.1.dtype", "O"),
    "a name twice": ("params.0.name", "x"),
    "a large parameter": ("params.0.shape", [HUGE]),
    "a parameter outside": ("params.0.offset", 1 << 20),
    "a copy of objects": ("plan.copies.0.1.dtype", "O"),
    "a copy to nowhere": ("plan.copies.0.0", 7),
    "a copy of another shape": ("plan.copies.0.1.shape", [1, tiny.SIZE]),
    "a copy from outside": ("plan.copies.0.1.place", [0, 128]),
    "strides to outside": ("plan.copies.0.1.strides", [2]),
    "strides to before": ("plan.copies.0.1.strides", [-1]),
    "fewer strides": ("plan.values.0.2.strides", []),
    "a value that is never ready": ("plan.values.0.2.ready", 3),
    "a value of no node": ("plan.values.0.0", 4),
    "memory": ("plan.arena_bytes", -1),
    "scratch memory": ("plan.scratch_bytes", HUGE),
    "object files": ("objects.0", 1),
    "no graph": ("graph", "[3]"),
    "a deep graph": ("graph", "[" * 100_000),
    "an unknown entry": ("plan.surprise", 1),
    "another type": ("plan.steps", None),
}


@pytest.mark.parametrize(("place", "value"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_when_it_is_loaded(sections, tmp_path, place, value) -> None:
    path = resealed(sections, tmp_path / "net.so", put(json.loads(sections[MANIFEST]), place, value))
    with pytest.raises(ArtifactError, match="its manifest cannot be understood: ") as caught:
        load_module(path)
    assert caught.value.code == "runtime.damaged-file"


@pytest.mark.parametrize("stages", [b"3", b"null", b'{"relay": 3}', b'{"relay": {"a": 3}}', b"[" * 100_000, b"\xff"])
def test_stages_are_texts_by_kernel(sections, tmp_path, stages) -> None:
    with pytest.raises(ArtifactError, match="the printed stages cannot be read: "):
        load_module(resealed(sections, tmp_path / "net.so", stages=stages))


ODD = (0, -1, 1, 3, 1 << 31, (1 << 63) - 1, 1 << 64, 1.5, "", "O", "float64", "\ud800", None, True, [], {}, [1] * 70)


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places in nested lists and tables, the outermost first."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*at, key)
        yield from places(value, (*at, key))


def test_random_manifests_load_and_run_or_are_refused_in_our_words(sections, tmp_path) -> None:
    rng = random.Random(0)
    ways = list(places(json.loads(sections[MANIFEST])))
    path = tmp_path / "net.so"
    for way in [w for w in ways for _ in range(4)]:
        data = json.loads(sections[MANIFEST])
        at = data
        for key in way[:-1]:
            at = at[key]
        at[way[-1]] = rng.choice(ODD)
        resealed(sections, path, data)
        try:
            lib = load_module(path)
            {name: value.numpy() for name, value in lib.get_params().items()}
            if not isinstance(way[-1], str) or way[-1] not in ("arena_bytes", "scratch_bytes", "shape"):
                lib["default"](cpu(0))
            lib.inspect("loop", "affine")
        except RelayError as error:
            assert error.code, way


CHANGES: dict[str, Callable[[str], str]] = {
    "cut": lambda path: f"os.truncate({path}, 100)",
    "emptied": lambda path: f"open({path}, 'wb').close()",
    "written over": lambda path: f"f = open({path}, 'r+b'); f.seek(-1 << 19, 2); f.write(b'x' * 99); f.close()",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_library_changed_in_place_is_an_error_and_no_signal(change, tmp_path) -> None:
    program = f"""
import os, numpy as np
from relaylab import relay
from relaylab.runtime import load_module, cpu, ArtifactError
w = np.arange(1 << 18, dtype='float32')
x, p = relay.var('x', shape=(1 << 18,)), relay.var('p', shape=(1 << 18,))
mod = relay.IRModule.from_expr(relay.Function([x, p], x + p))
relay.build(mod, 'llvm', params={{'p': w}}).export_library('t.so')
l, kept = load_module('t.so'), load_module('t.so')
np.testing.assert_array_equal(kept.get_params()['p0'].numpy(), w)
{change("'t.so'")}
for use in (l.get_params, lambda: l.export_library('t2.so'), lambda: l['default'](cpu(0))['set_input']('p0', w)):
    try:
        use()
    except ArtifactError as error:
        print(error.code)
np.testing.assert_array_equal(l.run(x=w), w + w)
np.testing.assert_array_equal(kept.get_params()['p0'].numpy(), w)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout.split() == ["runtime.damaged-file"] * 3


def test_a_library_that_another_is_renamed_over_keeps_its_parameters(tmp_path) -> None:
    path = tmp_path / "net.so"
    tiny.factory().export_library(path)
    loaded = load_module(path)
    write(path, {"manifest": b"{}"})
    np.testing.assert_array_equal(loaded.get_params()["p0"].numpy(), tiny.weights()[0])
