// @ts-check
// The single rewrites of the pass that is shown, one after the other: pattern and result as a pair of small pictures,
// what the names of the pattern stand for, the changed lines, the rule's own code.
import { el, button, code, dim, link, problem } from "../dom.js";
import { figure, svg } from "../../../viz/static/graph.js";
import { difference } from "../panels/difference.js";

// A small picture as it is; its text is as large as that of the large one.
function small({ width, height, figures }, pick) {
  const box = { class: "relaylab", viewBox: `0 0 ${width} ${height}`, width: width * 1.2, height: height * 1.2 };
  const drawn = svg("svg", box, ...figures.map(figure));
  drawn.addEventListener("click", (e) => pick(e.target.closest(".node")?.dataset.id));
  return drawn;
}

export class Stepper {
  /**
   * @param {{ ask: import("../types.js").Ask, show: (ids: string[]) => void, live: boolean,
   *   go: (before: number, after: number) => void, open: (index: number, at: number) => void }} act
   */
  constructor(act) {
    this.act = act;
    this.steps = null; // the rewrites; null while they are asked for
    this.at = -1;
    this.index = -1; // the pass whose rewrites are shown
    this.wanted = -1; // the rewrite to begin with
    this.body = el("div", { className: "rl-rewrite" });
    this.element = el("div", { className: "rl-stepper", hidden: true });
  }

  reset() {
    [this.at, this.index, this.steps, this.wanted] = [-1, -1, null, -1];
    this.asked = null; // what is under way is about another pass, or another pipeline
  }

  // the rewrites of a pass by its index; -1 for none
  async load(index) {
    this.element.hidden = index < 0;
    if (index === this.index) return;
    [this.index, this.at, this.steps] = [index, -1, null];
    if (index < 0) {
      [this.steps, this.wanted] = [[], -1];
      return;
    }
    this.element.replaceChildren(dim("single rewrites: …")); // not those of the pass before
    const asked = (this.asked = {});
    const found = await this.act.ask("steps", index);
    if (asked !== this.asked) return;
    this.steps = found.steps ?? [];
    this.element.hidden = !this.steps.length;
    this.draw();
    if (this.wanted >= 0) this.to(this.wanted);
    this.wanted = -1;
  }

  move(by) {
    // a key may be quicker than the answer
    if (!this.steps) this.wanted = Math.max(0, this.wanted + by);
    else this.to(Math.max(0, Math.min(this.steps.length - 1, this.at + by)));
  }

  to(at) {
    if (!this.steps?.[at]) return;
    this.at = at;
    this.draw();
    this.act.show(this.steps[at].ids);
  }

  // the next rewrite that touched what this one left, of this pass or a later one
  async next() {
    const { index, at } = this;
    if (!this.steps?.[at]) return;
    const here = this.steps[at].next;
    if (here >= 0) return this.to(here);
    const found = await this.act.ask("next_rewrite", index, at);
    if (index !== this.index || at !== this.at) return; // somebody went on meanwhile
    if (!(found.at >= 0)) return this.body.prepend(dim(found.error ?? "No later rewrite touched this node."));
    this.act.go(found.index, found.index + 1);
    this.wanted = found.at;
  }

  draw() {
    const step = this.steps[this.at];
    const turn = (text, by) => button(text, "single rewrites: [ ]", () => this.move(by));
    const place = el("span", { textContent: ` ${this.at + 1} / ${this.steps.length} ` });
    const { open, live } = this.act;
    const { index, at } = this;
    const words = step
      ? [
          el("b", { textContent: `${step.rule} ` }),
          live && step.at
            ? link(step.at, () => open(index, at), "open the code")
            : el("code", { textContent: step.at }),
          dim(` ${step.note} ${step.us ? `(${step.us.toFixed(0)} µs) ` : ""}`, "span"),
          button("next here", "the next rewrite that touched this node", () => this.next()),
        ]
      : [dim("single rewrites of this pass", "span")];
    this.element.replaceChildren(el("div", {}, turn("[", -1), place, turn("]", 1), " ", ...words));
    if (step) this.tell(index, at);
  }

  async tell(index, at) {
    this.body.replaceChildren(dim("…"));
    this.element.append(this.body);
    const found = await this.act.ask("rewrite", index, at);
    if (index !== this.index || at !== this.at) return;
    if (found.error) return this.body.replaceChildren(problem(found.error));
    const pick = (id) => id && this.act.show([id]);
    const binding = ([name, words, id]) =>
      el("div", {}, el("code", { textContent: `${name} ` }), id ? link(words, () => pick(id)) : words);
    const pair = el("div", { className: "rl-pair" }, small(found.before, pick), "→", small(found.after, pick));
    const text = el("div", {}, difference(found.rows, pick), ...found.bindings.map(binding));
    this.body.replaceChildren(text, pair, el("div", {}, code(found.code)));
  }
}
