// @ts-check
// The single rewrites of the pass that is shown, one after the other.
import { el, button, dim } from "../dom.js";

export class Stepper {
  /** @param {{ ask: import("../types.js").Ask, show: (ids: string[]) => void }} act */
  constructor(act) {
    this.act = act;
    this.steps = [];
    this.at = -1;
    this.element = el("div", { className: "rl-stepper", hidden: true });
  }

  reset() {
    this.at = -1;
  }

  // the rewrites of a pass by its index; -1 for none
  async load(index) {
    this.element.hidden = index < 0;
    this.steps = index < 0 ? [] : ((await this.act.ask("steps", index)).steps ?? []);
    this.draw();
  }

  move(by) {
    if (!this.steps.length) return;
    this.at = Math.max(0, Math.min(this.steps.length - 1, this.at + by));
    this.draw();
    this.act.show(this.steps[this.at].ids);
  }

  draw() {
    const step = this.steps[this.at];
    const turn = (text, by) => button(text, "single rewrites: [ ]", () => this.move(by));
    const place = el("span", { textContent: ` ${this.at + 1} / ${this.steps.length} ` });
    const words = step
      ? [
          el("b", { textContent: step.rule }),
          el("code", { textContent: ` ${step.at} ` }),
          el("span", { textContent: `${step.note}  (${step.us.toFixed(0)} µs)` }),
        ]
      : [dim("single rewrites of this pass", "span")];
    this.element.replaceChildren(el("div", {}, turn("[", -1), place, turn("]", 1), " ", ...words));
    if (!step) return;
    const before = el("pre", { className: "rl-minus", textContent: step.before });
    const after = el("pre", { className: "rl-plus", textContent: step.after });
    this.element.append(el("div", { className: "rl-rewrite" }, before, after));
  }
}
