// @ts-check
// Where the parts of the explorer stand.
import { el } from "../dom.js";

const box = (className, ...children) => el("div", { className }, ...children);

/**
 * @param {HTMLElement} root
 * @param {{ toolbar: Node, timeline: Node, left: Node[], above: Node[], panes: Node[],
 *   detail: Node, said: Node }} parts
 * @param {import("./room.js").Room} room
 */
export function frame(root, { toolbar, timeline, left, above, panes, detail, said }, room) {
  const stage = el("section", { className: "rl-stage" }, ...above, box("rl-panes", ...panes));
  root.classList.add("rl-explorer");
  root.tabIndex = 0;
  const main = box("rl-main", box("rl-left", ...left), room.sash("left"), stage, room.sash("right"), detail);
  // Jupyter's own keys rest while the explorer has the focus
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.replaceChildren(toolbar, timeline, main, said);
}
