// @ts-check
// The operators of a stage: a click on a column sorts, a click on an operator finds its nodes in the graph.
import { button, el, link, problem, short } from "../dom.js";

const COLUMNS = [
  ["operator", ""],
  ["calls", ""],
  ["MACs", ""],
  ["bytes", "B"],
  ["time", "µs"],
];
const [MACS, TIME] = [2, 4];
const percent = (share) => `${(100 * share).toFixed(1)} %`;

export class OperatorTable {
  /** @param {Pick<import("./tools.js").Act, "ask" | "stages" | "find">} act */
  constructor(act) {
    this.act = act;
    this.by = MACS; // the column that sorts
    this.down = true; // the largest first
    this.timed = false;
    this.rows = [];
    this.words = el("span", {
      className: "rl-dim",
      "aria-live": "polite",
      textContent: "click a column to sort, an operator to find it",
    });
    const measure = button(
      "Measure",
      "compile the last stage and measure its kernels; the time of a kernel is its heaviest operator's",
      () => ((this.timed = true), (this.by = TIME), this.show()),
    );
    this.body = el("div", { className: "rl-figures-table rl-operators" });
    const bar = el("div", { className: "rl-tab-bar" }, measure, this.words);
    this.element = el("div", { className: "rl-tab" }, bar, this.body);
  }

  async show() {
    const { ask, stages } = this.act;
    const { shown } = stages;
    const found = await ask("operators", shown, this.timed);
    if (shown !== stages.shown) return;
    if (found.error) {
      if (this.timed) [this.timed, this.by] = [false, MACS]; // what is known comes back with the table
      return this.body.replaceChildren(problem(found.error));
    }
    if (found.frame !== stages.shown) this.words.textContent = `times are those of the last stage, ${found.frame}`;
    if (found.sizes) this.words.textContent = `times are those for ${found.sizes}`;
    this.rows = found.rows;
    this.draw();
  }

  draw() {
    const shown = COLUMNS.slice(0, this.timed ? TIME + 1 : TIME);
    const sums = shown.map((_, k) => (k ? this.rows.reduce((sum, row) => sum + (row[k] ?? 0), 0) : 0));
    const order = [...this.rows].sort((a, b) =>
      this.by ? (b[this.by] ?? 0) - (a[this.by] ?? 0) : a[0].localeCompare(b[0]),
    );
    if (!this.down) order.reverse();
    const cells = (row) => shown.slice(1).map((_, k) => this.cell(row[k + 1], k + 1, sums[k + 1]));
    const line = (row) =>
      el(
        "tr",
        {},
        el(
          "td",
          {},
          link(row[0], () => this.find(row[0])),
        ),
        ...cells(row),
      );
    const head = el("thead", {}, el("tr", {}, ...shown.map((column, k) => this.head(column, k))));
    this.body.replaceChildren(el("table", {}, head, el("tbody", {}, ...order.map(line))));
    this.element.dataset.sorted = `${shown[this.by]?.[0] ?? ""} ${this.down}`;
  }

  head(column, k) {
    const [name, unit] = column;
    const sorted = k === this.by;
    const turn = () => {
      [this.by, this.down] = [k, sorted ? !this.down : true];
      this.draw();
    };
    const sign = sorted ? (this.down ? " ▾" : " ▴") : "";
    const title = link(`${name}${unit ? `, ${unit}` : ""}${sign}`, turn);
    return el("th", { "aria-sort": sorted ? (this.down ? "descending" : "ascending") : "none" }, title);
  }

  cell(value, k, sum) {
    const share = sum ? value / sum : 0;
    const within = value && k >= MACS ? el("div", { className: "rl-within", textContent: percent(share) }) : null;
    const td = el("td", { textContent: value ? short(value) : "", title: value ? percent(share) : "" }, within);
    td.style.setProperty("--share", `${k >= MACS ? 100 * share : 0}%`);
    return td;
  }

  find(operator) {
    this.act.find(`op:/^${operator.replace(/[.]/g, "\\$&")}$/`);
  }
}
