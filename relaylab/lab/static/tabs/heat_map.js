// @ts-check
// The whole pipeline in one picture: passes across, functions or operators down; a cell leads to its stage.
import { button, choice, dim, el, problem } from "../dom.js";
import { Canvas } from "../canvas/canvas.js";

// Tensors as tiny heat maps; the value under the pointer is written below them.
export function tensorMaps(scene, hint = "pale: small, dark: large") {
  const view = el("div", { className: "rl-view rl-maps" });
  const words = dim(hint, "div");
  view.style.height = `${Math.min(300, scene.height)}px`;
  const canvas = new Canvas(view, scene, { select: (data) => data && (words.textContent = data.label) });
  requestAnimationFrame(() => canvas.fit());
  return el(
    "div",
    {},
    view,
    button("Enlarge", "over the whole window", () => enlarge(scene, view)),
    words,
  );
}

// A picture over the whole window, to be seen whole or to be read; Esc closes it.
export function enlarge(scene, beside, read = false) {
  const view = el("div", { className: "rl-view" });
  const close = button("×", "close (Esc)", () => large.close());
  const large = el("dialog", { className: "rl-large", onclose: () => large.remove() }, view, close);
  beside.closest(".rl-explorer").append(large);
  large.showModal();
  const canvas = new Canvas(view, scene);
  large.addEventListener("keydown", (e) => {
    e.stopPropagation();
    if (canvas.knows(e)) canvas.act(e);
  });
  read ? canvas.begin() : canvas.fit();
}

const HINT = "darker: more nodes changed; click a cell to go there";
const ROWS = [
  ["function", "Functions"],
  ["operator", "Operators"],
];

export class HeatMap {
  /** @param {{ ask: import("../types.js").Ask, jump: (stage: number, row: string, operator: boolean) => void }} act */
  constructor(act) {
    this.act = act;
    /** @type {"function" | "operator"} */
    this.by = "function";
    this.kinds = choice("rows", ROWS, this.by, (by) => {
      this.by = by === "operator" ? by : "function";
      this.show();
    });
    this.words = el("span", { className: "rl-dim", "aria-live": "polite" });
    this.body = el("div", { className: "rl-view rl-heatpane" });
    this.body.addEventListener("pointerover", (e) => {
      const cell = e.target instanceof Element ? e.target.closest(".node") : null;
      this.words.textContent = this.canvas?.byId.get(cell?.getAttribute("data-id"))?.data.label ?? HINT;
    });
    const bar = el("div", { className: "rl-tab-bar" }, this.kinds.group, this.words);
    this.element = el("div", { className: "rl-tab" }, bar, this.body);
  }

  get canvases() {
    return this.canvas ? [this.canvas] : [];
  }

  async show() {
    this.kinds.mark(this.by);
    this.words.textContent = HINT;
    const { by } = this;
    const found = await this.act.ask("heat", by);
    if (by !== this.by) return;
    if (found.error) return this.body.replaceChildren(problem(found.error));
    this.canvas = new Canvas(this.body, found.scene, { select: (data) => data && this.jump(data.id) });
    this.canvas.begin();
  }

  // a cell is named `stage:row`
  jump(id) {
    const at = id.indexOf(":");
    this.act.jump(Number(id.slice(0, at)), id.slice(at + 1), this.by === "operator");
  }
}
