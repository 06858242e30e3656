"""A block of a document: Relay text, a file or a network, drawn as a picture or as the explorer.

Nothing in a block is ever run as Python: text is parsed as Relay, a name is looked up among the networks, a file is
Relay text or an ONNX model, passes are written as commands write them.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Literal

from relaylab import relay, study, viz
from relaylab.explorer.session import Session
from relaylab.lab.page import page
from relaylab.lab.saved_page import PANES, snapshot
from relaylab.study.program import ONNX_SUFFIX, TEXT_SUFFIXES
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write import formats
from relaylab.viz.write.html import bundle
from relaylab.zoo.catalog import NETWORKS

Kind = Literal["graph", "passes"]
DRAWN = ("direction", "types", "collapse", "fold", "select", "focus", "hops", "overlay")
"""Options of a picture that are those of `viz.show`."""


@dataclass(frozen=True)
class BlockOption:
    """An option of a block: what it says, which of the two blocks have it, whether it is a flag or one of few words."""

    about: str
    kinds: tuple[Kind, ...] = ("graph", "passes")
    flag: bool = False
    words: tuple[str, ...] = ()
    number: bool = False


OPTIONS: Mapping[str, BlockOption] = {
    "network": BlockOption("a network of the zoo"),
    "file": BlockOption("a file of Relay text, or an ONNX model"),
    "alt": BlockOption("the picture in words, for those who do not see it"),
    "passes": BlockOption("these passes instead of the default ones: A,B(x=1)"),
    "level": BlockOption("the optimization level (3)", number=True),
    "step": BlockOption("a pass: what it changed is drawn, or the explorer opens there"),
    "a4": BlockOption("offer the pictures as pages of A4 too", flag=True),
    "view": BlockOption("how the explorer opens", ("passes",), words=PANES),
    "height": BlockOption("how high the explorer is, in pixels (640)", ("passes",), number=True),
    "direction": BlockOption("top to bottom or left to right", ("graph",), words=("TB", "LR")),
    "types": BlockOption("where types are shown", ("graph",), words=("nodes", "edges", "both", "none")),
    "collapse": BlockOption("groups as cards: a kind such as primitive, or how many levels stay open", ("graph",)),
    "fold": BlockOption("repeated blocks as one card", ("graph",), flag=True),
    "select": BlockOption("mark nodes, by a query", ("graph",)),
    "focus": BlockOption("only these nodes, and what is near", ("graph",)),
    "hops": BlockOption("how many edges are near (1)", ("graph",), number=True),
    "overlay": BlockOption("colour nodes by MACs, bytes, …", ("graph",)),
}
"""The options of blocks, for every tool."""


@dataclass(frozen=True)
class Block:
    """What a document says: a kind, the text inside, options; where its file is, and when that was written."""

    kind: Kind
    text: str = ""
    options: tuple[tuple[str, str], ...] = ()
    folder: str = "."
    stamp: int = 0

    def get(self, name: str, otherwise: str = "") -> str:
        """An option."""
        return dict(self.options).get(name, otherwise)

    @classmethod
    def read(cls, kind: Kind, text: str, options: Mapping[str, str], folder: str | Path = ".") -> Block:
        """A block that has been checked; raises `RelayError` for what it cannot mean."""
        made = cls(kind, text, tuple(options.items()), str(folder))
        path = made.path()
        made = replace(made, stamp=path.stat().st_mtime_ns) if path is not None and path.is_file() else made
        made.check()
        return made

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return name in dict(self.options)

    @property
    def alt(self) -> str:
        """The picture in words."""
        named = self.get("network") or Path(self.get("file")).stem or "a program"
        at = f", {self.get('step')}" if self.get("step") else ""
        return self.get("alt") or (f"{named}{at}" if self.kind == "graph" else f"The passes over {named}{at}")

    def path(self) -> Path | None:
        """The file that the block names."""
        return Path(self.folder) / self.get("file") if self.get("file") else None

    def check(self) -> None:
        """Raise `RelayError` for what the block cannot mean."""
        for name, value in self.options:
            option = OPTIONS.get(name)
            if option is None or self.kind not in option.kinds:
                known = [n for n, o in OPTIONS.items() if self.kind in o.kinds]
                help = did_you_mean(name, known) or f"there are: {', '.join(known)}"
                raise RelayValueError(f"relay-{self.kind} has no option `{name}`", code="embed.option", help=help)
            if (option.words and value not in option.words) or (option.number and not value.isdecimal()):
                help = f"it is one of {', '.join(option.words)}" if option.words else "it is a number"
                raise RelayValueError(f"`{name}` cannot be `{value}`", code="embed.option", help=help)
        session_of(self)


def program_of(block: Block) -> study.Program:
    """The program of a block; exactly one of text, file and network says it."""
    network, path = block.get("network"), block.path()
    if sum(map(bool, (network, path, block.text.strip()))) != 1:
        help = "give Relay text inside the block, or a network, or a file"
        raise RelayValueError("a block has one program", code="embed.program", help=help)
    if network:
        if network not in NETWORKS:  # and nothing else that `study.load` would take
            help = did_you_mean(network, NETWORKS) or f"there are: {', '.join(NETWORKS)}"
            raise RelayValueError(f"there is no network `{network}`", code="embed.network", help=help)
        return study.load(network)
    if path is None:
        return study.Program("program", relay.parse(block.text, "block", fill=0))
    if path.suffix not in (*TEXT_SUFFIXES, ONNX_SUFFIX):
        help = f"it is Relay text ({' '.join(TEXT_SUFFIXES)}) or a model ({ONNX_SUFFIX})"
        raise RelayValueError(f"`{path.name}` cannot be in a document", code="embed.file", help=help)
    return study.load(path)


@lru_cache(16)
def session_of(block: Block) -> Session:
    """The pipeline of a block, run."""
    passes = study.split(block.get("passes")) if block.get("passes") else None
    session = Session(study.explore(program_of(block), int(block.get("level", "3")), passes))
    frame_of(session, block.get("step"))
    return session


def frame_of(session: Session, step: str) -> int:
    """The frame after a pass, which is named or numbered; the last one of that name that changed something."""
    names = [item.name for item in session.pipeline.items]
    found = [k for k, name in enumerate(names, 1) if name == step]
    changing = [k for k in found if k in session.frames.changing()]
    if step.isdecimal() and int(step) <= len(names):
        return int(step)
    if step and not found:
        help = did_you_mean(step, names) or f"the pipeline has {', '.join(dict.fromkeys(names))}"
        raise RelayValueError(f"there is no step `{step}`", code="embed.step", help=help)
    return (changing or found or [0])[-1]


def pictures(block: Block) -> list[viz.Picture]:
    """The pictures of a block: one of a graph, all stages of a pipeline."""
    session = session_of(block)
    if block.kind == "passes":
        return study.Exploration(session.program, session.pipeline).pictures
    at, views = frame_of(session, block.get("step")), session.frames.views
    changed = at > 0 and views[at - 1] is not views[at]
    shown = viz.Difference(views[at - 1], views[at]).merged if changed else views[at]
    options = {name: _value(name, block.get(name)) for name in DRAWN if block.has(name)}
    return [viz.show(shown, **options)]


def scene_of(block: Block) -> Scene:
    """The one picture that stands for a block where nothing moves, named by its words."""
    session = session_of(block)
    if block.kind == "graph":
        return replace(pictures(block)[0].scene, title=block.alt)
    at = frame_of(session, block.get("step")) if block.get("step") else session.first
    return replace(session.still(max(0, at - 1), at), title=block.alt)


def picture_html(block: Block) -> str:
    """The picture of a block for a page: an image that its script makes movable."""
    return bundle(scene_of(block), block.alt)["text/html"]


def explorer_page(block: Block) -> str:
    """The explorer of a block as a page of its own."""
    session = session_of(block)
    at = frame_of(session, block.get("step")) if block.get("step") else session.first
    chosen = {"before": max(0, at - 1), "after": at, "pane": block.get("view", "graph")}
    return page(snapshot(session, chosen), block.alt)


def frame_html(block: Block, source: str) -> str:
    """The explorer inside a page; `source` is the attribute that says where its page is."""
    style = f"width:100%;height:{int(block.get('height', '640'))}px;border:1px solid #94a3b8"
    return (
        f'<iframe class="relaylab-passes" title="{escape(block.alt)}" style="{style}" loading="lazy" {source}></iframe>'
    )


def a4(block: Block) -> bytes:
    """The pictures of a block on pages of A4."""
    made = formats.data(pictures(block), "pdf", block.alt, {"paper": "a4"})
    assert isinstance(made, bytes)
    return made


def data_uri(data: bytes, kind: str) -> str:
    """Bytes as an address that needs no file."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _value(name: str, text: str) -> str | int | bool:
    option = OPTIONS[name]
    return True if option.flag else int(text) if option.number else text
