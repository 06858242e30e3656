"""relay_viz: the visualizer that users of Relay know, on relaylab's engine."""

from relaylab.viz.relay_viz.dot import DotGraph, DotPlotter, DotVizParser, WrittenPicture
from relaylab.viz.relay_viz.interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode, VizParser
from relaylab.viz.relay_viz.terminal import TermGraph, TermNode, TermPlotter, TermVizParser
from relaylab.viz.relay_viz.visualizer import RelayVisualizer

__all__ = [
    "DefaultVizParser", "DotGraph", "DotPlotter", "DotVizParser", "WrittenPicture", "Plotter", "RelayVisualizer",
    "TermGraph", "TermNode", "TermPlotter", "TermVizParser", "VizEdge", "VizGraph", "VizNode", "VizParser",
]  # fmt: skip
