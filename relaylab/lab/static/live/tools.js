// @ts-check
// What the buttons of the bar ask the kernel: checks, the search for a wrong rewrite, suggestions, the pipeline
// as text, memory.
import { button, code, dim, el, heading, link, paragraph, problem, subheading } from "../dom.js";
import { tensorMaps } from "../tabs/heat_map.js";

/**
 * What the tools of a kernel need of the explorer.
 * @typedef {object} Act
 * @property {import("../types.js").Ask} ask  a question whose answer is kept
 * @property {import("../types.js").Ask} put  a question that is asked anew
 * @property {import("../explorer/stages.js").Stages} stages
 * @property {() => import("../types.js").FigureData[]} figures  by which nodes can be coloured
 * @property {() => string[]} found  what the search finds
 * @property {(before: number, after: number) => void} go
 * @property {(run: () => void) => void} arrive  when the next picture is there
 * @property {(id: string) => void} pick
 * @property {(id: string) => void} about
 * @property {(ids: string[]) => void} glow
 * @property {(text: string) => void} find  search for it in the graph
 * @property {(...children: any[]) => void} read
 * @property {() => (...children: any[]) => boolean} hold  to be read later, unless something else was asked for by then
 * @property {(text: string) => void} problem
 * @property {(text: string) => void} say
 * @property {(index: number, state?: any, size?: number | null) => void} light
 * @property {(how: string, index: number, value?: any) => void} edit
 * @property {(rows: any, how: string) => void} edited
 * @property {(what: string, value: string) => void} done  for those who wait
 */

export class Tools {
  /** @param {Act} act */
  constructor(act) {
    this.act = act;
    this.buttons = [
      button("Check", "run every stage in the interpreter on seeded input", () => this.check()),
      button("Bisect", "which rewrite changed the numbers", () => this.bisect()),
      button("What next?", "which passes would change this program now", () => this.suggest()),
      button("Copy", "the pipeline as Python and as a command", () => this.copy()),
      button("Memory", "the memory plan", () => this.memory()),
    ];
  }

  async check() {
    const { stages, light, ask, problem: fail, say, done } = this.act;
    const { rows } = stages;
    let wrong = -1;
    for (let i = 0; i < stages.rows.length; i++) {
      light(i, "wait");
      const found = await ask("check", i);
      if (rows !== stages.rows) return; // another pipeline by now
      light(i, found.error ? undefined : found.ok, found.error_size);
      if (found.error) return fail(found.error);
      if (!found.ok && wrong < 0) wrong = i;
    }
    say(wrong < 0 ? "every stage keeps the numbers" : `${stages.rows[wrong].name} changes the numbers`);
    done("checked", String(wrong));
  }

  async bisect() {
    const { ask, go, arrive } = this.act;
    this.act.read(paragraph("searching …"));
    const read = this.act.hold();
    const found = await ask("bisect");
    const text = code(found.error ?? found.text);
    if (!found.found) return void read(heading("bisect"), text);
    const shown = [subheading("a program that shows it"), code(found.reproducer)];
    const maps = found.scene ? [tensorMaps(found.scene)] : []; // a pass that raised gives no values
    const tell = () => read(heading("bisect"), ...maps, text, ...shown);
    if (!tell()) return;
    arrive(tell); // a selected node tells of the new stage, too
    go(found.index, found.index + 1);
  }

  async suggest() {
    const { ask, stages, edit } = this.act;
    this.act.read(paragraph("trying every pass …"));
    const read = this.act.hold();
    const { after, shown } = stages;
    const found = await ask("suggest", shown);
    const line = ({ name, ops, summary }) => {
      const insert = link("", () => edit("insert", after, name), "insert it here");
      insert.append(el("b", { textContent: `+ ${name}` }));
      const changes = ops.map(([op, n]) => `${n > 0 ? "+" : ""}${n} ${op}`).join(", ");
      return el("li", {}, insert, el("span", { textContent: ` ${changes}` }), dim(summary, "div"));
    };
    const list = el("ul", { className: "rl-story" }, ...(found.suggestions ?? []).map(line));
    const wrong = found.error ? [el("pre", { textContent: found.error })] : [];
    read(heading("passes that would change this program now"), list, ...wrong);
  }

  async copy() {
    const read = this.act.hold();
    const found = await this.act.ask("copy");
    const block = (title, text) => {
      const copy = button("copy", "", () => navigator.clipboard?.writeText(text));
      return [subheading(title), copy, code(text)];
    };
    read(...block("as Python", found.python), ...block("as a command", found.command));
  }

  async memory() {
    const read = this.act.hold();
    const found = await this.act.ask("memory");
    const words = "each bar: who fills these bytes, and how long they are kept";
    const shown = found.error ? problem(found.error) : tensorMaps(found.scene, words);
    read(heading("memory plan"), shown);
  }
}
