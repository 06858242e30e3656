"""Blocks of documents: a tiny Sphinx project and a tiny MkDocs page, drawn; nothing in them is run."""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

import pytest

from relaylab.lab.embed.block import OPTIONS, Block, explorer_page, picture_html
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

RELAY = """fn (%x: Tensor[(2, 3), float32]) {
  nn.relu(exp(%x))
}"""
INDEX = f"""
Blocks
======

.. relay-graph::
   :step: FuseOps
   :alt: exp and relu are <one> kernel

{"".join(f"   {line}" + chr(10) for line in RELAY.splitlines())}
.. relay-graph::
   :file: net.relay
   :a4:

.. relay-passes:: mlp
   :step: FuseOps
   :passes: SimplifyInference,FoldConstant,FuseOps
   :height: 500
"""
MARKDOWN = f"""# Blocks

```relay-graph step="FuseOps" alt="exp and relu are <one> kernel" a4
{RELAY}
```

```relay-passes network="mlp" passes="FoldConstant,FuseOps" step="FuseOps" height="500"
```
"""
MKDOCS = """site_name: tiny
theme: null
use_directory_urls: false
markdown_extensions:
  - pymdownx.superfences:
      custom_fences:
""" + "".join(
    f"""        - name: relay-{kind}
          class: relay-{kind}
          format: !!python/name:relaylab.lab.embed.mkdocs.draw
          validator: !!python/name:relaylab.lab.embed.mkdocs.accept
"""
    for kind in ("graph", "passes")
)


def drawn(html: str) -> list[str]:
    """The SVG documents in the images of a page."""
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    return [base64.b64decode(data).decode() for data in found]


@pytest.fixture(scope="module")
def sphinx(tmp_path_factory) -> Path:
    """A built project: `html` and `text` in the folder."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("sphinx")
    (folder / "conf.py").write_text('extensions = ["relaylab.lab.embed.sphinx"]\nhtml_theme = "basic"\n')
    (folder / "index.rst").write_text(INDEX)
    (folder / "net.relay").write_text(RELAY)
    from sphinx.cmd.build import main

    for builder in ("html", "latex", "text"):
        assert main(["-W", "-q", "-b", builder, str(folder), str(folder / builder)]) == 0
    return folder


def test_sphinx_draws_text_files_and_networks(sphinx):
    html = (sphinx / "html/index.html").read_text()
    first, second = drawn(html)
    assert "exp and relu are &lt;one&gt; kernel" in first and "merged" in first  # the fused kernel is new
    assert 'alt="exp and relu are &lt;one&gt; kernel"' in html and 'alt="net"' in html
    assert "merged" not in second.split("</style>")[1] and "nn.relu" in second
    source = re.search(r'<iframe [^>]*height:500px[^>]* src="(_images/relay-\w+\.html)"', html)
    assert source and (sphinx / "html" / source[1]).stat().st_size > 150_000
    pages = re.search(r'href="(_images/relay-\w+\.pdf)">PDF \(A4\)', html)
    assert pages and b"/MediaBox[0 0 595" in (sphinx / "html" / pages[1]).read_bytes()


def test_other_builders_of_sphinx_have_pictures_or_words(sphinx):
    names = re.findall(
        r"\\sphinxincludegraphics\{(relay-\w+\.pdf)\}", next((sphinx / "latex").glob("*.tex")).read_text()
    )
    assert len(names) == 3 and all((sphinx / "latex" / name).read_bytes().startswith(b"%PDF") for name in names)
    text = (sphinx / "text/index.txt").read_text()
    assert "[exp and relu are <one> kernel]" in text and "[The passes over mlp, FuseOps]" in text


def test_mkdocs_draws_fences(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("pymdownx")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(MARKDOWN)
    (tmp_path / "mkdocs.yml").write_text(MKDOCS.replace("theme: null", "theme:\n  name: mkdocs"))
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(tmp_path / "mkdocs.yml")))
    html = (tmp_path / "site/index.html").read_text()
    (picture,) = drawn(html)
    assert "exp and relu are &lt;one&gt; kernel" in picture and "merged" in picture
    assert '<iframe class="relaylab-passes"' in html and 'srcdoc="&lt;!DOCTYPE html&gt;' in html
    (tmp_path / "docs/index.md").write_text('```relay-graph network="mpl"\n```')
    with pytest.raises(Exception, match="did you mean `mlp`"):
        build(load_config(str(tmp_path / "mkdocs.yml")))


MARKER = "relaylab_was_here"


@pytest.mark.parametrize(
    "text, options, code",
    [
        ("", {"network": f"{MARKER}:factory"}, "embed.network"),  # `study.load` would import it
        ("", {"network": "os:getcwd"}, "embed.network"),
        ("", {"file": f"{MARKER}.py"}, "embed.file"),
        ("", {"file": f"{MARKER}.pt2"}, "embed.file"),
        ("", {}, "embed.program"),
        (RELAY, {"network": "mlp"}, "embed.program"),
        (RELAY, {"step": "FuseOpss"}, "embed.step"),
        (RELAY, {"hieght": "3"}, "embed.option"),
        (RELAY, {"direction": "RL"}, "embed.option"),
        (f"import {MARKER}", {}, "parse."),
        (RELAY, {"passes": f"FuseOps(__import__('{MARKER}'))"}, ""),
    ],
)
def test_what_a_block_cannot_mean_is_refused_and_nothing_is_run(text, options, code, tmp_path, monkeypatch):
    (tmp_path / f"{MARKER}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / f"{MARKER}.pt2").write_bytes(b"x")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RelayError) as error:
        Block.read("graph", text, options, tmp_path)
    assert error.value.code.startswith(code) and MARKER not in sys.modules and not (tmp_path / "ran").exists()


def test_every_option_of_a_picture_has_its_effect():
    plain = picture_html(Block.read("graph", "", {"network": "mlp"}))
    given = {"direction": "LR", "types": "edges", "collapse": "function", "select": "op:nn.dense",
             "focus": "op:nn.dense", "fold": "yes", "overlay": "MACs"}  # fmt: skip
    assert given.keys() | {"hops"} == {n for n, o in OPTIONS.items() if o.kinds == ("graph",)}
    for name, value in given.items():
        if name != "fold":  # nothing comes again in it
            assert picture_html(Block.read("graph", "", {"network": "mlp", name: value})) != plain, name
    text = {"hops": "2", "focus": "op:nn.softmax"}
    assert picture_html(Block.read("graph", "", {"network": "mlp", **text})) != plain


def test_an_explorer_opens_at_its_step():
    block = Block.read("passes", RELAY, {"passes": "FoldConstant,FuseOps", "step": "2", "view": "text"})
    assert "<title>The passes over a program, 2</title>" in explorer_page(block)
