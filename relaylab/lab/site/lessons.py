"""Notebooks as pages of a site: text, code, and the pictures that it makes."""

from __future__ import annotations

import json
import os
import posixpath
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from mimetypes import guess_type
from pathlib import Path
from textwrap import shorten
from typing import cast
from urllib.parse import quote, unquote

import nbformat
from latex2mathml.converter import convert
from nbclient import NotebookClient
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from relaylab.lab.embed.block import data_uri
from relaylab.lab.site.index import SearchEntry, shell
from relaylab.support.errors import RelayValueError
from relaylab.support.language import LANGUAGES
from relaylab.viz.write import html
from relaylab.viz.write.modules import script

ABOUT = 240
"""Letters of the first paragraph that the index shows."""
TIME = 600
"""Seconds that a cell of a lesson may take."""
_HEADING = re.compile(r"^#{1,3} +(.+?)\s*#*$", re.MULTILINE)
_LINK = re.compile(r'<a href="([^":#?]+\.(?:ipynb|md))(#[^"]*)?">(.*?)</a>', re.DOTALL)
_IMAGE = re.compile(r'<img src="([^":?#]+)"')
Cell = Mapping[str, object]


@dataclass(frozen=True)
class LessonGroup:
    """Notebooks and pages of Markdown under one heading of the index, and the folder of the site that they go to."""

    title: str
    folder: str
    paths: Sequence[Path]

    def hrefs(self) -> dict[Path, str]:
        """Where the page of each stands in the site."""
        return {path.resolve(): f"{self.folder}/{quote(path.stem)}.html" for path in self.paths}


@dataclass(frozen=True)
class LessonPage:
    """A lesson of the site: its title, its first words, its page, and what the search finds of it."""

    title: str
    about: str
    href: str
    page: str
    entries: tuple[SearchEntry, ...]


def lesson(path: Path, hrefs: Mapping[Path, str], run: bool = True) -> LessonPage:
    """The page of a notebook or of Markdown; a notebook without stored outputs is run first, in a folder of its own,
    if `run`. `hrefs` are the pages of the site: links between their sources lead from page to page, others are words.
    """
    cells = _cells(path)
    if run and path.suffix == ".ipynb" and not any(c.get("outputs") for c in cells):
        cells = executed(path)
    texts = [(str(c["cell_type"]), _joined(c["source"])) for c in cells]
    heading = next((t for kind, t in texts if kind == "markdown"), "")
    title = found[1] if (found := _HEADING.search(heading)) else path.stem
    words = (p.replace("\n", " ") for p in _HEADING.sub("", heading).strip().split("\n\n"))
    about = next((w for w in words if not w.startswith("*")), "")  # a line in italics says which lesson it is
    href = hrefs[path.resolve()]
    root = "../" * href.count("/")
    book = f'<a href="{quote(path.name)}" download>open in a notebook</a>' if path.suffix == ".ipynb" else ""
    bar = (
        f'<nav class="site-bar"><a href="{root}index.html">relaylab</a> <strong>{escape(title)}</strong> {book}</nav>\n'
    )
    text = _LINK.sub(lambda m: _led(m, path, href, hrefs), "".join(_cell(c, k) for k, c in enumerate(cells)))
    text = _IMAGE.sub(lambda m: _carried(m, path), text)
    language = next((name for name in href.split("/") if name in LANGUAGES), LANGUAGES[0])
    page = shell(title, _shared(f"{bar}<main>\n{text}</main>\n", root), root, language=language)
    return LessonPage(
        _plain(title), shorten(_plain(about), ABOUT, placeholder=" …"), href, page, tuple(_sections(title, texts, href))
    )


def _cells(path: Path) -> list[Cell]:
    try:
        text = path.read_text(encoding="utf-8")
        return [{"cell_type": "markdown", "source": text}] if path.suffix == ".md" else json.loads(text)["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RelayValueError(f"{path} is no notebook: {error}", code="site.notebook") from None


def _led(link: re.Match[str], path: Path, href: str, hrefs: Mapping[Path, str]) -> str:
    """A link to another source as a link to its page, or as words where it has none."""
    target = hrefs.get((path.parent / unquote(link[1])).resolve())
    if target is None:
        return link[3]
    return f'<a href="{escape(posixpath.relpath(target, posixpath.dirname(href)))}{link[2] or ""}">{link[3]}</a>'


def _carried(image: re.Match[str], path: Path) -> str:
    """A picture that lies beside the source in the page itself; one that is not there stays as it is."""
    file = path.parent / unquote(image[1])
    kind = guess_type(file.name)[0] or ""
    if not kind.startswith("image/") or not file.is_file():
        return image[0]
    return f'<img src="{data_uri(file.read_bytes(), kind)}"'


def executed(path: Path) -> list[Cell]:
    """The cells of a notebook with what they give, run in a folder that is thrown away."""
    made = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["--log-level=ERROR"]  # kernels warn of what nobody who builds a site has chosen
        client = NotebookClient(
            made, timeout=TIME, kernel_name="python3", extra_arguments=quiet, resources={"metadata": {"path": folder}}
        )
        client.execute(env={**os.environ, "RELAYLAB_COURSE_DIR": ""})  # who builds a site has solved nothing
        text = json.dumps(made.cells)
        for own in (folder, str(Path(__file__).parents[3]), str(Path.home())):
            text = text.replace(f"{own}/", "")  # a page is sent to others
        return json.loads(text)


def _joined(text: object) -> str:
    return "".join(cast("list[str]", text)) if isinstance(text, list) else str(text)


def _cell(cell: Cell, number: int) -> str:
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        text = MarkdownWithMath(renderer=_Renderer(escape=False)).render(source)
        return f'<section id="cell{number}">{text}</section>\n'
    if cell["cell_type"] != "code":
        return f"<pre>{escape(source)}</pre>\n"
    outputs = cast("list[Mapping[str, object]]", cell.get("outputs", []))
    shown = f'<pre class="code"><code>{escape(source)}</code></pre>' if source.strip() else ""
    return f'<section id="cell{number}">{shown}{"".join(map(_output, outputs))}</section>\n'


class _Renderer(IPythonRenderer):
    """Markdown as HTML, formulas as MathML: a page needs no script and no network for them."""

    def inline_math(self, body: str) -> str:
        return self._formula(body, "inline")

    def block_math(self, body: str) -> str:
        return self._formula(body, "block")

    def _formula(self, body: str, display: str) -> str:
        try:
            return convert(body, display=display)
        except Exception:  # the library's errors have no class in common
            return escape(body)


def _output(output: Mapping[str, object]) -> str:
    """What a cell gave: a picture where it has one, else its text."""
    kind = output["output_type"]
    if kind == "stream":
        return _pre(_joined(output["text"]))
    if kind == "error":
        return _pre("\n".join(cast("list[str]", output["traceback"])))
    data = cast("Mapping[str, object]", output.get("data", {}))
    if "application/vnd.jupyter.widget-view+json" in data and "text/html" not in data:
        return ""  # the picture that stands for the widget is an output of its own
    if "text/html" in data:
        return f'<div class="output">{_joined(data["text/html"])}</div>'
    if "image/svg+xml" in data:
        return f'<div class="output">{_joined(data["image/svg+xml"])}</div>'
    for form in ("image/png", "image/jpeg"):
        if form in data:
            return (
                f'<div class="output"><img alt="output" src="data:{form};base64,{_joined(data[form]).strip()}"></div>'
            )
    return _pre(_joined(data.get("text/plain", "")))


def _pre(text: str) -> str:
    return f'<pre class="output">{escape(strip_ansi(text).rstrip())}</pre>' if text.strip() else ""


def _shared(body: str, root: str) -> str:
    """The page without the copies of the script that each picture of a notebook brings; the site has it once."""
    own = f"<script>({script(html.STATIC / 'hydrate.js')})("
    return f'<script src="{root}assets/picture.js"></script>\n' + body.replace(own, "<script>hydrate(")


def _sections(title: str, texts: Iterable[tuple[str, str]], href: str) -> Iterable[SearchEntry]:
    """An entry of the search for each heading, with the text and code below it."""
    name, words, at = title, "", 0
    for number, (kind, text) in enumerate(texts):
        found = _HEADING.search(text) if kind == "markdown" else None
        if found is not None and number:
            yield SearchEntry("lesson", name, words, f"{href}#cell{at}")
            name, words, at = f"{title}: {_plain(found[1])}", "", number
        words += (_plain(_HEADING.sub("", text)) if kind == "markdown" else text).strip() + " "
    yield SearchEntry("lesson", name, words, f"{href}#cell{at}")


def _plain(text: str) -> str:
    """Markdown as words."""
    return re.sub(r"\]\([^)]*\)|[*`$\[]|<[^>]+>", "", text).replace("\n", " ")
