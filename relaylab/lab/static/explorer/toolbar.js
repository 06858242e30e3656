// @ts-check
// The bar at the top: title, undo, search, panes, styles, overlays and tools.
import { button, choice, el } from "../dom.js";

const PANES = [
  ["graph", "Graph"],
  ["text", "Text"],
  ["both", "Both"],
  ["code", "Code", "from Relay to assembly"],
  ["several", "Panes", "two to four stages beside each other"],
  ["heat", "Heat", "the whole pipeline: which pass changed what"],
  ["operators", "Table", "operators by MACs, bytes, time"],
  ["branches", "Compare", "this pipeline with another"],
];
const STYLES = [
  ["merged", "Merged"],
  ["both", "Side by side"],
];

export class Toolbar {
  /**
   * @param {{ tabs: string[], get: (name: string) => any, choose: (name: string, value: string) => void,
   *   back: () => void, forward: () => void, views: () => void, help: () => void,
   *   search: Node[], overlay: Node, tools: Node[] }} act
   */
  constructor(act) {
    const { get, choose } = act;
    const offered = PANES.filter(([name], at) => at < 4 || act.tabs.includes(name));
    this.names = offered.map(([name]) => name);
    this.panes = choice("what to see", offered, get("pane"), (v) => choose("pane", v));
    this.styles = choice("how to compare", STYLES, get("compare"), (v) => choose("compare", v));
    this.undo = [button("↶", "undo (Ctrl Z)", act.back), button("↷", "redo (Ctrl Shift Z)", act.forward)];
    this.title = el("strong", { className: "rl-title" });
    this.element = el(
      "header",
      { className: "rl-bar" },
      this.title,
      ...this.undo,
      ...act.search,
      this.panes.group,
      this.styles.group,
      act.overlay,
      button("Views", "named views to come back to, paths, parts", act.views),
      ...act.tools,
      button("?", "keys", act.help),
    );
    this.marks(false, false);
  }

  // whether there is something to take back, or to do again
  marks(back, forward) {
    [this.undo[0].disabled, this.undo[1].disabled] = [!back, !forward];
  }

  show(pane, style) {
    this.panes.mark(pane);
    this.styles.mark(style);
  }

  paneAfter(pane) {
    return this.names[(this.names.indexOf(pane) + 1) % this.names.length];
  }
}
