// @ts-check
// The panes to read: the difference of two stages as text, and the kernel that a node became part of.
import { el, dim, problem } from "../dom.js";
import { kernel } from "./kernel_panel.js";

// A difference of two texts, line by line.
export function difference(rows, pick) {
  const names = { "+": "rl-plus", "-": "rl-minus", "⋮": "rl-gap" };
  const line = ([mark, text, id]) => {
    const gap = mark === "⋮";
    const made = el(
      "div",
      { className: `rl-line ${names[mark] ?? ""}`, role: "row" },
      el("span", { className: "rl-mark", textContent: gap ? "" : mark }),
      el("span", { textContent: gap ? `⋮ ${text} equal lines` : text }),
    );
    if (!id) return made;
    made.dataset.id = id;
    made.addEventListener("click", () => pick(id));
    return made;
  };
  return el("div", { className: "rl-diff", role: "table", "aria-label": "text difference" }, ...rows.map(line));
}

// Lights the lines of a node; gives the first.
export function lightLines(element, id) {
  const lines = [...element.querySelectorAll(".rl-line")];
  for (const line of lines) line.classList.toggle("rl-lit", Boolean(id) && line.dataset.id === id);
  return lines.find((line) => line.classList.contains("rl-lit"));
}

export class TextPane {
  /** @param {{ ask: import("../types.js").Ask, selected: () => string, pick: (id: string) => void }} act */
  constructor(act) {
    this.act = act;
    this.element = el("div", { className: "rl-textpane" });
  }

  async show(before, after) {
    const found = await this.act.ask("text", before, after);
    this.element.replaceChildren(found.error ? problem(found.error) : difference(found.rows, this.act.pick));
    this.light(this.act.selected());
  }

  light(id) {
    const { element } = this;
    const first = lightLines(element, id);
    if (first) element.scrollTop = first.offsetTop - element.offsetTop - element.clientHeight / 3;
  }
}

export class CodePane {
  /** @param {{ ask: import("../types.js").Ask, glow: (ids: string[]) => void, live: boolean }} act */
  constructor(act) {
    this.act = act;
    this.element = el("div", { className: "rl-codepane" });
  }

  async show(stage, id) {
    const { ask, glow, live } = this.act;
    const put = (child) => this.element.replaceChildren(child);
    if (!id) return put(dim("Select a node to see the kernel that it became part of."));
    put(dim("compiling …"));
    const found = await ask("kernel", stage, id);
    const passes = live ? () => ask("llvm", stage, id) : null;
    put(found.error ? dim(found.error) : kernel(found, (node) => glow([node]), passes));
  }
}
