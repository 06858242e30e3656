"""Blocks of MkDocs (or any Python-Markdown): fences of `pymdownx.superfences`, drawn when the page is made.

markdown_extensions:
  - pymdownx.superfences:
      custom_fences:
        - name: relay-graph
          class: relay-graph
          format: !!python/name:relaylab.lab.embed.mkdocs.draw
          validator: !!python/name:relaylab.lab.embed.mkdocs.accept
        - name: relay-passes
          class: relay-passes
          format: !!python/name:relaylab.lab.embed.mkdocs.draw
          validator: !!python/name:relaylab.lab.embed.mkdocs.accept

A block that means nothing stops the build. Files are looked for from the folder in which MkDocs runs.
"""

# it need not be installed; what it offers is unknown then
# pyright: reportMissingImports=false

from __future__ import annotations

from html import escape
from typing import cast

from pymdownx.superfences import SuperFencesException

from relaylab.lab.embed.block import Block, Kind, a4, data_uri, explorer_page, frame_html, picture_html
from relaylab.support.errors import RelayError


def accept(language: str, inputs: dict[str, str], options: dict[str, str], attrs: dict[str, str], md: object) -> bool:
    """Take every option of a fence; the block says which it does not know."""
    options.update(inputs)
    return True


def draw(source: str, language: str, css_class: str, options: dict[str, str], md: object, **others: object) -> str:
    """The HTML of a fence; raises `SuperFencesException` with the words of the error."""
    try:
        block = Block.read(cast("Kind", language.removeprefix("relay-")), source, options)
        shown = picture_html(block) if block.kind == "graph" else _explorer(block)
    except RelayError as error:
        raise SuperFencesException(f"{language}: {error}") from None
    return f'<div class="{escape(css_class)}">{shown}{_pages(block)}</div>'


def _explorer(block: Block) -> str:
    return frame_html(block, f'srcdoc="{escape(explorer_page(block))}"')


def _pages(block: Block) -> str:
    if not block.has("a4"):
        return ""
    return f'<p><a download="{escape(block.alt)}.pdf" href="{data_uri(a4(block), "application/pdf")}">PDF (A4)</a></p>'
