"""The index of a site: lists that can be read without a script, and what the search looks through."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from relaylab.support.words import counted
from relaylab.viz.write.svg import escape

if TYPE_CHECKING:
    from relaylab.lab.site.lessons import LessonPage


@dataclass(frozen=True)
class SearchEntry:
    """Something that the search finds: its kind, its title, its text, and where it is."""

    kind: str
    title: str
    words: str
    href: str


@dataclass(frozen=True)
class StepLink:
    """A pass that changed a network: its name, what it did, the link to the stage after it."""

    name: str
    words: str
    href: str


@dataclass(frozen=True)
class Listed:
    """A network of the index."""

    entry: SearchEntry
    steps: tuple[StepLink, ...]


def shell(title: str, body: str, root: str = "", scripts: Sequence[str] = (), language: str = "en") -> str:
    """A page of the site; `root` is the way from it to the index, `language` that of its words."""
    loaded = "".join(f'<script src="{root}assets/{name}"></script>\n' for name in scripts)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="stylesheet" href="{root}assets/site.css">\n</head>\n'
        f'<body class="site">\n{body}{loaded}</body>\n</html>\n'
    )


def index_page(networks: Sequence[Listed], lessons: Mapping[str, Sequence[LessonPage]]) -> str:
    """The first page: a search field, the lessons, the networks with their steps."""
    entries = [*_entries(networks), *(e for group in lessons.values() for lesson in group for e in lesson.entries)]
    data = json.dumps([asdict(e) for e in entries], ensure_ascii=False).replace("<", "\\u003c")
    steps = sum(len(n.steps) for n in networks)
    body = (
        "<header><h1>relaylab</h1><p>Networks on their way through a tensor compiler: every step as a picture, "
        "every difference, every kernel.</p>\n"
        '<input id="search" type="search" placeholder="search networks, passes, operators, lessons ( / )" '
        'aria-label="search the site" hidden>\n<p id="count" role="status"></p></header>\n'
        '<main>\n<ol id="found"></ol>\n<div id="all">\n'
        f"{''.join(map(_lessons, lessons, lessons.values()))}"
        f"<h2>Networks</h2>\n<p>{counted(len(networks), 'network')}, {counted(steps, 'step')}</p>\n"
        f'<ul class="networks">\n{"".join(map(_network, networks))}</ul>\n</div>\n</main>\n'
        f'<script type="application/json" id="site-data">{data}</script>\n'
    )
    return shell("relaylab", body, scripts=["site.js"])


def _entries(networks: Iterable[Listed]) -> Iterable[SearchEntry]:
    for network in networks:
        yield network.entry
        yield from (SearchEntry("step", f"{network.entry.title}: {s.name}", s.words, s.href) for s in network.steps)


def _network(network: Listed) -> str:
    entry = network.entry
    steps = "".join(
        f'<li><a href="{escape(s.href)}">{escape(s.name)}</a> {escape(s.words)}</li>\n' for s in network.steps
    )
    return (
        f'<li><a href="{escape(entry.href)}"><strong>{escape(entry.title)}</strong></a> '
        f"{escape(entry.words.partition('. ')[0])}\n"
        f"<details><summary>{counted(len(network.steps), 'step')}</summary><ol>\n{steps}</ol></details></li>\n"
    )


def _lessons(title: str, lessons: Sequence[LessonPage]) -> str:
    if not lessons:
        return ""
    rows = "".join(
        f'<li><a href="{escape(x.href)}">{escape(x.title)}</a> <span>{escape(x.about)}</span></li>\n' for x in lessons
    )
    return f'<h2>{escape(title)}</h2>\n<ol class="lessons">\n{rows}</ol>\n'
