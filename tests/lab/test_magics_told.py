"""What the magics say of themselves: on one screen, each alone, as a page of the reference."""

import re
from pathlib import Path

from relaylab.lab.magic import MAGICS
from relaylab.lab.magics import reference

ROOT = Path(__file__).resolve().parents[2]


def test_help_and_reload(cell, ip):
    assert all(name in cell("%relay_help").out for name in ("%relay_viz", "%%relay", "%relay_bisect"))
    assert "--collapse" in cell("%relay_help viz").out and "--loop" not in cell("%relay_help %relay_viz").out
    assert "did you mean `viz`" in cell("%relay_help vis").err
    assert cell("%reload_ext relaylab").success
    assert sum(1 for m in ip.Completer.custom_matchers if getattr(m, "relaylab", False)) == 1


def test_the_reference_lists_every_magic_with_its_arguments(ip):
    found = {entry.name: entry for entry in reference()}
    registered = {n for kind in ("line", "cell") for n in ip.magics_manager.magics[kind] if n.startswith("relay")}
    assert found.keys() == registered - {"relay_help"}
    assert all(a.help for e in found.values() for a in e.arguments), "every argument says what it is"
    assert all(e.example.lstrip("%").split()[0] == e.name for e in found.values())
    assert ("-p, --passes A,B(…)", "these passes instead of the default ones") in found["relay_bisect"].arguments


def test_wrong_lines_say_what_helps(cell, ip, tmp_path, monkeypatch):
    (tmp_path / "net.onnx").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    cell("from relaylab import relay\nmod, _ = relay.testing.mlp.get_workload(1)")
    told = {
        "%relay_passes mod FoldConstant": "passes stand behind -p, as in -p FoldConstant",
        "%relay_passes net.onx": "there is no file and no name `net.onx`; did you mean `net.onnx`?",
        "%relay_passes net.onx:batch=3": "there is no file and no name `net.onx`; did you mean `net.onnx`?",
        "%relay_passes nowhere/net.onnx": "there is no folder `nowhere`",
        "%relay_viz mod -o net.svg": "--save net.svg writes a file, -o NAME binds a name",
        "%relay_profile": "required: program; %relay_profile",
        "%relay_profile mod:n=8": "leave out what stands behind the `:`",
        "%relay_passes mod.nothing": "has no attribute 'nothing'",
    }
    for line, words in told.items():
        found = cell(line)
        assert words in found.err + found.out, line


def test_magics_that_texts_name_are_there():
    """An error told people to write `%relay_explore`, which there never was."""
    known = {m.method for m in MAGICS} | {"relay_help"}
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "relaylab").rglob("*.py"), *(ROOT / "relaylab").rglob("*.md")]
    named = {(p.name, m[1]) for p in pages for m in re.finditer(r"%%?(relay_[a-z]+)", p.read_text(encoding="utf-8"))}
    assert {(page, name) for page, name in named if name not in known and page != "CHANGELOG.md"} == set()
