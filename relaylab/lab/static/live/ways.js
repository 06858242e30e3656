// @ts-check
// Ways through the picture, and a part of it as a program: what the kernel finds.
import { button, choice, code, dim, el, heading, link, paragraph, subheading } from "../dom.js";

export class Ways {
  /** @param {import("./tools.js").Act} act */
  constructor(act) {
    this.act = act;
    this.from = ""; // where a path is to begin
  }

  // for the panel of views
  more() {
    const figures = this.act.figures().filter((f) => !f.ratio); // a ratio has no sum along a path
    const names = figures.map((f) => [f.name, f.name]);
    return [
      subheading("critical path by"),
      choice("figure", names, "", (f) => this.critical(f)).group,
      subheading("what the search finds"),
      this.extractor(() => this.act.found()),
    ];
  }

  // what a panel about a node offers beside it
  beside(id) {
    const { from, act } = this;
    const start = button("Path from here", "then select the node where it ends", () => {
      this.from = id;
      act.say(`a path from ${id}: select where it ends`);
      act.about(id);
    });
    const path = () => this.path(from, id);
    const end = from && from !== id ? button(`Path from ${from}`, "the shortest way along the edges", path) : null;
    return el(
      "div",
      { className: "rl-ways" },
      start,
      end,
      this.extractor(() => [id]),
    );
  }

  async path(a, b) {
    const { ask, stages, hold } = this.act;
    const [{ shown }, read] = [stages, hold()];
    const found = await ask("path", shown, a, b);
    if (shown === stages.shown) this.trace("path", found, read);
  }

  async critical(figure) {
    const { ask, stages, go, arrive, hold } = this.act;
    const [{ shown }, read] = [stages, hold()];
    const found = await ask("critical", shown, figure);
    if (shown !== stages.shown) return; // somebody went on meanwhile
    if (found.frame === undefined || found.frame === shown) return this.trace("critical path", found, read);
    arrive(() => this.trace("critical path", found, hold()));
    go(found.frame, found.frame);
  }

  trace(title, found, read) {
    const { act } = this;
    if (found.error) return act.problem(found.error);
    const line = ([id, name, type]) =>
      el(
        "li",
        {},
        link(name || id, () => act.pick(id)),
        dim(` ${type}`, "span"),
      );
    const list = el("ol", { className: "rl-story rl-trace" }, ...found.nodes.map(line));
    if (!read(heading(title), paragraph(found.text), list)) return;
    act.glow(found.ids);
    act.say(found.text);
  }

  extractor(ids) {
    const field = el("input", { className: "rl-add", value: "part", size: 8, ariaLabel: "name of the module" });
    field.addEventListener("keydown", (e) => e.stopPropagation());
    const run = () => this.extract(ids(), field.value.trim());
    const title = "make a module of it, under this name in the notebook";
    return el("span", { className: "rl-extract" }, button("Extract as", title, run), field);
  }

  async extract(ids, name) {
    const { act } = this;
    if (!ids.length) return act.say("search for what is to be extracted first");
    const found = await act.put("extract", act.stages.shown, ids, name);
    if (found.error) return act.problem(found.error);
    const copy = () => navigator.clipboard?.writeText(found.code);
    const text = found.code
      ? [button("copy", "copy the code", copy), code(found.code)]
      : [paragraph("It has large constants and is not shown.")];
    const inputs = paragraph(`inputs: ${found.inputs.join(", ") || "none"}`);
    act.read(heading(`${found.name} is a module now`), inputs, ...text);
    act.say(`${found.name} is a module now`);
    act.done("extracted", found.name);
  }
}
