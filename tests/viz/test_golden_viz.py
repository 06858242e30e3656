"""Golden pictures of the built-in engine; `--update-golden` rewrites them, git shows the difference."""

from __future__ import annotations

import contextlib
import io

import pytest
from programs import SOURCES, program

from relaylab.contrib import relay_viz
from relaylab.viz import View, show, view


def without_places(made: View) -> View:
    """The view without spans, which name files of this machine."""
    from dataclasses import replace

    return replace(
        made,
        nodes=tuple(replace(n, span="") for n in made.nodes),
        groups=tuple(replace(g, span="") for g in made.groups),
    )


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("form", ["svg", "dot", "txt"])
def test_pictures(name, form, golden):
    golden(f"viz/{name}.{form}", show(without_places(view(program(name), title=name))).data(form))


@pytest.mark.parametrize("name", SOURCES)
def test_relay_viz_trees(name, golden):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        relay_viz.RelayVisualizer(program(name)).render()
    golden(f"viz/{name}.relay_viz.txt", out.getvalue())
