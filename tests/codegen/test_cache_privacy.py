"""The cache of kernels is private: what others could have written is never linked."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.llvm.cache import CacheWarning, ObjectCache
from relaylab.codegen.llvm.cache_file import NAME

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners of files")
OTHER = 12345


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path / "cache"
    found.mkdir(0o700)
    yield found


def as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be a user who owns none of the files."""
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_it_is_made_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        cache = ObjectCache(tmp_path / "a" / "cache")
        cache.put("key", b"code")
    finally:
        os.umask(before)
    assert cache.get("key") == b"code"
    assert (tmp_path / "a" / "cache").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "cache" / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777, 0o720, 0o702])
def test_a_directory_that_others_may_write_to_is_not_used(directory: Path, mode: int) -> None:
    ObjectCache(directory).put("key", b"code")
    directory.chmod(mode)
    with pytest.warns(CacheWarning, match="may be written by others") as caught:
        cache = ObjectCache(directory)
        assert cache.get("key") is None
    cache.put("other", b"code")
    assert (
        len(caught) == 1 and "RELAYLAB_CACHE_DIR" in str(caught[0].message) and str(directory) in str(caught[0].message)
    )
    assert sorted(p.name for p in directory.iterdir()) == [NAME, NAME + "-journal"]
    with warnings.catch_warnings():  # told once
        warnings.simplefilter("error")
        assert ObjectCache(directory).get("key") is None


@pytest.mark.parametrize("mode", [0o700, 0o500, 0o755, 0o750])
def test_one_that_others_may_read_is_used(directory: Path, mode: int) -> None:
    ObjectCache(directory).put("key", b"code")
    directory.chmod(mode)
    assert ObjectCache(directory).get("key") == b"code"


def test_a_directory_of_another_user_is_not_used(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ObjectCache(directory).put("key", b"code")
    as_another_user(monkeypatch)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert ObjectCache(directory).get("key") is None


def test_a_link_of_another_user_is_not_followed(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObjectCache(directory).put("key", b"code")
    (tmp_path / "link").symlink_to(directory)
    assert ObjectCache(tmp_path / "link").get("key") == b"code"
    if os.geteuid() != 0:
        pytest.skip("only the administrator gives links away")
    os.lchown(tmp_path / "link", OTHER, OTHER)
    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert ObjectCache(tmp_path / "link").get("key") is None


@pytest.mark.parametrize("kind", ["mode", "owner", "link", "pipe", "directory"])
def test_entries_that_are_not_private_are_none(directory: Path, tmp_path: Path, kind: str) -> None:
    cache, entry = ObjectCache(directory), directory / NAME
    cache.put("key", b"code")
    kept = entry.read_bytes()
    if kind == "mode":
        entry.chmod(0o620)
    elif kind == "owner":
        if os.geteuid() != 0:
            pytest.skip("only the administrator gives files away")
        os.chown(entry, OTHER, OTHER)
    else:
        entry.unlink()
        (tmp_path / "planted").write_bytes(kept)
        makers = {
            "link": lambda: entry.symlink_to(tmp_path / "planted"),
            "pipe": lambda: os.mkfifo(entry),
            "directory": entry.mkdir,
        }
        makers[kind]()
    assert cache.get("key") is None
    if kind != "directory":
        cache.put("key", b"new")
        assert cache.get("key") == b"new"


def test_a_build_goes_on_without_the_cache(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.chmod(0o777)
    monkeypatch.setenv("RELAYLAB_CACHE_DIR", str(directory))
    x = relay.var("x", shape=(3,))
    with pytest.warns(CacheWarning) as caught:
        lib = relay.build(relay.IRModule.from_expr(relay.Function([x], relay.tanh(x + x))), "llvm")
    assert len([w for w in caught if w.category is CacheWarning]) == 1 and not list(directory.iterdir())
    np.testing.assert_allclose(lib.run(x=np.ones(3, "float32")), np.tanh(2), rtol=1e-6)
