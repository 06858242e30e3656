// @ts-check
// Two to four stages beside each other; what is selected in one is shown in all, by provenance.
import { choice, cross, dim, el, problem, select } from "../dom.js";
import { Canvas } from "../canvas/canvas.js";
import { divided } from "../explorer/room.js";

const NUMBERS = ["2", "3", "4"].map((n) => [n, n]);

/**
 * The stages to start with, those to go on with: what is compared, the source, the end, what changes.
 * @param {import("../explorer/stages.js").Stages} stages
 */
export function firstStages(stages) {
  const { before, after, changing } = stages;
  const known = [before, after, 0, changing.at(-1), ...changing].map((f) => stages.settled(f));
  const [a, b, ...spare] = new Set(known);
  return { shown: [a, b].filter((f) => f !== undefined).sort((x, y) => x - y), spare };
}

export class SideBySide {
  /**
   * @param {{ ask: import("../types.js").Ask, stages: import("../explorer/stages.js").Stages,
   *   selected: () => string, pick: (id: string) => void }} act
   */
  constructor(act) {
    this.act = act;
    /** @type {number[]} */
    this.shown = [];
    /** @type {number[]} */
    this.spare = [];
    /** @type {{ frame: number, twin: HTMLElement, view: HTMLElement, element: HTMLElement, canvas?: Canvas }[]} */
    this.panes = [];
    this.from = -1; // the pane in which the node was selected
    this.choosing = false;
    this.number = choice("how many", NUMBERS, "2", (n) => this.resize(Number(n)));
    const hint = dim("panes; select a node to see its counterparts", "span");
    this.body = el("div", { className: "rl-tab-body" });
    const bar = el("div", { className: "rl-tab-bar" }, this.number.group, hint);
    this.element = el("div", { className: "rl-tab" }, bar, this.body);
  }

  get canvases() {
    return this.panes.flatMap((p) => p.canvas ?? []);
  }

  resize(n) {
    while (this.shown.length < n) this.shown.push(this.spare.shift() ?? this.act.stages.changing.at(-1));
    this.spare.unshift(...this.shown.splice(n));
    this.shown.sort((a, b) => a - b);
    this.show();
  }

  close(at) {
    this.spare.unshift(...this.shown.splice(at, 1));
    this.show();
  }

  async show() {
    const { stages, selected } = this.act;
    if (!this.shown.length || this.shown.some((f) => f > stages.last))
      ({ shown: this.shown, spare: this.spare } = firstStages(stages));
    this.number.mark(String(this.shown.length));
    this.panes = this.shown.map((frame, at) => this.pane(stages.settled(frame), at));
    this.body.replaceChildren(...divided(this.panes.map((p) => p.element)));
    await Promise.all(this.panes.map((pane, at) => this.draw(pane, at)));
    this.selected(selected());
    this.element.dataset.drawn = this.shown.join(" ");
  }

  pane(frame, at) {
    const { stages } = this.act;
    const names = stages.changing.map((f) => [f, stages.nameOf(f)]);
    const turn = (f) => ((this.shown[at] = Number(f)), this.show());
    const choose = select(`stage of pane ${at + 1}`, names, frame, turn);
    const twin = el("span", { className: "rl-twin", "aria-live": "polite" });
    const view = el("div", { className: "rl-view" });
    const drop = cross("close", () => this.close(at));
    const bar = el("div", { className: "rl-one-bar" }, choose, twin, this.shown.length > 2 ? drop : null);
    return { frame, twin, view, element: el("div", { className: "rl-one" }, bar, view) };
  }

  async draw(pane, at) {
    const found = await this.act.ask("picture", pane.frame, pane.frame, "merged", "");
    if (found.error) return pane.view.replaceChildren(problem(found.error));
    pane.canvas = new Canvas(pane.view, found.scenes[0], { select: (data) => this.pick(at, data?.id ?? "") });
    pane.canvas.begin();
  }

  pick(at, id) {
    if (this.choosing) return;
    this.from = at;
    this.act.pick(id);
  }

  // the counterparts of the selected node; the pane in which it was selected, or the first that has it, tells
  async selected(id) {
    const has = (pane) => pane?.canvas?.byId.has(id);
    const home = has(this.panes[this.from]) ? this.panes[this.from] : this.panes.find(has);
    if (!id || !home) return this.panes.forEach((p) => ((p.twin.textContent = ""), this.mark(p, [])));
    const others = this.panes.map((p) => p.frame);
    const found = await this.act.ask("counterparts", home.frame, id, others);
    if (id !== this.act.selected()) return;
    for (const pane of this.panes) {
      const ids = pane === home ? [id] : (found.ids?.[pane.frame] ?? [id]);
      const known = ids.filter((i) => pane.canvas?.byId.has(i));
      pane.twin.textContent = pane === home ? "selected here" : known.length ? known.join(", ") : "no counterpart";
      pane.twin.classList.toggle("rl-none", !known.length);
      this.mark(pane, known);
    }
  }

  mark(pane, ids) {
    if (!pane.canvas) return;
    this.choosing = true;
    pane.canvas.select(ids[0] ?? null, pane !== this.panes[this.from]);
    pane.canvas.glow(ids.length > 1 ? ids : []);
    this.choosing = false;
  }
}
