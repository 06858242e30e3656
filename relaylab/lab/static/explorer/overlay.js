// @ts-check
// Colours nodes by a figure: one that the kernel declares, or one of the user's own.
import { el } from "../dom.js";

/**
 * All figures: those that are declared, and the names of the user's own.
 * @param {import("../types.js").FigureData[]} declared
 * @param {string[]} own
 */
export function figuresOf(declared, own) {
  const known = new Set(declared.map(({ name }) => name));
  const fresh = own.filter((name) => !known.has(name));
  return [...declared, ...fresh.map((name) => ({ name, unit: "", ratio: false, measured: false }))];
}

export class Overlay {
  /**
   * @param {{ ask: import("../types.js").Ask, stages: import("./stages.js").Stages,
   *   figures: () => import("../types.js").FigureData[], canvases: () => import("../canvas/canvas.js").Canvas[],
   *   say: (text: string) => void, problem: (text: string) => void, moving: () => void }} act
   */
  constructor(act) {
    this.act = act;
    this.name = "";
    this.menu = el("select", {
      className: "rl-select",
      title: "colour nodes by",
      ariaLabel: "overlay",
      onchange: () => this.turn(this.menu.value),
    });
    this.refresh();
  }

  // there are other figures
  refresh() {
    const option = (name) => el("option", { value: name, textContent: name || "no overlay" });
    this.menu.replaceChildren(...this.names.map(option));
    this.menu.value = this.name;
  }

  // the name will be painted with the next picture
  choose(name) {
    this.name = name;
    this.menu.value = name;
  }

  get names() {
    return ["", ...this.act.figures().map((f) => f.name)];
  }

  next() {
    const { names } = this;
    return this.turn(names[(names.indexOf(this.name) + 1) % names.length]);
  }

  // somebody chose another one
  turn(name) {
    this.act.moving();
    return this.paint(name);
  }

  async paint(name) {
    this.choose(name);
    const canvases = this.act.canvases();
    const last = canvases.at(-1);
    if (!name) return canvases.forEach((c) => c.heat(null));
    const { ask, stages } = this.act;
    const found = await ask("overlay", name, stages.shown);
    if (this.name !== name || this.act.canvases().at(-1) !== last) return; // of another picture by now
    if (found.error) return this.act.problem(found.error);
    last?.heat(found.values, found.unit);
    const [top] = Object.entries(found.values)
      .filter(([id]) => last?.byId.get(id)?.data.kind === "node")
      .sort(([, a], [, b]) => b - a);
    const most = top ? `most at ${last.byId.get(top[0]).data.label.split("\n")[0]}` : "no figures here";
    this.act.say(`${name}: ${most}${found.note ? ` (${found.note})` : ""}`);
  }
}
