"""Makes what the docs show: `python docs/generate.py [name ...]` writes docs/images, docs/pages and
docs/reference anew, the stubs of the operators, notebooks of the course (`course`, `course 3`; also `translations`).

Pictures come out the same each time, and a test holds them equal, but for three: `heat.svg` and `roofline.svg` have
measured times, and `explorer.png` is a photograph of the saved page in a browser (needs playwright and Chromium).
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import course_notebooks
import networkx as nx
import numpy as np
import reference_pages
import stubs

from relaylab import course, explorer, relay, study, viz
from relaylab.ir import IRModule
from relaylab.lab import saved_page
from relaylab.runtime.peaks import MachinePeaks
from relaylab.study.roofline import Roofline
from relaylab.transform import run_pipeline
from relaylab.viz.figures.roofline import Dot
from relaylab.viz.write.html import LEGIBLE
from relaylab.viz.write.svg import svg

DOCS = Path(__file__).resolve().parent
IMAGES, PAGES, REFERENCE = DOCS / "images", DOCS / "pages", DOCS / "reference"
PAGE = PAGES / "resnet8.html"
CPU = "llvm -mcpu=x86-64-v3 -num-cores=2"  # pictures of kernels are those of one CPU, wherever they are drawn


BLOCK = """#[version = "0.0.5"]
def @main(%data: Tensor[(1, 8, 14, 14), float32], %weight: Tensor[(8, 8, 3, 3), float32],
          %gamma: Tensor[(8), float32], %beta: Tensor[(8), float32],
          %mean: Tensor[(8), float32], %var: Tensor[(8), float32]) {
  %0 = nn.conv2d(%data, %weight, padding=[1, 1, 1, 1], channels=8);
  %1 = nn.batch_norm(%0, %gamma, %beta, %mean, %var);
  %2 = nn.relu(%1.0);
  add(%data, %2)
}"""


def block() -> IRModule:
    """A convolution, a batch normalization and an activation, and the way around them: the example of most pages."""
    return relay.transform.InferType()(relay.parse(BLOCK))


def weights(mod: IRModule) -> dict[str, np.ndarray]:
    """A value for every parameter but the data, from a seed."""
    rng = np.random.default_rng(0)
    rest = [(p.name_hint, p.checked_type.concrete_shape) for p in mod["main"].params[1:]]
    return {name: rng.uniform(0.5, 1.5, shape).astype("float32") for name, shape in rest}


CLOSURE = """#[version = "0.0.5"]
def @scaled(%s: Tensor[(), float32]) -> fn (Tensor[(4), float32]) -> Tensor[(4), float32] {
  fn (%x: Tensor[(4), float32]) -> Tensor[(4), float32] { multiply(%x, %s) }
}
def @main(%x: Tensor[(4), float32], %s: Tensor[(), float32]) -> Tensor[(4), float32] {
  let %f = @scaled(%s);
  %f(%f(%x))
}"""

ADT = """#[version = "0.0.5"]
type Tree[A] { Leaf, Fork(Tree[A], A, Tree[A]) }
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Leaf => 0,
    Fork(%l, _, %r) => @size(%l) + @size(%r) + 1,
  }
}"""


def diff() -> viz.Difference:
    """What SimplifyInference did."""
    mod = block()
    history = run_pipeline(mod, [relay.transform.SimplifyInference()])
    return viz.diff(mod, history.mod, history)


def fused() -> object:
    """The operators that became one kernel."""
    mod = block()
    return viz.show(relay.optimize(mod, target=CPU, params=weights(mod))[0], title="fused: a box is one kernel")


def memory() -> object:
    """The arena of a network over its steps."""
    mod, params = relay.testing.resnet.get_workload(num_layers=18, image_shape=(3, 32, 32))
    lib = relay.build(mod, target=CPU, params=params)
    return viz.timeline(lib.executable.plan, "ResNet-18 (32 x 32): where its tensors lie")


def arena() -> object:
    """The arena of a chain of kernels, each of which reads what the one before has written."""
    y = x = relay.var("x", shape=(256, 256))
    for _ in range(6):
        y = relay.nn.softmax(relay.nn.matmul(y, y))
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], y)), target="llvm -mcpu=x86-64-v3 -num-cores=1")
    return viz.timeline(lib.executable.plan, "twelve kernels, two places")


def roof() -> object:
    """Kernels of lessons 11 and 12, on the machine of their tables."""
    flops, moved = 2 * 1024**3, 12 * 1024**2
    took = {"three loops": 6.5, "vectors": 0.045, "a tile of registers": 0.014, "the tile, packed": 0.0096}
    dots = [Dot(name, flops / moved, flops / seconds) for name, seconds in took.items()]
    dots.append(Dot("relu of 16 million", 0.125, 16e6 / 0.0047))
    return Roofline("kernels under the roof", dots, MachinePeaks(1, 252e9, 30e9, 190e9))


def layout() -> object:
    """Two layouts of two channels of 4 x 4 pixels: where each of them lies."""
    places = np.arange(32)
    channels_last = places.reshape(4, 4, 2)
    return course.grids(
        channel_0_in_NCHW=places[:16].reshape(4, 4), channel_1=places[16:].reshape(4, 4),
        channel_0_in_NHWC=channels_last[..., 0], channel_1_=channels_last[..., 1],
    )  # fmt: skip


def anf() -> object:
    """A shared value in A-normal form."""
    x = relay.var("x", shape=(4,))
    e = relay.exp(x)
    mod = relay.transform.ToANormalForm()(relay.IRModule.from_expr(relay.Function([x], e + relay.tanh(e))))
    return viz.show(mod, title="A-normal form: a chain of lets")


COLOURS = {
    "value": "support ir text op interp analysis",
    "fusable": "transform loop codegen runtime",
    "injective": "frontend zoo quantize tune",
    "elementwise": "viz study course explorer lab cli",
    "call": "relay compat bench",
}


def house() -> viz.Picture:
    """The rooms and who uses whom, from the table of the law; arrows that follow from others are left out."""
    below = runpy.run_path(str(DOCS.parent / "tests" / "laws" / "test_arrows.py"))["BELOW"]
    graph = nx.transitive_reduction(nx.DiGraph((room, used) for room, uses in below.items() for used in uses))
    family = {room: name for name, rooms in COLOURS.items() for room in rooms.split()}
    nodes = tuple(viz.Node(room, "call", room, family=family[room]) for room in sorted(graph.nodes))
    edges = tuple(viz.Edge(used, room) for room, used in sorted(graph.edges))
    return viz.show(viz.View("who may use whom", nodes, edges))


IMAGE: dict[str, Callable[[], object]] = {
    "diff": diff,
    "house": house,
    "memory": memory,
    "arena": arena,
    "roof": roof,
    "fused": fused,
    "closure": lambda: viz.show(relay.parse(CLOSURE), title="a function that returns a function"),
    "anf": anf,
    "layout": layout,
    "adt": lambda: viz.show(relay.parse(ADT), title="a data type, and a match over it"),
}
MEASURED: dict[str, Callable[[], object]] = {
    "heat": lambda: explorer.heat(study.explore("resnet8")),
    "roofline": lambda: study.roofline("resnet18"),
}


def drawn(name: str) -> str:
    """A picture as it is written, at the size of notebooks: its words have nine points."""
    found = {**IMAGE, **MEASURED}[name]()
    scene = found.scene if hasattr(found, "scene") else viz.show(found).scene
    return svg(scene, scale=LEGIBLE)


def photograph() -> None:
    """The saved page as a browser shows it, two passes compared."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 820})
        page.goto(f"{PAGE.as_uri()}#stage=5&from=4")
        page.wait_for_timeout(2500)
        page.screenshot(path=IMAGES / "explorer.png")
        browser.close()


def main(names: list[str]) -> None:
    if not names or "course" in names:
        course_notebooks.make([n for n in names if n != "course"])
    if "translations" in names:
        import translations

        translations.make([n for n in names if n != "translations"])
    for name in {**IMAGE, **MEASURED}:
        if not names or name in names:
            (IMAGES / f"{name}.svg").write_text(drawn(name), encoding="utf-8")
    if not names or "page" in names:
        saved_page.save(study.explore("resnet8"), PAGE)
    if not names or "explorer" in names:
        photograph()
    if not names or "reference" in names:
        for name, make in reference_pages.PAGES.items():
            (REFERENCE / name).write_text(make(), encoding="utf-8")
        for path, make in stubs.STUBS.items():
            path.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
