// The pass explorer. `host` answers questions (`ask`), keeps what is chosen (`get`, `set`, `on`) and says whether it is live.
import { ahead, rest } from "./ahead.js";
import { Branches } from "./branches.js";
import { Canvas } from "./canvas.js";
import { el, choice, count } from "./dom.js";
import { Heat } from "./heat.js";
import { about, difference, kernel, noteOf, tree, words } from "./panels.js";
import { query } from "./query.js";
import { Rail, Timeline } from "./rail.js";
import { Several } from "./several.js";
import { OperatorTable } from "./table.js";
import { HELP, Tools } from "./tools.js";
import { Undo } from "./undo.js";
import { Views } from "./views.js";
import { why } from "./why.js";

const QUERIES = "words, /regex/, op:conv attr:strides dtype:float16 type:(1, role:added in:main";
const [KEPT, REPEATS] = [Infinity, "×"]; // selected where it stood already; among what is folded: all repeated blocks
const [LARGE, MANY] = [300, 100]; // figures from which on the tree may come later; boxes from which on folding is offered

export class Explorer {
  constructor(root, host) {
    Object.assign(this, { root, host, canvases: [], closed: new Set(), cache: new Map(), step: -1, overlay: "", steps: [] });
    const act = { live: host.live, frame: () => this.after, before: () => this.before, go: (a, b) => this.go(a, b), edit: (...args) => this.edit(...args), ask: (...args) => this.ask(...args) };
    this.undo = new Undo(host, { edit: (what) => this.turnBack(what), refresh: () => this.refresh(), say: (text) => this.say(text) });
    this.tools = new Tools(this);
    this.views = new Views(this);
    this.rail = new Rail(act);
    this.timeline = new Timeline(act);
    this.build();
    this.start(host.get("rows"));
    for (const name of ["before", "after", "compare", "pane", "selected"]) host.on(name, () => this.follow(name));
    host.on("rows", () => (this.cache.clear(), this.start(host.get("rows"))));
    host.on("overlays", () => this.overlayNames());
  }

  get before() { return Math.min(this.host.get("before"), this.frames - 1); }
  get after() { return Math.min(this.host.get("after"), this.frames - 1); }

  // ---- the page

  build() {
    const { host } = this;
    this.field = el("input", { className: "rl-search", type: "search", placeholder: "search (/)", title: QUERIES, ariaLabel: "search nodes" });
    this.field.addEventListener("input", () => this.search());
    this.field.addEventListener("keydown", (e) => this.inField(e));
    this.hits = el("span", { className: "rl-hits", "aria-live": "polite" });
    this.panes = choice("what to see", [["graph", "Graph"], ["text", "Text"], ["both", "Both"], ["code", "Code", "from Relay to assembly"], ["several", "Panes", "two to four stages beside each other"], ["heat", "Heat", "the whole pipeline: which pass changed what"], ["operators", "Table", "operators by MACs, bytes, time"], ["branches", "Compare", "this pipeline with another"]].filter(([p]) => !["branches", "operators"].includes(p) || host.live), host.get("pane"), (v) => this.choose("pane", v));
    this.styles = choice("how to compare", [["merged", "Merged"], ["both", "Side by side"]], host.get("compare"), (v) => this.choose("compare", v));
    this.overlays = el("select", { className: "rl-select", title: "colour nodes by", ariaLabel: "overlay", onchange: () => this.paint(this.overlays.value) });
    this.overlayNames();
    const button = (text, title, run) => el("button", { className: "rl-button", textContent: text, title, onclick: run });
    const tools = host.live ? [button("Check", "run every stage in the interpreter on seeded input", () => this.tools.check()), button("Bisect", "which rewrite changed the numbers", () => this.tools.bisect()), button("What next?", "which passes would change this program now", () => this.tools.suggest()), button("Copy", "the pipeline as Python and as a command", () => this.tools.copy()), button("Memory", "the memory plan", () => this.tools.memory())] : [];
    this.title = el("strong", { className: "rl-title" });
    const bar = el("header", { className: "rl-bar" }, this.title, ...this.undo.buttons, this.field, this.hits, this.panes.group, this.styles.group, this.overlays, button("Views", "named views to come back to, paths, parts", () => this.views.show()), ...tools, button("?", "keys", () => this.help()));
    this.stepper = el("div", { className: "rl-stepper", hidden: true });
    this.legend = el("div", { className: "rl-legend" });
    this.graphs = el("div", { className: "rl-graphs" });
    this.map = el("canvas", { className: "rl-minimap", width: 110, height: 150, title: "click to go there" });
    this.map.addEventListener("pointerdown", (e) => this.mapped(e));
    this.text = el("div", { className: "rl-textpane" });
    this.code = el("div", { className: "rl-codepane" });
    this.extra = el("div", { className: "rl-extra" });
    this.tabs = { several: new Several(this), heat: new Heat(this), ...(host.live ? { operators: new OperatorTable(this), branches: new Branches(this) } : {}) };
    this.panel = el("aside", { className: "rl-panel", "aria-live": "polite" });
    this.outline = el("div", { className: "rl-outline" });
    this.said = el("div", { className: "rl-said", role: "status", "aria-live": "polite" });
    const stage = el("section", { className: "rl-stage" }, this.legend, this.stepper, el("div", { className: "rl-panes" }, el("div", { className: "rl-graphpane" }, this.graphs, this.map), this.text, this.code, this.extra));
    this.root.className = "rl-explorer";
    this.root.tabIndex = 0;
    this.root.setAttribute("data-lm-suppress-shortcuts", "true"); // Jupyter's own keys rest while the explorer has the focus
    this.root.replaceChildren(bar, this.timeline.element, el("div", { className: "rl-main" }, el("div", { className: "rl-left" }, this.rail.element, this.outline), stage, this.panel), this.said);
    this.root.addEventListener("keydown", (e) => this.key(e));
    this.about(null);
  }

  start(rows) {
    this.rows = rows.rows;
    this.frames = rows.frames;
    this.title.textContent = rows.title;
    this.changing = [0, ...this.rows.map((r, i) => (r.changed || r.error ? i + 1 : -1)).filter((i) => i > 0)];
    this.rail.draw(this.rows);
    this.timeline.draw(this.rows);
    this.refresh();
  }

  overlayNames() {
    const names = ["", "MACs", "bytes", ...(this.host.live ? ["time"] : []), ...(this.host.get("overlays") ?? [])];
    this.overlays.replaceChildren(...names.map((n) => el("option", { value: n, textContent: n || "no overlay" })));
    this.overlays.value = this.overlay;
  }

  // ---- questions

  ask(what, ...args) {
    const key = JSON.stringify([what, ...args]);
    if (!this.cache.has(key)) this.cache.set(key, this.timed(what, args));
    return this.cache.get(key);
  }

  // the question for the picture of what differs between two frames
  question(a, b) {
    return ["picture", this.settled(a), this.settled(b), this.host.get("compare"), [...this.closed].sort().join("\n")];
  }

  // the answer; how long the last picture took is kept
  async timed(what, args) {
    const start = performance.now();
    const answer = await this.host.ask(what, args);
    if (what === "picture") this.slow = performance.now() - start;
    return answer;
  }

  // frames between two changes look alike: ask about the first of them
  settled(frame) {
    return this.changing.filter((f) => f <= frame).at(-1) ?? 0;
  }

  say(text) {
    this.said.textContent = text;
  }

  // ---- moving between stages

  choose(name, value) {
    this.root.focus({ preventScroll: true });
    this.undo.moving();
    this.host.set(name, value);
    this.follow(name);
  }

  follow(name) {
    if (name === "selected") return this.selectEverywhere(this.host.get("selected"));
    this.refresh();
  }

  go(before, after) {
    if (before !== this.host.get("before") || after !== this.host.get("after")) this.undo.moving();
    this.step = -1;
    this.host.set("before", Math.max(0, before));
    this.host.set("after", Math.min(this.frames - 1, after));
    this.refresh();
  }

  turn(direction, every) {
    const next = every ? this.after + direction : direction > 0 ? this.changing.find((f) => f > this.after) : this.changing.filter((f) => f < this.after).at(-1);
    if (next === undefined || next < 0 || next >= this.frames) return;
    this.go(Math.max(0, next - 1), next);
  }

  refresh() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(async () => {
      this.queued = false;
      await this.show();
    });
  }

  async show() {
    const pane = this.host.get("pane");
    this.root.dataset.pane = pane;
    this.panes.mark(pane);
    this.styles.mark(this.host.get("compare"));
    this.rail.mark();
    this.timeline.mark();
    const [a, b] = [this.settled(this.before), this.settled(this.after)];
    const turn = (this.turnNumber = (this.turnNumber ?? 0) + 1);
    if (this.tabs[pane]) {
      if (this.extra.firstChild !== this.tabs[pane].element) this.extra.replaceChildren(this.tabs[pane].element);
      await this.tabs[pane].show();
      this.root.dataset.shown = `${this.before}:${this.after}`;
      return;
    }
    const picture = await this.ask(...this.question(a, b));
    if (turn !== this.turnNumber) return;
    if (picture.error) this.fail(picture.error);
    else this.draw(picture);
    this.arrive?.();
    this.arrive = null;
    if (pane === "text" || pane === "both") await this.showText(a, b);
    if (pane === "code") await this.showCode();
    await this.showSteps();
    if (this.overlay) await this.paint(this.overlay);
    if (this.root.classList.contains("rl-nothing")) await this.idle();
    const name = this.after ? this.rows[this.after - 1].name : "source program";
    const roles = Object.entries(picture.roles ?? {}).map(([r, n]) => `${n} ${r}`).join(", ");
    this.say(`${name}: ${roles || "nothing changed"}`);
    this.root.dataset.shown = `${this.before}:${this.after}`;
    if (this.host.live) ahead(this, turn);
  }

  fail(text) {
    this.canvases = [];
    this.graphs.replaceChildren(el("pre", { className: "rl-error", textContent: text }));
  }

  draw(picture) {
    const old = this.canvases[0];
    const selected = this.host.get("selected");
    this.picture = picture;
    const focused = this.graphs.contains(document.activeElement);
    const slots = picture.scenes.map(() => el("div", { className: "rl-view" }));
    this.graphs.replaceChildren(...slots);
    this.graphs.classList.toggle("rl-two", slots.length > 1);
    this.canvases = picture.scenes.map((scene, i) => new Canvas(slots[i], scene, { select: (data) => this.selected(data?.id ?? "", i), moved: (c) => this.moved(c, i) }));
    this.following = true;
    const anchor = old?.touched || old?.selected ? old.anchor(new Set(this.canvases[0].byId.keys())) : null;
    if (anchor) this.canvases.forEach((c) => ((c.touched = true), c.byId.has(anchor.id) && c.keep(anchor, old.k)));
    else this.canvases.forEach((c) => c.begin());
    this.following = false;
    if (focused) this.canvases[0].svg.focus({ preventScroll: true });
    this.drawLegend(picture);
    this.mirror(picture);
    this.search();
    if (selected) this.selectEverywhere(selected, anchor?.id === selected ? KEPT : -1);
    this.minimap();
  }

  // the tree for those who do not see the picture; of a large one a moment later
  async mirror(picture) {
    if (picture.scenes.at(-1).figures.length > LARGE) await rest();
    if (this.picture !== picture) return;
    this.outline.replaceChildren(tree(picture.scenes.at(-1), picture.groups, (id) => id && this.pick(id)));
    this.markTree(this.host.get("selected"));
  }

  markTree(id) {
    this.outline.querySelectorAll("[aria-selected=true]").forEach((li) => li.setAttribute("aria-selected", "false"));
    for (const li of this.outline.querySelectorAll("li")) if (li.dataset.id === id) li.setAttribute("aria-selected", "true");
  }

  drawLegend(picture) {
    const roles = Object.entries(picture.roles).map(([role, n]) => el("button", { className: `rl-role rl-role-${role}`, textContent: `${{ added: "+", removed: "–", changed: "±", moved: "»", merged: "&" }[role]} ${n} ${role}`, title: "show only these", onclick: () => ((this.field.value = this.field.value === `role:${role}` ? "" : `role:${role}`), this.search()) }));
    const row = this.rows[this.after - 1];
    const title = this.before === this.after ? (row ? `after ${this.after} ${row.name}` : "source program") : this.after - this.before === 1 ? `${this.after} ${row.name}` : `from ${this.before ? `${this.before} ${this.rows[this.before - 1].name}` : "the source"} to ${this.after} ${row.name}`;
    this.legend.replaceChildren(el("strong", { textContent: title }), ...(roles.length ? roles : [el("span", { className: "rl-dim", textContent: this.before === this.after ? "" : "nothing changed" })]), ...(picture.note ? [el("span", { className: "rl-dim", textContent: picture.note })] : []), ...this.folding(picture));
  }

  // what is folded, and of a large graph the offer to draw blocks that repeat as one card each
  folding(picture) {
    const groups = [...this.closed].filter((id) => id !== REPEATS).length;
    const words = [groups ? count(groups, "group") : "", this.closed.has(REPEATS) ? "repeated blocks" : ""].filter(Boolean).join(", ");
    const offer = this.host.live && !this.closed.has(REPEATS) && picture.scenes.at(-1).nodes.length > MANY;
    return [...(words ? [el("button", { className: "rl-link", textContent: `${words} folded: expand`, onclick: () => this.expand() })] : []), ...(offer ? [el("button", { className: "rl-link", textContent: "fold repeated blocks", title: "each run of equal blocks as one card, ×N (r)", onclick: () => this.repeats() })] : [])];
  }

  moved(canvas, index) {
    if (!this.following && this.canvases.length > 1) {
      this.following = true;
      const other = this.canvases[1 - index];
      if (other && other !== canvas) this.twin(canvas, other);
      this.following = false;
    }
    this.minimap();
  }

  // the other side moves along; a selected node stands at one height on both
  twin(canvas, other) {
    const id = this.host.get("selected");
    if (canvas.byId.has(id) && other.byId.has(id)) {
      const [x, y, w, h] = canvas.byId.get(id).data.box;
      other.keep({ id, x: canvas.x + (x + w / 2) * canvas.k, y: canvas.y + (y + h / 2) * canvas.k }, canvas.k);
    } else (Object.assign(other, { k: canvas.k, x: canvas.x, y: canvas.y }), other.apply());
  }

  minimap() {
    cancelAnimationFrame(this.mapFrame);
    this.mapFrame = requestAnimationFrame(() => (this.mapScale = this.canvases[0]?.mini(this.map)));
  }

  mapped(e) {
    const box = this.map.getBoundingClientRect();
    if (!this.mapScale) return;
    const { k, left, top } = this.mapScale;
    this.canvases[0].touched = true;
    this.canvases[0].center((e.clientX - box.left - left) / k, (e.clientY - box.top - top) / k);
  }

  // ---- selection

  selected(id, from) {
    if (this.choosing) return;
    this.host.set("selected", id);
    this.selectEverywhere(id, from);
  }

  pick(id) {
    this.host.set("selected", id);
    this.selectEverywhere(id, -1);
  }

  // `from`: the canvas in which it was selected; KEPT where it stands where it stood
  async selectEverywhere(id, from = -1) {
    this.choosing = true;
    this.root.classList.toggle("rl-nothing", !id); // the panel takes its room first
    this.canvases.forEach((c, i) => i !== from && c.select(c.byId.has(id) ? id : null, from < 0));
    this.canvases[from]?.inView(id);
    this.choosing = false;
    this.markTree(id);
    this.lightText();
    if (this.host.get("pane") === "code") this.showCode();
    this.tabs[this.host.get("pane")]?.selected?.(id);
    await this.about(id);
  }

  // nothing is selected: what the pass did, in sentences
  async idle() {
    const found = this.after ? await this.ask("words", this.after) : {};
    if (!this.host.get("selected")) this.panel.replaceChildren(...words(found.sentences ?? []));
  }

  async about(id) {
    this.root.classList.toggle("rl-nothing", !id);
    if (!id) return this.idle();
    const node = await this.ask("node", this.settled(this.after), id);
    if (id !== this.host.get("selected")) return;
    if (node.error) return this.panel.replaceChildren(el("h2", { textContent: id }), el("pre", { className: "rl-error", textContent: node.error }));
    const figure = this.canvases.at(-1)?.byId.get(id)?.data ?? this.canvases[0]?.byId.get(id)?.data;
    if (figure?.role) Object.assign(node, { role: figure.role, note: node.note || noteOf(figure) });
    const ask = this.host.live ? [why((index) => this.ask("why", this.settled(this.after), id, index), (other) => this.pick(other)), this.views.beside(id)] : [];
    this.panel.replaceChildren(...about(node, { why: ask, live: this.host.live, code: () => this.choose("pane", "code"), follow: (entry) => this.followStory(entry) }));
    this.panel.scrollTop = 0;
  }

  followStory(entry) {
    this.go(Math.max(0, entry.frame - 1), entry.frame);
    if (entry.ids.length) this.pick(entry.ids[0]);
  }

  // ---- search

  search() {
    const found = this.canvases.map((c) => query(this.field.value, c.scene));
    this.canvases.forEach((c, i) => ((c.hits = found[i] ?? []), c.mark(found[i] && new Set(found[i]))));
    const hits = new Set(found.flatMap((f) => f ?? []));
    this.hits.textContent = this.field.value ? count(hits.size, "hit") : "";
  }

  inField(e) {
    e.stopPropagation();
    if (e.key === "Enter") this.canvases.at(-1)?.next(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") ((this.field.value = ""), this.search(), this.root.focus());
  }

  // ---- panes

  async showText(a, b) {
    const found = await this.ask("text", a, b);
    this.text.replaceChildren(found.error ? el("pre", { className: "rl-error", textContent: found.error }) : difference(found.rows, (id) => this.pick(id)));
    this.lightText();
  }

  lightText() {
    const id = this.host.get("selected");
    const lines = [...this.text.querySelectorAll(".rl-line")];
    lines.forEach((line) => line.classList.toggle("rl-lit", Boolean(id) && line.dataset.id === id));
    const first = lines.find((line) => line.classList.contains("rl-lit"));
    if (first) this.text.scrollTop = first.offsetTop - this.text.offsetTop - this.text.clientHeight / 3;
  }

  async showCode() {
    const id = this.host.get("selected");
    if (!id) return this.code.replaceChildren(el("p", { className: "rl-dim", textContent: "Select a node to see the kernel that it became part of." }));
    this.code.replaceChildren(el("p", { className: "rl-dim", textContent: "compiling …" }));
    const found = await this.ask("kernel", this.settled(this.after), id);
    const light = (node) => this.canvases.forEach((c) => c.glow([node]));
    this.code.replaceChildren(found.error ? el("p", { className: "rl-dim", textContent: found.error }) : kernel(found, light, this.host.live ? () => this.ask("llvm", this.settled(this.after), id) : null));
  }

  async showSteps() {
    const row = this.rows[this.after - 1];
    const one = this.after - this.before === 1 && row?.steps;
    this.stepper.hidden = !one;
    this.steps = one ? (await this.ask("steps", this.after - 1)).steps ?? [] : [];
    this.drawStep();
  }

  drawStep() {
    const step = this.steps[this.step];
    const move = (by) => this.rewrite(by);
    const button = (text, by) => el("button", { className: "rl-button", textContent: text, title: "single rewrites: [ ]", onclick: () => move(by) });
    const words = step ? [el("b", { textContent: step.rule }), el("code", { textContent: ` ${step.at} ` }), el("span", { textContent: `${step.note}  (${step.us.toFixed(0)} µs)` })] : [el("span", { className: "rl-dim", textContent: "single rewrites of this pass" })];
    const change = step ? el("div", { className: "rl-rewrite" }, el("pre", { className: "rl-minus", textContent: step.before }), el("pre", { className: "rl-plus", textContent: step.after })) : null;
    this.stepper.replaceChildren(el("div", {}, button("[", -1), el("span", { textContent: ` ${this.step + 1} / ${this.steps.length} ` }), button("]", 1), " ", ...words), ...(change ? [change] : []));
  }

  rewrite(by) {
    if (!this.steps.length) return;
    this.step = Math.max(0, Math.min(this.steps.length - 1, this.step + by));
    this.drawStep();
    const id = this.steps[this.step].ids.find((i) => this.canvases.some((c) => c.byId.has(i)));
    if (id) this.pick(id);
  }

  async paint(name) {
    this.overlay = name;
    this.overlays.value = name;
    const last = this.canvases.at(-1);
    if (!name) return this.canvases.forEach((c) => c.heat(null));
    const found = await this.ask("overlay", name, name === "time" ? this.frames - 1 : this.settled(this.after));
    if (found.error) return this.read(el("pre", { className: "rl-error", textContent: found.error }));
    last?.heat(found.values, found.unit);
    const top = Object.entries(found.values).filter(([id]) => last?.byId.get(id)?.data.kind === "node").sort((x, y) => y[1] - x[1])[0];
    this.say(top ? `${name}: most at ${last.byId.get(top[0]).data.label}` : `${name}: no figures here`);
  }

  read(...children) {
    this.root.classList.remove("rl-nothing");
    this.panel.replaceChildren(...children);
    this.panel.scrollTop = 0;
  }

  // ---- folding

  groupOf(id) {
    const known = this.picture?.groups.some(([g]) => g === id);
    return known ? id : this.picture?.scenes.at(-1).nodes.find(([n]) => n === id)?.[1];
  }

  collapse() {
    const group = this.groupOf(this.host.get("selected")) || "";
    if (!group) return;
    this.closed.add(group);
    this.pick(group);
    this.refresh();
  }

  collapseAll() {
    for (const [id, , kind] of this.picture?.groups ?? []) if (kind === "primitive") this.closed.add(id);
    this.refresh();
  }

  repeats() {
    if (!this.closed.delete(REPEATS)) this.closed.add(REPEATS);
    this.root.focus({ preventScroll: true }); // the button that was pressed goes away
    this.refresh();
  }

  expand() {
    this.closed.clear();
    this.refresh();
  }

  // ---- editing and asking (live only)

  async edit(how, index, value = null) {
    const rows = await this.host.ask("edit", [how, index, value]);
    if (rows.error) return this.read(el("h2", { textContent: "not done" }), el("pre", { className: "rl-error", textContent: rows.error }), el("p", {}, el("button", { className: "rl-button", textContent: "ok", onclick: () => this.about(this.host.get("selected")) })), void this.rail.draw(this.rows) ?? "");
    this.edited(rows, how);
  }

  async turnBack(what) {
    const rows = await this.host.ask("edit", [what, 0]);
    if (rows.error) this.read(el("pre", { className: "rl-error", textContent: rows.error }));
    else this.renew(rows);
  }

  renew(rows) {
    this.cache.clear();
    this.rail.lights.clear();
    this.start(rows);
  }

  edited(rows, how) {
    this.undo.edited(how);
    this.renew(rows);
  }

  help() {
    this.read(el("h2", { textContent: "keys" }), el("table", {}, ...HELP.map(([k, t]) => el("tr", {}, el("th", { textContent: k }), el("td", { textContent: t })))), el("h3", { textContent: "search" }), el("p", { textContent: QUERIES }));
  }

  // ---- keys

  key(e) {
    if (e.target.tagName !== "INPUT" && this.undo.key(e)) return e.preventDefault(), e.stopPropagation();
    if (e.target.tagName === "INPUT" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey) return;
    const panes = ["graph", "text", "both", "code", ...Object.keys(this.tabs)];
    const overlays = [...this.overlays.options].map((o) => o.value);
    const cycle = (list, at) => list[(list.indexOf(at) + 1) % list.length];
    const index = this.after - 1;
    if (e.altKey) {
      const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
      if (!by || !this.host.live || index < 0) return;
      this.edit("move", index, index + by);
      this.go(Math.max(0, this.before + by), this.after + by);
    } else {
      const run = {
        ArrowRight: () => this.turn(1, e.shiftKey), ArrowLeft: () => this.turn(-1, e.shiftKey), j: () => this.turn(1), k: () => this.turn(-1),
        Home: () => this.go(0, 0), End: () => this.go(0, this.frames - 1), "[": () => this.rewrite(-1), "]": () => this.rewrite(1),
        "/": () => this.field.focus(), v: () => this.choose("pane", cycle(panes, this.host.get("pane"))),
        s: () => this.choose("compare", this.host.get("compare") === "both" ? "merged" : "both"), c: () => this.collapse(), C: () => this.collapseAll(), e: () => this.expand(), r: () => this.host.live && this.repeats(),
        o: () => this.paint(cycle(overlays, this.overlay)), l: () => this.root.classList.toggle("rl-show-tree"), "?": () => this.help(),
        f: () => this.canvases[0]?.fit(), x: () => this.host.live && index >= 0 && this.edit("toggle", index), Escape: () => document.activeElement?.blur(),
      }[e.key];
      if (!run) return;
      run();
    }
    e.preventDefault();
    e.stopPropagation();
  }
}
