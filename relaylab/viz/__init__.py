"""Pictures of programs: neutral graph view, layered layout, scene, writers, and the diff of two stages."""

from relaylab.viz.arrange import arranged
from relaylab.viz.blocks import repeats
from relaylab.viz.difference import Difference, diff
from relaylab.viz.figures import overlay
from relaylab.viz.fold import collapse, focus
from relaylab.viz.from_ir import view
from relaylab.viz.graph import Attr, Edge, Group, Node, Operand, View
from relaylab.viz.identity import Identities
from relaylab.viz.memory import timeline
from relaylab.viz.optable import OperatorTable, operator_table
from relaylab.viz.part import extract
from relaylab.viz.paths import path
from relaylab.viz.picture import Picture, save, show
from relaylab.viz.query import select

__all__ = [
    "Attr",
    "Difference",
    "Edge",
    "Group",
    "Identities",
    "Node",
    "Operand",
    "OperatorTable",
    "Picture",
    "View",
    "arranged",
    "collapse",
    "diff",
    "extract",
    "focus",
    "operator_table",
    "overlay",
    "path",
    "repeats",
    "save",
    "select",
    "show",
    "timeline",
    "view",
]
