// The operators of a stage: a click on a column sorts, a click on an operator finds its nodes in the graph.
import { el, short } from "./dom.js";

const COLUMNS = [["operator", ""], ["calls", ""], ["MACs", ""], ["bytes", "B"], ["time", "µs"]];

export class OperatorTable {
  constructor(explorer) {
    Object.assign(this, { explorer, by: 2, down: true, timed: false });
    this.words = el("span", { className: "rl-dim", "aria-live": "polite", textContent: "click a column to sort, an operator to find it" });
    const measure = el("button", { className: "rl-button", textContent: "Measure", title: "compile the last stage and measure its kernels; the time of a kernel is its heaviest operator's", onclick: () => ((this.timed = true), (this.by = 4), this.show()) });
    this.body = el("div", { className: "rl-figures-table rl-operators" });
    this.element = el("div", { className: "rl-tab" }, el("div", { className: "rl-tab-bar" }, measure, this.words), this.body);
  }

  async show() {
    const { explorer } = this;
    const found = await explorer.ask("operators", explorer.settled(explorer.after), this.timed);
    if (found.error) return this.body.replaceChildren(el("pre", { className: "rl-error", textContent: found.error }));
    if (found.frame !== explorer.settled(explorer.after)) this.words.textContent = `times are those of the last stage, ${found.frame}`;
    this.rows = found.rows;
    this.draw();
  }

  draw() {
    const shown = COLUMNS.filter((_, k) => k < 4 || this.timed);
    const sums = shown.map((_, k) => (k ? this.rows.reduce((sum, row) => sum + (row[k] ?? 0), 0) : 0));
    const order = [...this.rows].sort((a, b) => (this.by ? (b[this.by] ?? 0) - (a[this.by] ?? 0) : a[0].localeCompare(b[0])));
    if (!this.down) order.reverse();
    const head = shown.map(([name, unit], k) => {
      const sorted = k === this.by;
      const turn = () => (sorted ? (this.down = !this.down) : Object.assign(this, { by: k, down: true }), this.draw());
      return el("th", { "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" }, el("button", { className: "rl-link", textContent: `${name}${unit ? `, ${unit}` : ""}${sorted ? (this.down ? " ▾" : " ▴") : ""}`, onclick: turn }));
    });
    const cell = (value, k) => {
      const share = sums[k] ? value / sums[k] : 0;
      const td = el("td", { textContent: value ? short(value) : "", title: value ? `${(100 * share).toFixed(1)} %` : "" }, value && k > 1 ? el("div", { className: "rl-within", textContent: `${(100 * share).toFixed(1)} %` }) : null);
      td.style.setProperty("--share", `${k > 1 ? 100 * share : 0}%`);
      return td;
    };
    const line = (row) => el("tr", {}, el("td", {}, el("button", { className: "rl-link", textContent: row[0], onclick: () => this.find(row[0]) })), ...shown.slice(1).map((_, k) => cell(row[k + 1], k + 1)));
    this.body.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...order.map(line))));
    this.element.dataset.sorted = `${shown[this.by]?.[0] ?? ""} ${this.down}`;
  }

  find(operator) {
    const { explorer } = this;
    explorer.field.value = `op:/^${operator.replace(/[.]/g, "\\$&")}$/`;
    explorer.arrive = () => explorer.search();
    explorer.choose("pane", "graph");
  }
}
