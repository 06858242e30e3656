// The whole pipeline in one picture: passes across, functions or operators down; a cell leads to its stage.
import { Canvas } from "./canvas.js";
import { choice, el } from "./dom.js";

// Tensors as tiny heat maps; the value under the pointer is written below them.
export function maps(scene) {
  const [view, words] = [el("div", { className: "rl-view rl-maps" }), el("div", { className: "rl-dim", textContent: "pale: small, dark: large" })];
  view.style.height = `${Math.min(300, scene.height)}px`;
  const canvas = new Canvas(view, { nodes: [], ...scene }, { select: (data) => data && (words.textContent = data.label) });
  requestAnimationFrame(() => canvas.fit());
  return el("div", {}, view, words);
}

export class Heat {
  constructor(explorer) {
    Object.assign(this, { explorer, by: "function" });
    this.kinds = choice("rows", [["function", "Functions"], ["operator", "Operators"]], this.by, (by) => ((this.by = by), this.show()));
    this.words = el("span", { className: "rl-dim", "aria-live": "polite" });
    this.body = el("div", { className: "rl-view rl-heatpane" });
    this.hint = "darker: more nodes changed; click a cell to go there";
    this.body.addEventListener("pointerover", (e) => {
      const id = e.target.closest?.(".node")?.dataset.id;
      this.words.textContent = this.canvas?.byId.get(id)?.data.label ?? this.hint;
    });
    this.element = el("div", { className: "rl-tab" }, el("div", { className: "rl-tab-bar" }, this.kinds.group, this.words), this.body);
  }

  async show() {
    this.kinds.mark(this.by);
    this.words.textContent = this.hint;
    const found = await this.explorer.ask("heat", this.by);
    if (found.error) return this.body.replaceChildren(el("pre", { className: "rl-error", textContent: found.error }));
    this.canvas = new Canvas(this.body, { nodes: [], ...found.scene }, { select: (data) => data && this.jump(data.id) });
  }

  jump(id) {
    const [frame, row] = [Number(id.slice(0, id.indexOf(":"))), id.slice(id.indexOf(":") + 1)];
    const { explorer } = this;
    explorer.choose("pane", "graph");
    explorer.go(frame - 1, frame);
    explorer.arrive = () => {
      const group = explorer.picture.groups.find(([, title]) => title === row);
      if (group) return explorer.pick(group[0]);
      explorer.field.value = this.by === "operator" && /[\w.]+/.test(row) ? `op:/^${row}$/` : "";
      explorer.search();
    };
  }
}
