// @ts-check
// The pipeline as it is against one that was kept: figures of both ends, and any stage of one with any of the other.
import { button, dim, el, problem, select, short, subheading } from "../dom.js";
import { Canvas } from "../canvas/canvas.js";
import { roles } from "../explorer/legend.js";
import { difference, lightLines } from "../panels/difference.js";
import { nameField } from "../explorer/views.js";

// A table of figures: name, unit, the figure on both sides, the change, and between what each lies.
function figuresTable(rows, names) {
  const cell = (v, range) => {
    const within = range && `${short(range[0])} … ${short(range[1])}`;
    const title = "the median lies here with a probability of 95 %";
    const more = within ? el("div", { className: "rl-within", textContent: within, title }) : null;
    return el("td", { textContent: v === null ? "–" : short(v) }, more);
  };
  const change = (v) => {
    const textContent = v ? `${v > 0 ? "+" : "−"}${Math.abs(v * 100).toFixed(1)} %` : "";
    return el("td", { className: v > 0 ? "rl-up" : v < 0 ? "rl-down" : "", textContent });
  };
  const line = ([name, unit, a, b, share, range]) => {
    const title = el("td", { textContent: unit ? `${name}, ${unit}` : name });
    return el("tr", {}, title, cell(a, range?.[0]), cell(b, range?.[1]), change(share));
  };
  const head = el("tr", {}, ...["", ...names, ""].map((n) => el(n ? "th" : "td", { textContent: n })));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows.map(line)));
}

export class Branches {
  /** @param {Pick<import("./tools.js").Act, "put" | "edited">} act */
  constructor(act) {
    this.act = act;
    this.sides = [
      { name: "", frame: -1 },
      { name: "current", frame: -1 },
    ];
    this.timed = false;
    /** @type {string[]} */
    this.names = [];
    /** @type {Record<string, [stage: number, name: string][]>} */
    this.stages = {};
    this.bar = el("div", { className: "rl-tab-bar" });
    this.table = el("div", { className: "rl-figures-table" });
    this.legend = el("div", { className: "rl-legend" });
    this.picture = el("div", { className: "rl-view" });
    this.text = el("div", { className: "rl-textpart", role: "region", tabIndex: 0, ariaLabel: "text difference" });
    const versus = el("div", { className: "rl-versus" }, this.legend, this.picture, this.text);
    const body = el("div", { className: "rl-tab-body" }, this.table, versus);
    this.element = el("div", { className: "rl-tab" }, this.bar, body);
  }

  get canvases() {
    return this.canvas ? [this.canvas] : [];
  }

  async show() {
    await this.change("list", "");
  }

  async change(how, name) {
    const found = await this.act.put("branch", how, name);
    if (found.error) return this.fail(found.error);
    [this.names, this.stages] = [found.names, found.stages];
    if (how === "keep") this.sides[0] = { name, frame: -1 };
    for (const side of this.sides) {
      if (!this.names.includes(side.name)) Object.assign(side, { name: this.names.at(-1), frame: -1 });
      if (!this.stages[side.name].some(([k]) => k === side.frame)) side.frame = this.end(side.name);
    }
    if (how === "use") this.act.edited(await this.act.put("rows"), "use");
    this.draw();
    await this.compare();
  }

  // the last stage of a branch
  end(name) {
    return this.stages[name].at(-1)[0];
  }

  fail(text) {
    this.table.replaceChildren(problem(text));
  }

  choose(side, label) {
    const branches = this.names.map((n) => [n, n]);
    const turn = (name) => {
      Object.assign(side, { name, frame: this.end(name) });
      this.draw();
      this.compare();
    };
    const stages = this.stages[side.name].map(([k, n]) => [k, k ? `after ${k} ${n}` : n]);
    const stage = select(`stage of ${label}`, stages, side.frame, (k) => ((side.frame = Number(k)), this.compare()));
    const branch = select(`branch ${label}`, branches, side.name, turn);
    return el("span", {}, el("b", { textContent: `${label} ` }), branch, " ", stage);
  }

  draw() {
    const { field, run } = nameField("keep the pipeline as …", "name of a branch", (name) => {
      field.value = "";
      this.change("keep", name);
    });
    field.size = 20;
    field.value = this.bar.querySelector("input")?.value ?? ""; // what is being typed stays
    const [a, b] = this.sides;
    const use = () => this.change("use", a.name);
    const kept =
      a.name === "current"
        ? []
        : [
            button(`use ${a.name}`, "make it the pipeline that is edited", use),
            button("drop", `forget ${a.name}`, () => this.change("drop", a.name)),
          ];
    const measure = () => ((this.timed = true), this.compare());
    this.bar.replaceChildren(
      this.choose(a, "A"),
      this.choose(b, "B"),
      button("Measure", "compile both ends and measure their kernels", measure),
      ...kept,
      field,
      button("Keep", "keep the pipeline as it is now under this name", run),
    );
  }

  async compare() {
    const [a, b] = this.sides;
    const asked = (this.asked = {});
    this.element.dataset.compared = "";
    const versus = await this.act.put("versus", a.name, a.frame, b.name, b.frame);
    if (asked !== this.asked) return; // other sides were chosen
    if (versus.error) return this.fail(versus.error);
    this.versus(versus);
    this.table.replaceChildren(dim("…"));
    const found = await this.act.put("compare", a.name, b.name, this.timed);
    if (asked !== this.asked) return;
    if (found.error) return ((this.timed = false), this.fail(found.error));
    const hint = "Keep the pipeline under a name, edit it in the list at the left, and come back.";
    const operators = found.operators.length
      ? [subheading("operators"), figuresTable(found.operators, found.names)]
      : [];
    const tables = [figuresTable(found.rows, found.names), ...operators];
    this.table.replaceChildren(...(this.names.length < 2 ? [dim(hint)] : []), ...tables);
    this.element.dataset.compared = `${a.name} ${b.name}`;
  }

  versus(found) {
    const counts = roles(found.roles, (properties) => el("span", properties));
    const none = dim("no difference", "span");
    this.legend.replaceChildren(el("strong", { textContent: "from A to B" }), ...(counts.length ? counts : [none]));
    const pick = (id) => this.canvas.byId.has(id) && this.canvas.select(id, true);
    this.text.replaceChildren(difference(found.rows, pick));
    this.canvas = new Canvas(this.picture, found.scenes[0], { select: (data) => this.light(data?.id ?? "") });
    this.canvas.begin();
  }

  light(id) {
    lightLines(this.text, id)?.scrollIntoView({ block: "nearest" });
  }
}
