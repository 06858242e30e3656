# The visualizer with its terminal plotter, options of Dot, and a parser of one's own.
from typing import Dict, List, Tuple, Union

import tvm
from tvm import relay
from tvm.contrib import relay_viz
from tvm.contrib.relay_viz.dot import DotPlotter, DotVizParser
from tvm.contrib.relay_viz.interface import VizEdge, VizNode, VizParser
from tvm.contrib.relay_viz.terminal import TermPlotter, TermVizParser

data = relay.var("data")
weight = relay.var("weight")
conv2d = relay.nn.conv2d(data=relay.var("x", shape=(1, 3, 8, 8)), weight=relay.var("w"), kernel_size=(5, 5), channels=10, padding=[1, 1])
func = relay.Function(relay.analysis.free_vars(conv2d), conv2d)
mod = tvm.IRModule.from_expr(func)
mod = relay.transform.InferType()(mod)

viz = relay_viz.RelayVisualizer(mod)
viz.render()
viz.render("term.txt")
assert "@main" in open("term.txt").read()

colors = {"Var(Input)": {"color": "grey"}, "Call nn.conv2d": {"color": "green", "shape": "box"}}
plotter = DotPlotter(
    graph_attr={"color": "red"},
    node_attr={"color": "blue"},
    edge_attr={"color": "black"},
    get_node_attr=lambda node: colors.get(node.type_name, {}),
    render_kwargs={"format": "svg"},
)
relay_viz.RelayVisualizer(mod, relay_param={}, plotter=plotter, parser=DotVizParser()).render("graph")
assert "svg" in open("graph.svg").read()


class YourAwesomeParser(VizParser):
    def __init__(self):
        self.delegate = DotVizParser()

    def get_node_edges(
        self, node: relay.Expr, relay_param: Dict[str, tvm.runtime.NDArray], node_to_id: Dict[relay.Expr, str]
    ) -> Tuple[Union[VizNode, None], List[VizEdge]]:
        if isinstance(node, relay.Call) and node.op == relay.op.get("nn.conv2d"):
            return VizNode(node_to_id[node], "AwesomeConv2d", "stolen"), [VizEdge(node_to_id[node.args[0]], node_to_id[node])]
        return self.delegate.get_node_edges(node, relay_param, node_to_id)


relay_viz.RelayVisualizer(mod, relay_param={}, plotter=relay_viz.TermPlotter(), parser=YourAwesomeParser()).render("awesome.txt")
assert "AwesomeConv2d" in open("awesome.txt").read()
print("ok")
