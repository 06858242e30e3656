"""Notebooks as pages of a site: text, code, and the pictures that it makes."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import cast

import nbformat
from nbclient import NotebookClient
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from relaylab.lab.site.index import SearchEntry, shell
from relaylab.support.errors import RelayValueError
from relaylab.viz.write import html
from relaylab.viz.write.modules import script

TIME = 600
"""Seconds that a cell of a lesson may take."""
_HEADING = re.compile(r"^#{1,3} +(.+?)\s*#*$", re.MULTILINE)
Cell = Mapping[str, object]


@dataclass(frozen=True)
class LessonPage:
    """A lesson of the site: its title, its first words, its page, and what the search finds of it."""

    title: str
    about: str
    href: str
    page: str
    entries: tuple[SearchEntry, ...]


def lesson(path: Path, run: bool = True) -> LessonPage:
    """The page of a notebook; one without stored outputs is run first, in a folder of its own, if `run`."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RelayValueError(f"{path} is no notebook: {error}", code="site.notebook") from None
    if run and not any(c.get("outputs") for c in cells):
        cells = executed(path)
    texts = [(str(c["cell_type"]), _joined(c["source"])) for c in cells]
    heading = next((t for kind, t in texts if kind == "markdown"), "")
    title = found[1] if (found := _HEADING.search(heading)) else path.stem
    about = _HEADING.sub("", heading).strip().split("\n\n")[0].replace("\n", " ")
    href = f"lessons/{path.stem}.html"
    bar = (
        f'<nav class="site-bar"><a href="../index.html">relaylab</a> <strong>{escape(title)}</strong> '
        f'<a href="{escape(path.name)}" download>open in a notebook</a></nav>\n'
    )
    body = f"{bar}<main>\n{''.join(_cell(c, k) for k, c in enumerate(cells))}</main>\n"
    page = shell(title, _shared(body), "../")
    return LessonPage(title, _plain(about), href, page, tuple(_sections(title, texts, href)))


def executed(path: Path) -> list[Cell]:
    """The cells of a notebook with what they give, run in a folder that is thrown away."""
    made = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(made, timeout=TIME, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
        text = json.dumps(made.cells)
        for own in (folder, str(Path(__file__).parents[3]), str(Path.home())):
            text = text.replace(f"{own}/", "")  # a page is sent to others
        return json.loads(text)


def _joined(text: object) -> str:
    return "".join(cast("list[str]", text)) if isinstance(text, list) else str(text)


def _cell(cell: Cell, number: int) -> str:
    source = _joined(cell["source"])
    if cell["cell_type"] == "markdown":
        return f'<section id="cell{number}">{markdown2html_mistune(source)}</section>\n'
    if cell["cell_type"] != "code":
        return f"<pre>{escape(source)}</pre>\n"
    outputs = cast("list[Mapping[str, object]]", cell.get("outputs", []))
    shown = f'<pre class="code"><code>{escape(source)}</code></pre>' if source.strip() else ""
    return f'<section id="cell{number}">{shown}{"".join(map(_output, outputs))}</section>\n'


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


def _shared(body: str) -> str:
    """The page without the copies of the script that each picture of a notebook brings; the site has it once."""
    own = f"<script>({script(html.STATIC / 'hydrate.js')})("
    return '<script src="../assets/picture.js"></script>\n' + body.replace(own, "<script>hydrate(")


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
    return re.sub(r"\]\([^)]*\)|[*`\[]|<[^>]+>", "", text).replace("\n", " ")
