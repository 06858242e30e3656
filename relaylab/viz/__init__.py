"""Pictures of programs: neutral graph view, layered layout, scene, writers, and the diff of two stages."""

from relaylab.viz.arrange import arranged
from relaylab.viz.diffs.difference import Difference, diff
from relaylab.viz.draw.from_ir import view
from relaylab.viz.figures.memory import held_bytes, timeline
from relaylab.viz.figures.operator_table import OperatorTable, operator_table
from relaylab.viz.figures.overlay import hot_path, kernel_times, overlay
from relaylab.viz.graph.figure import FIGURES, Figure, declare
from relaylab.viz.graph.identity import Identities
from relaylab.viz.graph.read import from_json
from relaylab.viz.graph.view import Attr, Edge, Group, Node, Operand, View
from relaylab.viz.picture import Picture, save, show
from relaylab.viz.selection.changes import changes
from relaylab.viz.selection.exemplars import Exemplar, exemplars
from relaylab.viz.selection.extract import extract
from relaylab.viz.selection.fold import collapse, focus
from relaylab.viz.selection.paths import path
from relaylab.viz.selection.query import select
from relaylab.viz.selection.repeats import repeats
from relaylab.viz.write.export import model_explorer, netron
from relaylab.viz.write.plugins import plots

__all__ = [
    "Attr", "Difference", "Edge", "FIGURES", "Figure", "Group", "Identities", "Node", "Operand", "OperatorTable",
    "Picture", "View", "arranged", "changes", "collapse", "declare", "diff", "exemplars", "extract", "focus",
    "from_json", "held_bytes", "hot_path", "kernel_times", "model_explorer", "netron", "operator_table", "overlay",
    "path", "plots", "repeats", "save", "select", "show", "timeline", "view",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
