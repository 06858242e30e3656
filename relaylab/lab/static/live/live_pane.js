// @ts-check
// The program as text to type in, and beside it what the text changes. The kernel reads it; what it says of a text
// that is another one by now is dropped, and a text that is wrong leaves the last picture and is itself never touched.
import { button, choice, el, link, problem } from "../dom.js";
import { Canvas } from "../canvas/canvas.js";
import { roles } from "../explorer/legend.js";
import { Paper } from "./paper.js";

const PAUSE = 300; // ms after the last key

export class LivePane {
  /** @param {Pick<import("./tools.js").Act, "ask" | "put" | "edited">} act */
  constructor(act) {
    this.act = act;
    this.base = null; // the text of the program that the passes run over
    /** @type {"before" | "program"} */
    this.since = "before";
    this.busy = false;
    /** @type {Map<string, string>} */
    this.written = new Map(); // how programs that were applied had been typed, by how they are printed
    this.paper = new Paper(() => this.typed());
    this.paper.field.readOnly = true; // until there is a text: what was typed before would be lost
    this.faults = el("div", { className: "rl-faults", role: "status" });
    this.legend = el("div", { className: "rl-legend" });
    this.picture = el("div", { className: "rl-view" });
    const choose = (since) => (this.against.mark((this.since = since)), this.read());
    this.against = choice(
      "compared with",
      [
        ["before", "the text before"],
        ["program", "the program"],
      ],
      "before",
      choose,
    );
    const apply = button("Apply", "run the passes over this program", () => this.apply());
    const revert = button("Revert", "the text of the program that the passes run over", () => this.revert());
    const bar = el("div", { className: "rl-tab-bar" }, apply, revert, " changes since ", this.against.group);
    const left = el("div", { className: "rl-live" }, this.paper.element, this.faults);
    const right = el("div", { className: "rl-versus" }, this.legend, this.picture);
    this.element = el("div", { className: "rl-tab" }, bar, el("div", { className: "rl-tab-body" }, left, right));
  }

  get canvases() {
    return this.canvas ? [this.canvas] : [];
  }

  async show() {
    const found = await this.act.ask("source");
    if (found.error) return this.faults.replaceChildren(problem(found.error));
    this.paper.field.readOnly = false;
    const text = this.written.get(found.text) ?? found.text;
    if (this.base === text) return;
    if (this.base === null || this.paper.text === this.base) this.paper.text = text;
    this.base = text;
    await this.read();
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.read(), PAUSE);
  }

  async read() {
    if (this.busy) return; // the answer that is under way sees that the text is another one
    this.busy = true;
    const [text, since] = [this.paper.text, this.since];
    const found = await this.act.put("live", text, since);
    this.busy = false;
    if (text !== this.paper.text || since !== this.since) return this.read();
    this.draw(found);
    this.element.dataset.read = text;
  }

  /** @param {import("../questions.js").LiveAnswer & { error?: string }} found */
  draw({ error, faults = [], scenes, roles: counts }) {
    this.paper.mark(faults);
    const line = (fault) =>
      el(
        "div",
        { className: "rl-error" },
        link(`${fault.line}:${fault.column}`, () => this.paper.go(fault)),
        ` ${fault.message}${fault.help ? `: ${fault.help}` : ""}`,
      );
    this.faults.replaceChildren(...(error ? [problem(error)] : faults.map(line)));
    this.picture.classList.toggle("rl-stale", Boolean(error || faults.length));
    if (error || faults.length) return;
    const changed = roles(counts, (properties) => el("span", properties));
    this.legend.replaceChildren(...(changed.length ? changed : [el("span", { textContent: "nothing changed" })]));
    const old = this.canvas;
    const kept = old?.anchor(new Set(scenes[0].nodes.map(([id]) => id)));
    this.canvas = new Canvas(this.picture, scenes[0], { select: () => {} });
    kept ? this.canvas.keep(kept, old.k) : this.canvas.begin();
  }

  async apply() {
    const { text } = this.paper;
    const rows = await this.act.put("begin_with", text);
    if (rows.error) return this.faults.replaceChildren(problem(rows.error));
    this.written.set((await this.act.put("source")).text, text);
    this.act.edited(rows, "begin_with");
  }

  revert() {
    this.paper.text = this.base ?? "";
    this.read();
  }
}
