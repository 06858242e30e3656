// The pipeline as it is against one that was kept: figures of both ends, and any stage of one with any of the other.
import { Canvas } from "./canvas.js";
import { el, short } from "./dom.js";
import { difference } from "./panels.js";

const ICONS = { added: "+", removed: "–", changed: "±", moved: "»", merged: "&" };

export class Branches {
  constructor(explorer) {
    Object.assign(this, { explorer, sides: [{ name: "", frame: -1 }, { name: "current", frame: -1 }], timed: false });
    this.bar = el("div", { className: "rl-tab-bar" });
    this.table = el("div", { className: "rl-figures-table" });
    this.legend = el("div", { className: "rl-legend" });
    this.picture = el("div", { className: "rl-view" });
    this.text = el("div", { className: "rl-textpart" });
    this.element = el("div", { className: "rl-tab" }, this.bar, el("div", { className: "rl-tab-body" }, this.table, el("div", { className: "rl-versus" }, this.legend, this.picture, this.text)));
  }

  async show() {
    await this.change("list", "");
  }

  async change(how, name) {
    const found = await this.explorer.host.ask("branch", [how, name]);
    if (found.error) return this.fail(found.error);
    Object.assign(this, found);
    if (how === "keep") this.sides[0] = { name, frame: -1 };
    for (const side of this.sides) {
      if (!this.names.includes(side.name)) Object.assign(side, { name: this.names.at(-1), frame: -1 });
      if (!this.stages[side.name].some(([k]) => k === side.frame)) side.frame = this.stages[side.name].at(-1)[0];
    }
    if (how === "use") this.explorer.edited(await this.explorer.host.ask("rows", []), "use");
    this.draw();
    await this.compare();
  }

  fail(text) {
    this.table.replaceChildren(el("pre", { className: "rl-error", textContent: text }));
  }

  choose(side, label) {
    const branch = el("select", { ariaLabel: `branch ${label}`, onchange: () => ((side.name = branch.value), (side.frame = this.stages[side.name].at(-1)[0]), this.draw(), this.compare()) }, ...this.names.map((n) => el("option", { value: n, textContent: n })));
    const stage = el("select", { ariaLabel: `stage of ${label}`, onchange: () => ((side.frame = Number(stage.value)), this.compare()) }, ...this.stages[side.name].map(([k, n]) => el("option", { value: String(k), textContent: k ? `after ${k} ${n}` : n })));
    [branch.value, stage.value] = [side.name, String(side.frame)];
    return el("span", {}, el("b", { textContent: `${label} ` }), branch, " ", stage);
  }

  draw() {
    const field = el("input", { className: "rl-add", placeholder: "keep the pipeline as …", ariaLabel: "name of a branch", size: 20 });
    const keep = () => field.value.trim() && this.change("keep", field.value.trim());
    field.addEventListener("keydown", (e) => (e.stopPropagation(), e.key === "Enter" && keep()));
    const button = (text, title, onclick) => el("button", { className: "rl-button", textContent: text, title, onclick });
    const [a] = this.sides;
    const kept = a.name !== "current" ? [button(`use ${a.name}`, "make it the pipeline that is edited", () => this.change("use", a.name)), button("drop", `forget ${a.name}`, () => this.change("drop", a.name))] : [];
    const time = button("Measure", "compile both ends and measure their kernels", () => ((this.timed = true), this.compare()));
    this.bar.replaceChildren(this.choose(a, "A"), this.choose(this.sides[1], "B"), time, ...kept, field, button("Keep", "keep the pipeline as it is now under this name", keep));
  }

  async compare() {
    const [a, b] = this.sides;
    this.element.dataset.compared = "";
    const [found, versus] = await Promise.all([this.explorer.host.ask("compare", [a.name, b.name, this.timed]), this.explorer.host.ask("versus", [a.name, a.frame, b.name, b.frame])]);
    if (found.error || versus.error) return this.fail(found.error ?? versus.error);
    const hint = this.names.length < 2 ? el("p", { className: "rl-dim", textContent: "Keep the pipeline under a name, edit it in the list at the left, and come back." }) : null;
    this.table.replaceChildren(...[hint, this.figures(found.rows, found.names), found.operators.length ? el("h3", { textContent: "operators" }) : null, found.operators.length ? this.figures(found.operators, found.names) : null].filter(Boolean));
    const roles = Object.entries(versus.roles).map(([role, n]) => el("span", { className: `rl-role rl-role-${role}`, textContent: `${ICONS[role]} ${n} ${role}` }));
    this.legend.replaceChildren(el("strong", { textContent: "from A to B" }), ...(roles.length ? roles : [el("span", { className: "rl-dim", textContent: "no difference" })]));
    this.text.replaceChildren(difference(versus.rows, (id) => this.canvas.byId.has(id) && this.canvas.select(id, true)));
    this.canvas = new Canvas(this.picture, versus.scenes[0], { select: (data) => this.light(data?.id ?? "") });
    this.element.dataset.compared = `${a.name} ${b.name}`;
  }

  figures(rows, names) {
    const cell = (v, within) => el("td", { textContent: v === null ? "–" : short(v) }, within ? el("div", { className: "rl-within", textContent: `${short(within[0])} … ${short(within[1])}`, title: "the median lies here with a probability of 95 %" }) : null);
    const change = (v) => el("td", { className: v > 0 ? "rl-up" : v < 0 ? "rl-down" : "", textContent: v ? `${v > 0 ? "+" : "−"}${Math.abs(v * 100).toFixed(1)} %` : "" });
    const head = el("tr", {}, ...["", ...names, ""].map((n) => el("th", { textContent: n })));
    return el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows.map(([name, unit, a, b, share, within]) => el("tr", {}, el("td", { textContent: unit ? `${name}, ${unit}` : name }), cell(a, within?.[0]), cell(b, within?.[1]), change(share)))));
  }

  light(id) {
    for (const line of this.text.querySelectorAll(".rl-line")) line.classList.toggle("rl-lit", Boolean(id) && line.dataset.id === id);
    this.text.querySelector(".rl-lit")?.scrollIntoView({ block: "nearest" });
  }
}
