// @ts-check
// Where the parts of the explorer stand.
import { el } from "../dom.js";
import { divider } from "./room.js";

const box = (className, ...children) => el("div", { className }, ...children);

/**
 * @param {HTMLElement} root
 * @param {ReturnType<typeof import("./parts.js").makeParts>} parts
 */
export function frame(root, { toolbar, timeline, rail, outline, legend, stepper, room, detail, said, ...parts }) {
  const [graph, text, code] = [parts.stage.element, parts.text.element, parts.code.element];
  const panes = box("rl-panes", graph, divider(graph, text, code), text, code, parts.extra);
  const stage = el("section", { className: "rl-stage" }, legend, stepper.element, panes);
  root.classList.add("rl-explorer");
  root.tabIndex = 0;
  const left = box("rl-left", rail.element, outline.element);
  const main = box("rl-main", left, room.sash("left"), stage, room.sash("right"), detail.element);
  // Jupyter's own keys rest while the explorer has the focus
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.replaceChildren(toolbar.element, timeline.element, main, said);
}
