"""Jupyter: magics, rich display, the pass explorer. IPython and widgets are imported only here.

`%load_ext relaylab` registers the magics; `%relay_help` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Register the magics and the completions, colour cells of Relay text; loading twice is loading once."""
    from relaylab.lab.cell_colours import colour_cells
    from relaylab.lab.completion import add_completions
    from relaylab.lab.magics import RelayMagics

    ip.register_magics(RelayMagics)
    add_completions(ip)
    colour_cells(ip)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Take the magics and the completions away."""
    from relaylab.lab.completion import remove_completions

    remove_completions(ip)
    for kind in ("line", "cell"):
        table = ip.magics_manager.magics[kind]
        for name in [n for n in table if n.startswith("relay")]:
            del table[name]
