// Two to four stages beside each other; what is selected in one is shown in all, by provenance.
import { Canvas } from "./canvas.js";
import { choice, el } from "./dom.js";

export class Several {
  constructor(explorer) {
    Object.assign(this, { explorer, frames: [], panes: [] });
    this.number = choice("how many", [["2", "2"], ["3", "3"], ["4", "4"]], "2", (n) => this.resize(Number(n)));
    this.body = el("div", { className: "rl-tab-body" });
    this.element = el("div", { className: "rl-tab" }, el("div", { className: "rl-tab-bar" }, this.number.group, el("span", { className: "rl-dim", textContent: "panes; select a node to see its counterparts" })), this.body);
  }

  // the stages to start with: the source, the two that are compared, the end
  start() {
    const { before, after, changing } = this.explorer;
    const known = [...new Set([before, after, 0, changing.at(-1), ...changing].map((f) => this.explorer.settled(f)))];
    this.frames = known.slice(0, 2).sort((a, b) => a - b);
    this.spare = known.slice(2);
  }

  resize(n) {
    while (this.frames.length < n) this.frames.push(this.spare.shift() ?? this.explorer.changing.at(-1));
    this.spare.unshift(...this.frames.splice(n));
    this.frames.sort((a, b) => a - b);
    this.show();
  }

  async show() {
    const { explorer } = this;
    if (!this.frames.length || this.frames.some((f) => f >= explorer.frames)) this.start();
    this.number.mark(String(this.frames.length));
    const names = explorer.changing.map((f) => [f, f ? `${f} ${explorer.rows[f - 1].name}` : "source program"]);
    this.panes = this.frames.map((frame, at) => {
      const choose = el("select", { ariaLabel: `stage of pane ${at + 1}`, onchange: () => ((this.frames[at] = Number(choose.value)), this.show()) }, ...names.map(([f, text]) => el("option", { value: String(f), textContent: text })));
      choose.value = String(explorer.settled(frame));
      const twin = el("span", { className: "rl-twin", "aria-live": "polite" });
      const view = el("div", { className: "rl-view" });
      return { frame: explorer.settled(frame), twin, view, element: el("div", { className: "rl-one" }, el("div", { className: "rl-one-bar" }, choose, twin), view) };
    });
    this.body.replaceChildren(...this.panes.map((p) => p.element));
    await Promise.all(this.panes.map((pane, at) => this.draw(pane, at)));
    this.selected(explorer.host.get("selected"));
    this.element.dataset.drawn = this.frames.join(" ");
  }

  async draw(pane, at) {
    const found = await this.explorer.ask("picture", pane.frame, pane.frame, "merged", "");
    if (found.error) return pane.view.replaceChildren(el("pre", { className: "rl-error", textContent: found.error }));
    pane.canvas = new Canvas(pane.view, found.scenes[0], { select: (data) => this.pick(at, data?.id ?? "") });
  }

  pick(at, id) {
    if (this.choosing) return;
    this.from = at;
    this.explorer.pick(id);
  }

  // the counterparts of the selected node; the pane in which it was selected, or the first that has it, tells
  async selected(id) {
    const home = this.panes[this.from]?.canvas?.byId.has(id) ? this.panes[this.from] : this.panes.find((p) => p.canvas?.byId.has(id));
    if (!id || !home) return this.panes.forEach((p) => ((p.twin.textContent = ""), this.mark(p, [])));
    const found = await this.explorer.ask("counterparts", home.frame, id, this.panes.map((p) => p.frame));
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
