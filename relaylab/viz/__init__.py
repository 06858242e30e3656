"""Pictures of programs: neutral graph view, layered layout, scene, writers, and the diff of two stages."""

from relaylab.viz.diff import Difference, diff
from relaylab.viz.from_ir import view
from relaylab.viz.identity import Identities
from relaylab.viz.picture import Picture, save, show
from relaylab.viz.view import Attr, Edge, Group, Node, Operand, View

__all__ = [
    "Attr",
    "Difference",
    "Edge",
    "Group",
    "Identities",
    "Node",
    "Operand",
    "Picture",
    "View",
    "diff",
    "save",
    "show",
    "view",
]
