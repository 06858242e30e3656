// @ts-check
// The search field: what is found is marked in the pictures, the map and the tree, Enter leads from one to the next; a
// query that cannot be understood says where, and what may stand at the cursor is offered.
import { onward } from "../../../viz/static/graph.js";
import { el, count } from "../dom.js";
import { noteOf } from "../panels/node_panel.js";
import { completions, query, QueryError } from "./query.js";

export const QUERIES = "op:nn.conv2d & !dtype:float16, cost>1e6 | users>1, name:/^%layer/, role:added, words";
const OFFERED = 9; // completions that are shown
const BLANK = { type: "", text: "", kind: "", operator: "", family: "", span: "", group: "" };

export class Search {
  /**
   * @param {{ canvases: () => import("../canvas/canvas.js").Canvas[], leave: () => void,
   *   brief: () => boolean, has: (id: string) => boolean, selected: () => string, pick: (id: string) => void,
   *   mark: (ids: Set<string>) => void, parts: () => Promise<any[][]>, kept: () => void }} act
   */
  constructor(act) {
    this.act = act;
    this.turns = 0;
    this.running = Promise.resolve(); // what is under way; keys that ask what is found wait for it
    this.shown = ""; // the query whose hits are shown
    this.far = []; // hits that are not drawn
    this.at = -1; // the completion that is chosen
    /** @type {Map<string, any>[]} */
    this.tables = [new Map(), new Map()];
    this.field = el("input", {
      className: "rl-search",
      type: "search",
      placeholder: "search (/)",
      title: QUERIES,
      ariaLabel: "search nodes",
      autocomplete: "off",
      oninput: () => this.typed(),
      onfocus: () => this.typed(),
      onblur: () => this.hide(),
      onkeydown: (e) => this.key(e),
    });
    this.hits = el("span", { className: "rl-hits", "aria-live": "polite" });
    this.says = el("div", { className: "rl-query", hidden: true });
    this.element = el("span", { className: "rl-search-part" }, this.field, this.says, this.hits);
  }

  get text() {
    return this.field.value;
  }

  find(text) {
    if (text !== this.text) this.act.kept();
    this.field.value = text;
    this.hide();
    return this.run();
  }

  async typed() {
    if (this.text !== this.shown) this.act.kept();
    await this.run();
    this.offer();
  }

  // What is known of the parts of both stages, by id.
  async load() {
    const tables = (await this.act.parts()).map((parts) => new Map(parts.map((p) => [p.id, p])));
    for (const table of tables)
      for (const part of table.values()) {
        part.groups = [];
        for (let at = table.get(part.group || ""); at; at = table.get(at.group)) part.groups.push(at.title);
      }
    this.tables = tables;
  }

  run() {
    return (this.running = this.hunt());
  }

  async hunt() {
    const turn = (this.turns += 1);
    this.shown = this.text;
    if (this.text || document.activeElement === this.field) await this.load();
    if (turn !== this.turns) return;
    let test = null;
    this.wrong = null;
    try {
      test = query(
        this.text,
        this.tables.flatMap((t) => [...t.values()].flatMap((p) => Object.keys(p.figures))),
      );
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.wrong = error;
    }
    const canvases = this.act.canvases();
    const found = canvases.map((c, i) => (test ? this.of(c, i < canvases.length - 1, test) : []));
    canvases.forEach((c, i) => ((c.hits = found[i]), c.mark(test && new Set(found[i]))));
    const hits = new Set(found.flat());
    this.act.mark(hits);
    const parts = test && this.act.brief() ? [...this.tables[1].values()] : [];
    const far = parts.filter((p) => !this.act.has(p.id) && test(p));
    this.far = far.map((p) => p.id);
    const words = count(hits.size + far.length, "hit") + (far.length ? `, ${hits.size} shown` : "");
    this.hits.textContent = this.wrong ? "not understood" : this.text.trim() ? words : "";
    this.field.setAttribute("aria-invalid", String(Boolean(this.wrong)));
  }

  // The ids of what a picture shows and a query means; `left` is the picture of the stage before.
  of(canvas, left, test) {
    const [before, after] = left ? this.tables.toReversed() : this.tables;
    const drawn = [...canvas.byId.values()].map(({ data }) => data);
    const whole = (f) => {
      const part = after.get(f.id) ?? before.get(f.id);
      if (part && !f.role) return part;
      const blank = { ...BLANK, id: f.id, title: f.label, groups: [], rows: [], attrs: [], names: [], operands: [] };
      return { figures: {}, ...blank, ...part, known: undefined, role: f.role, note: noteOf(f) };
    };
    return drawn.filter((f) => test(whole(f))).map((f) => f.id);
  }

  // the ids of what is found
  get found() {
    return [...new Set(this.act.canvases().flatMap((c) => c.hits ?? []))];
  }

  // ---- below the field: what is wrong, or what may stand here

  // at the begin of a word only when asked (by ↓): the list covers what is below it
  async offer(asked = false) {
    if (asked) await this.running;
    if (document.activeElement !== this.field) return this.hide();
    const before = this.text.slice(0, this.field.selectionStart ?? this.text.length);
    this.offered = completions(before, this.tables[1].values());
    this.offered.words = this.offered.words.slice(0, OFFERED);
    if (this.offered.from === before.length && !asked) this.offered.words = [];
    this.at = -1;
    this.drawOffer();
  }

  drawOffer() {
    const { wrong, offered, at } = this;
    const line = (word, i) =>
      el("div", {
        className: "rl-query-word",
        role: "option",
        "aria-selected": String(i === at),
        textContent: word,
        onpointerdown: (e) => (e.preventDefault(), this.take(i)),
      });
    const place = wrong ? `${this.text}\n${" ".repeat(wrong.place)}^ ${wrong.message}` : "";
    const help = wrong?.help ? [el("div", { className: "rl-dim", textContent: wrong.help })] : [];
    const caret = wrong && this.text ? [el("pre", { className: "rl-caret", textContent: place }), ...help] : [];
    this.says.replaceChildren(...caret, ...(offered?.words ?? []).map(line));
    this.says.hidden = !this.says.firstChild;
  }

  hide() {
    this.says.hidden = true;
    this.at = -1;
  }

  take(i) {
    const { from, words } = this.offered;
    const end = this.field.selectionStart ?? this.text.length;
    const head = this.text.slice(0, from) + words[i];
    this.field.setRangeText(words[i], from, end, "end");
    this.field.setSelectionRange(head.length, head.length);
    this.typed();
  }

  // to another hit; one that is far from every change is shown then
  async next(by) {
    await this.running;
    const { found, far } = this;
    const all = new Set([...found, ...far]);
    const ids = far.length ? [...this.tables[1].keys()].filter((id) => all.has(id)) : found;
    if (ids.length) this.act.pick(onward(ids, this.act.selected(), by));
  }

  key(e) {
    e.stopPropagation();
    const open = !this.says.hidden && this.offered?.words.length;
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by && open) {
      this.at = (this.at + by + open + (this.at < 0 && by < 0 ? 1 : 0)) % open;
      this.drawOffer();
    } else if (e.key === "ArrowDown") this.offer(true);
    else if (e.key === "Tab" && open && this.text && !e.shiftKey) this.take(Math.max(0, this.at));
    else if (e.key === "Enter" && open && this.at >= 0) this.take(this.at);
    else if (e.key === "Enter") (this.hide(), this.next(e.shiftKey ? -1 : 1));
    else if (e.key === "Escape") return (this.find(""), this.act.leave());
    else return;
    e.preventDefault();
  }
}
