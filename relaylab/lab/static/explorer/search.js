// @ts-check
// The search field: what is found is marked in the pictures, Enter leads from one to the next.
import { el, count } from "../dom.js";
import { query } from "./query.js";

export const QUERIES = "words, /regex/, op:conv attr:strides dtype:float16 type:(1, role:added in:main";

export class Search {
  /** @param {{ canvases: () => import("../canvas/canvas.js").Canvas[], leave: () => void }} act */
  constructor(act) {
    this.act = act;
    this.field = el("input", {
      className: "rl-search",
      type: "search",
      placeholder: "search (/)",
      title: QUERIES,
      ariaLabel: "search nodes",
    });
    this.field.addEventListener("input", () => this.run());
    this.field.addEventListener("keydown", (e) => this.key(e));
    this.hits = el("span", { className: "rl-hits", "aria-live": "polite" });
  }

  get text() {
    return this.field.value;
  }

  find(text) {
    this.field.value = text;
    this.run();
  }

  run() {
    const canvases = this.act.canvases();
    const found = canvases.map((c) => query(this.text, c.scene));
    canvases.forEach((c, i) => ((c.hits = found[i] ?? []), c.mark(found[i] && new Set(found[i]))));
    const hits = new Set(found.flatMap((f) => f ?? []));
    this.hits.textContent = this.text ? count(hits.size, "hit") : "";
  }

  // the ids of what is found
  get found() {
    return [...new Set(this.act.canvases().flatMap((c) => c.hits ?? []))];
  }

  key(e) {
    e.stopPropagation();
    if (e.key === "Enter")
      this.act
        .canvases()
        .at(-1)
        ?.next(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") (this.find(""), this.act.leave());
  }
}
