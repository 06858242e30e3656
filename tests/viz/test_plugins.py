"""Plotters of other packages, found by their entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from relaylab import relay, viz
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError
from relaylab.viz.write import plugins


def plot(views, title):
    return f"{title}: " + " ".join(n.operator for v in views for n in v.nodes if n.operator)


@pytest.fixture
def mod(monkeypatch):
    found = [
        EntryPoint("list", f"{__name__}:plot", plugins.GROUP),
        EntryPoint("gone", "no_such_package:plot", plugins.GROUP),
    ]
    monkeypatch.setattr(plugins, "PLOTTERS", {})
    monkeypatch.setattr(plugins, "entries", lambda: found)
    return relay.parse('#[version = "0.0.5"] def @main(%x: float32) { log(exp(%x)) }')


def test_a_suffix_of_another_package_is_written(mod, tmp_path):
    assert viz.save(mod, tmp_path / "a.list", title="net").read_text() == "net: exp log"
    assert viz.show(mod).save(tmp_path / "b.list").read_text().endswith("exp log")
    assert viz.save([mod, mod], tmp_path / "c.list").read_text().endswith("exp log exp log")


def test_what_cannot_be_loaded_or_is_not_there(mod, tmp_path):
    with pytest.raises(RelayError, match="cannot be loaded: No module named 'no_such_package'"):
        viz.save(mod, tmp_path / "a.gone")
    with pytest.raises(RelayError, match="cannot tell the format"):
        viz.save(mod, tmp_path / "a.lst")
    with pytest.raises(RelayError, match="no package writes"):
        viz.show(mod).data("lst")


def test_a_plotter_of_a_cell_writes_files_of_its_suffix(mod, tmp_path):
    viz.plots(".Names")(lambda views, title: f"{title}: {[n.title for n in views[0].nodes]}")
    assert viz.save(mod, tmp_path / "net.names").read_text().endswith("['%x', 'exp', 'log', '@main']")
    viz.plots("names")(lambda views, title: b"again")
    assert viz.save(mod, tmp_path / "net.names").read_bytes() == b"again"


def test_a_plotter_that_gives_nothing_and_suffixes_that_are_taken_are_refused(mod, tmp_path):
    viz.plots("nothing")(lambda views, title: None)
    with pytest.raises(RelayTypeError, match="return text or bytes"):
        viz.save(mod, tmp_path / "net.nothing")
    for suffix in ("svg", ".PDF", ""):
        with pytest.raises(RelayValueError, match="name another suffix"):
            viz.plots(suffix)
