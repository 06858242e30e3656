"""Directives of Sphinx: `.. relay-graph::` draws a program, `.. relay-passes::` opens it in the explorer.

extensions = ["relaylab.lab.embed.sphinx"]

Pages of HTML get the picture or the explorer itself, other builders a picture. Nothing in a block is run.
"""

# it need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

import posixpath
from collections.abc import Callable
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import ClassVar, Protocol, cast

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import relaylab
from relaylab.lab.embed.block import OPTIONS, Block, Kind, a4, explorer_page, frame_html, picture_html, scene_of
from relaylab.support.errors import RelayError
from relaylab.viz.write import files
from relaylab.viz.write.pdf import pdf
from relaylab.viz.write.svg import svg


class SphinxBuilder(Protocol):
    """What is asked of a builder of Sphinx."""

    name: str
    format: str
    imagedir: str
    imgpath: str
    outdir: Path


class SphinxTranslator(Protocol):
    """What is asked of a translator of docutils."""

    builder: SphinxBuilder
    body: list[str]


class relay_block(nodes.General, nodes.Element):  # docutils names its visitors after the class
    """A block in a document; `block` is what it says."""


class RelayDirective(SphinxDirective):
    """A network as the argument, or a file as an option, or Relay text as the content."""

    kind: ClassVar[Kind] = "graph"
    has_content = True
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The block as a node, if it can be read."""
        given = {name: "yes" if value is None else str(value) for name, value in self.options.items()}
        folder = Path(self.env.srcdir)
        if self.arguments:
            given["network"] = self.arguments[0]
        if "file" in given:
            given["file"], _ = self.env.relfn2path(given["file"])
            self.env.note_dependency(given["file"])
        try:
            block = Block.read(self.kind, "\n".join(self.content), given, folder)
        except RelayError as error:
            raise self.error(str(error)) from None
        node = relay_block("", block=block)
        self.set_source_info(node)
        return [node]


def directive(kind: Kind) -> type[RelayDirective]:
    """The directive of a kind of block."""
    spec = {
        name: directives.flag if option.flag else directives.unchanged_required
        for name, option in OPTIONS.items()
        if kind in option.kinds and name != "network"
    }
    return cast(
        "type[RelayDirective]", type(f"Relay{kind.title()}", (RelayDirective,), {"kind": kind, "option_spec": spec})
    )


def kept(writer: SphinxTranslator, block: Block, suffix: str, make: Callable[[Block], str | bytes]) -> str:
    """The name of a file of a block beside the images of the document, written once."""
    data = make(block)
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    name = f"relay-{sha256(raw).hexdigest()[:16]}.{suffix}"
    builder = writer.builder
    folder = Path(builder.outdir) / (builder.imagedir if builder.format == "html" else "")
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / name).exists():
        files.write(folder / name, raw)
    return name


def visit_html(writer: SphinxTranslator, node: nodes.Element) -> None:
    """The picture or the explorer; in a book (EPUB), where no script runs, an image."""
    block: Block = node["block"]
    place = writer.builder.imgpath
    if writer.builder.name == "epub":
        image = posixpath.join(place, kept(writer, block, "svg", lambda b: svg(scene_of(b))))
        shown = f'<img alt="{escape(block.alt)}" src="{image}">'
    elif block.kind == "graph":
        shown = picture_html(block)
    else:
        page = posixpath.join(place, kept(writer, block, "html", explorer_page))
        source = f'src="{page}"'
        shown = f'{frame_html(block, source)}<p><a href="{page}">on a page of its own</a></p>'
    pages = ""
    if block.has("a4"):
        pages = f'<p><a href="{posixpath.join(place, kept(writer, block, "pdf", a4))}">PDF (A4)</a></p>'
    writer.body.append(f'<div class="relay-{block.kind}">{shown}{pages}</div>\n')
    raise nodes.SkipNode


def visit_latex(writer: SphinxTranslator, node: nodes.Element) -> None:
    """The picture as vectors."""
    name = kept(writer, node["block"], "pdf", lambda b: pdf([scene_of(b)], title=b.alt))
    writer.body.append(r"\begin{center}\sphinxincludegraphics{" + name + "}\\end{center}\n")
    raise nodes.SkipNode


def visit_text(writer: SphinxTranslator, node: nodes.Element) -> None:
    """The words that stand for the picture."""
    words = f"[{node['block'].alt}]"
    add = getattr(writer, "add_text", None)
    add(words) if add is not None else writer.body.append(words)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, object]:
    """What Sphinx asks an extension for."""
    words = dict.fromkeys(("text", "man", "texinfo"), (visit_text, None))
    app.add_node(relay_block, override=False, html=(visit_html, None), latex=(visit_latex, None), **words)
    for kind in ("graph", "passes"):
        app.add_directive(f"relay-{kind}", directive(kind))
    return {"version": relaylab.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
