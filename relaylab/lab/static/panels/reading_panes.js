// @ts-check
// The panes to read: the difference of two stages as text, and the kernel that a node became part of.
import { el, dim, problem } from "../dom.js";
import { difference, lightLines } from "./difference.js";
import { kernel } from "./kernel_panel.js";

export class TextPane {
  /** @param {{ ask: import("../types.js").Ask, selected: () => string, pick: (id: string) => void }} act */
  constructor(act) {
    this.act = act;
    this.asked = this.shown = ""; // two stages
    // it scrolls, and may have nothing else that keys could reach
    this.element = el("div", { className: "rl-textpane", role: "region", tabIndex: 0, ariaLabel: "text difference" });
  }

  async show(before, after) {
    const asked = (this.asked = `${before} ${after}`);
    if (asked !== this.shown) this.element.replaceChildren(dim("…"));
    const found = await this.act.ask("text", before, after);
    if (asked !== this.asked) return;
    this.shown = found.error ? "" : asked;
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
  /** @param {{ ask: import("../types.js").Ask, glow: (ids: string[]) => void, live: boolean,
   *   schedule: (kernel: string, ask: (steps: string) => Promise<any>) => Node | undefined }} act */
  constructor(act) {
    this.act = act;
    this.asked = "";
    this.element = el("div", { className: "rl-codepane" });
  }

  async show(stage, id) {
    const { ask, glow, live, schedule } = this.act;
    const put = (child) => this.element.replaceChildren(child);
    const asked = (this.asked = `${stage} ${id}`);
    if (!id) return put(dim("Select a node to see the kernel that it became part of."));
    put(dim("compiling …"));
    const found = await ask("kernel", stage, id);
    if (asked !== this.asked) return;
    const passes = live ? () => ask("llvm", stage, id) : null;
    const flow = live ? () => ask("flow", stage, id) : null;
    const steps = (name) => schedule(name, (text) => ask("loops", stage, id, text));
    put(found.error ? dim(found.error) : kernel(found, (node) => glow([node]), passes, flow, steps));
  }
}
