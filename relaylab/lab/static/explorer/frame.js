// @ts-check
// Where the parts of the explorer stand.
import { el } from "../dom.js";

const box = (className, ...children) => el("div", { className }, ...children);

/**
 * @param {HTMLElement} root
 * @param {{ toolbar: Node, timeline: Node, left: Node[], above: Node[], panes: Node[],
 *   detail: Node, said: Node }} parts
 */
export function frame(root, { toolbar, timeline, left, above, panes, detail, said }) {
  const stage = el("section", { className: "rl-stage" }, ...above, box("rl-panes", ...panes));
  root.className = "rl-explorer";
  root.tabIndex = 0;
  // Jupyter's own keys rest while the explorer has the focus
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.replaceChildren(toolbar, timeline, box("rl-main", box("rl-left", ...left), stage, detail), said);
}
