// What the buttons of the bar ask the kernel: checks, the search for a wrong rewrite, suggestions, the pipeline as text, memory.
import { el } from "./dom.js";
import { maps } from "./heat.js";
import { memory } from "./panels.js";

export const HELP = [
  ["← →", "previous, next changing pass (with Shift: every pass)"], ["Home End", "source program, last pass"],
  ["[ ]", "previous, next single rewrite of the pass"], ["↑ ↓", "along the edges of the selected node"],
  ["v", "graph, text, both, code, panes, heat, table, compare"], ["Ctrl Z", "undo the last edit or move (with Shift: redo)"], ["s", "merged or side by side"], ["/", "search; Enter: next hit"],
  ["c C e", "collapse the group of the node, all kernels; expand all"], ["r", "fold, unfold repeated blocks (×N)"], ["u d", "up-stream, down-stream of the node"],
  ["+ − f", "zoom, fit"], ["o", "next overlay"], ["l", "left-hand list: passes or tree"], ["Alt ↑ ↓", "move the pass of this stage"],
  ["x", "switch the pass of this stage on or off"], ["?", "this help"], ["Esc", "give the keyboard back to the notebook"],
];

export class Tools {
  constructor(explorer) {
    this.explorer = explorer;
  }

  async check() {
    for (let i = 0; i < this.explorer.rows.length; i++) {
      this.explorer.rail.light(i, "wait");
      const found = await this.explorer.ask("check", i);
      this.explorer.rail.light(i, found.error ? undefined : found.ok);
      if (found.error) return this.explorer.read(el("pre", { className: "rl-error", textContent: found.error }));
    }
    const wrong = this.explorer.rows.findIndex((_, i) => this.explorer.rail.lights.get(i) === false);
    this.explorer.say(wrong < 0 ? "every stage keeps the numbers" : `${this.explorer.rows[wrong].name} changes the numbers`);
    this.explorer.root.dataset.checked = String(wrong);
  }

  async bisect() {
    this.explorer.read(el("p", { textContent: "searching …" }));
    const found = await this.explorer.ask("bisect");
    const text = found.error ?? found.text;
    this.explorer.read(el("h2", { textContent: "bisect" }), ...(found.found ? [maps(found.scene)] : []), el("pre", { className: "rl-code", textContent: text }), ...(found.found ? [el("h3", { textContent: "a program that shows it" }), el("pre", { className: "rl-code", textContent: found.reproducer })] : []));
    if (found.found) this.explorer.go(found.index, found.index + 1);
  }

  async suggest() {
    this.explorer.read(el("p", { textContent: "trying every pass …" }));
    const found = await this.explorer.ask("suggest", this.explorer.settled(this.explorer.after));
    const line = (s) => el("li", {}, el("button", { className: "rl-link", title: "insert it here", onclick: () => this.explorer.edit("insert", this.explorer.after, s.name) }, el("b", { textContent: `+ ${s.name}` })), el("span", { textContent: ` ${s.ops.map(([op, n]) => `${n > 0 ? "+" : ""}${n} ${op}`).join(", ")}` }), el("div", { className: "rl-dim", textContent: s.summary }));
    this.explorer.read(el("h2", { textContent: "passes that would change this program now" }), el("ul", { className: "rl-story" }, ...(found.suggestions ?? []).map(line)), ...(found.error ? [el("pre", { textContent: found.error })] : []));
  }

  async copy() {
    const found = await this.explorer.ask("copy");
    const block = (title, text) => [el("h3", { textContent: title }), el("button", { className: "rl-button", textContent: "copy", onclick: () => navigator.clipboard?.writeText(text) }), el("pre", { className: "rl-code", textContent: text })];
    this.explorer.read(...block("as Python", found.python), ...block("as a command", found.command));
  }

  async memory() {
    const found = await this.explorer.ask("memory");
    this.explorer.read(...(found.error ? [el("pre", { className: "rl-error", textContent: found.error })] : memory(found)));
  }
}
