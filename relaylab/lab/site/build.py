"""Writes the files of a site: what pages share, a page and a notebook of each network, the lessons, the index."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from relaylab.explorer.session import Session
from relaylab.lab.page import classic, document, page_sheet
from relaylab.lab.saved_page import snapshot
from relaylab.lab.site.index import Listed, SearchEntry, StepLink, index_page
from relaylab.lab.site.lessons import LessonGroup, LessonPage, lesson
from relaylab.study.exploration import Exploration, Row, explore
from relaylab.study.pipeline import operators
from relaylab.support.quoting import python_text
from relaylab.transform import PASSES
from relaylab.viz.write import files, html
from relaylab.viz.write.modules import script
from relaylab.viz.write.svg import escape
from relaylab.zoo.catalog import NETWORKS

STATIC = Path(__file__).parent / "static"
SHARED = {
    "explorer.js": lambda: classic("saved.js"),
    "explorer.css": page_sheet,
    "picture.js": lambda: script(html.STATIC / "hydrate.js"),
    "site.js": lambda: f"(() => {{\n{script(STATIC / 'site.js')}\n}})();\n",
    "site.css": lambda: (STATIC / "site.css").read_text(encoding="utf-8"),
}
"""The files that all pages share, by name, and what writes them."""

ASKED = ("%relay_passes {}", "%relay_why {}", "%relay_profile {} --operators")
"""What the notebook of a network asks about it."""


@dataclass(frozen=True)
class Built:
    """A file of the site that was written, and how long it took."""

    path: Path
    seconds: float

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size


def build(
    out: Path, networks: Iterable[str] | None = None, lessons: Sequence[LessonGroup] = (), run_lessons: bool = True
) -> Iterator[Built]:
    """Write a site to a folder, file by file; each is told when it is there.

    `networks` are names of the zoo or files of programs (default: the whole zoo), `lessons` notebooks and pages.
    Notebooks without stored outputs are run, unless `run_lessons` is false.
    """
    for folder in ("assets", "networks", *(group.folder for group in lessons)):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name, text in SHARED.items():
        yield _timed(lambda name=name, text=text: files.write(out / "assets" / name, text()))
    listed: list[Listed] = []
    for name in dict.fromkeys(NETWORKS if networks is None else networks):
        yield _timed(lambda name=name: _network(out / "networks", name, listed))
    hrefs = {path: href for group in lessons for path, href in group.hrefs().items()}
    told: dict[str, list[LessonPage]] = {group.title: [] for group in lessons}
    for group in lessons:
        for path in group.paths:
            yield _timed(lambda path=path, pages=told[group.title]: _lesson(out, path, hrefs, pages, run_lessons))
    yield _timed(lambda: files.write(out / "index.html", index_page(listed, told)))


def _timed(work: Callable[[], Path]) -> Built:
    start = time.perf_counter()
    return Built(work(), time.perf_counter() - start)


def _network(folder: Path, what: str, listed: list[Listed]) -> Path:
    """The page of one network and a notebook of it; what the index says of them is added to `listed`."""
    exploration = explore(what)
    name, taken = exploration.program.name, [x.entry.title for x in listed]
    if name in taken:  # files of one name in two folders
        name = next(f"{name}-{k}" for k in range(2, len(taken) + 3) if f"{name}-{k}" not in taken)
    about = NETWORKS[what].about if what in NETWORKS else ""
    bar = (
        f'<nav class="site-bar"><a href="../index.html">relaylab</a> <strong>{escape(name)}</strong> '
        f'<span>{escape(about)}</span> <a href="{quote(name)}.ipynb" download>open in a notebook</a></nav>\n'
    )
    style = '<link rel="stylesheet" href="../assets/explorer.css">\n<link rel="stylesheet" href="../assets/site.css">'
    run = '<script src="../assets/explorer.js"></script>'
    page = files.write(folder / f"{name}.html", document(snapshot(Session(exploration)), name, style, run, bar))
    files.write(folder / f"{name}.ipynb", notebook(what, name, about))
    listed.append(_listed(exploration, name, about, f"networks/{quote(name)}.html"))
    return page


def _listed(exploration: Exploration, name: str, about: str, href: str) -> Listed:
    """What the index says of a network: its operators, and a permanent link to each step that changed it."""
    counts = operators(exploration.program.mod)
    names = {item.name for item in exploration.pipeline.items}
    steps = tuple(
        StepLink(row.name, _change(row), f"{href}#stage={row.name}")
        for row in exploration.rows
        if row.changed and row.name in names
    )
    words = (
        f"{about}. {sum(counts.values())} operator calls: {', '.join(f'{n} {op}' for op, n in counts.most_common())}"
    )
    return Listed(SearchEntry("network", name, words, href), steps)


def _change(row: Row) -> str:
    entry = PASSES.get(row.name)
    delta = ", ".join(f"{n:+d} {name}" for name, n in row.delta.items())
    return ". ".join(filter(None, (delta, entry.summary if entry is not None else "")))


def _lesson(out: Path, path: Path, hrefs: Mapping[Path, str], told: list[LessonPage], run: bool) -> Path:
    found = lesson(path, hrefs, run)
    told.append(found)
    page = out / unquote(found.href)
    if path.suffix == ".ipynb":
        files.write(page.with_name(path.name), path.read_bytes())
    return files.write(page, found.page)


def notebook(what: str, name: str, about: str) -> str:
    """A notebook that opens a program in the explorer, asks why passes do what they do, and measures it."""
    known = what in NETWORKS
    needs = "" if known else f" and the file `{what}`"
    page = f"[{name}.html]({quote(name)}.html)"
    heading = f"# {name}\n\n{about}\n\nSaved as a page: {page}. Needs `pip install relaylab`{needs}."
    loaded = () if known else (f"from relaylab import study\n\nprogram = study.load({python_text(what)})",)
    asked = what if known else "program"
    code = ("%load_ext relaylab", *loaded, *(line.format(asked) for line in ASKED))
    cells: list[dict[str, object]] = [{"cell_type": "markdown", "id": "about", "metadata": {}, "source": heading}]
    cells += [
        {"cell_type": "code", "id": f"cell{k}", "metadata": {}, "source": c, "outputs": [], "execution_count": None}
        for k, c in enumerate(code)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"
