// @ts-check
// The pass explorer: what is shown when, where steps, keys and choices lead.
import { Answers } from "./answers.js";
import { frame } from "./frame.js";
import { Keyboard } from "./keyboard.js";
import { legend } from "./legend.js";
import { makeParts } from "./parts.js";
import { prefetch } from "./prefetch.js";
import { Slides } from "./slides.js";
import { KEPT } from "./stage.js";
import { Stages } from "./stages.js";

export class Explorer {
  /**
   * @param {HTMLElement} root
   * @param {import("../types.js").Host} host
   * @param {(act: any) => any} [tools]  what only a kernel can do
   */
  constructor(root, host, tools) {
    this.root = root;
    this.host = host;
    this.shows = 0; // how often something was shown
    this.queued = false;
    this.picture = null;
    this.onArrival = null; // run when the next picture is there
    this.coming = false; // whether another picture is on its way
    /** @type {(() => void)[]} */
    this.waiting = []; // what keys do to the picture that is on its way
    this.answers = new Answers((what, args) => host.ask(what, args));
    this.stages = new Stages((name) => host.get(name));
    this.parts = makeParts(this, tools);
    this.build();
    this.start(host.get("rows"));
    for (const name of ["before", "after", "compare", "pane"]) host.on(name, () => this.refresh());
    host.on("selected", () => this.select(host.get("selected")));
    host.on("rows", () => this.renew(host.get("rows")));
    host.on("overlays", () => this.parts.overlay.refresh());
  }

  build() {
    frame(this.root, this.parts);
    this.keyboard = new Keyboard(this);
    this.slides = new Slides(this);
    this.parts.detail.about("");
  }

  start(rows) {
    this.stages.load(rows);
    this.parts.stepper.reset();
    this.parts.toolbar.title.textContent = rows.title;
    this.parts.rail.draw(rows.rows);
    this.parts.timeline.draw(rows.rows, rows.start);
    this.parts.overlay.refresh();
    this.refresh();
  }

  // another pipeline
  renew(rows) {
    this.answers.clear();
    this.parts.rail.lights.clear();
    this.start(rows);
  }

  // ---- moving between stages

  choose(name, value) {
    this.root.focus({ preventScroll: true });
    this.parts.undo.moving();
    this.host.set(name, value);
    this.refresh();
  }

  go(before, after) {
    if (before !== this.host.get("before") || after !== this.host.get("after")) {
      this.parts.undo.moving();
      this.parts.folding.forget();
    }
    this.parts.stepper.reset();
    this.host.set("before", Math.max(0, before));
    this.host.set("after", Math.min(this.stages.last, after));
    this.refresh();
  }

  turn(direction, every) {
    const next = this.stages.next(direction, every);
    if (next !== undefined) this.go(Math.max(0, next - 1), next);
  }

  // to an entry of a node's life
  follow(entry) {
    this.go(Math.max(0, entry.frame - 1), entry.frame);
    const { ids } = entry;
    if (ids.length) this.pick(ids.includes(this.host.get("selected")) ? this.host.get("selected") : ids[0]);
  }

  // to a cell of the heat map: a group of that name, or nodes of that operator
  jump(stage, row, operator) {
    this.choose("pane", "graph");
    this.go(stage - 1, stage);
    this.onArrival = () => {
      const group = this.picture.groups.find(([, title]) => title === row);
      if (group) return this.pick(group[0]);
      this.parts.search.find(operator && /^[\w.]+$/.test(row) ? `op:/^${row}$/` : "");
    };
  }

  find(text) {
    const { search } = this.parts;
    search.field.value = text;
    this.choose("pane", "graph");
    this.onArrival = async () => {
      await search.run();
      if (search.far.length && !search.found.length) search.next(1);
    };
  }

  // ---- showing

  refresh() {
    this.shows += 1; // what is on its way was asked for before
    this.coming = true;
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      this.show();
    });
  }

  // once the picture that is on its way is there
  drawn(run) {
    if (this.coming) this.waiting.push(run);
    else run();
  }

  // each of them may send for another picture, which the others wait for
  arrived() {
    const waiting = this.waiting.splice(0);
    this.coming = false;
    for (const run of waiting) this.drawn(run);
  }

  /** The question for the picture of what differs between two stages.
   * @returns {["picture", number, number, "merged" | "both", string]} */
  question(a, b) {
    const { stages, host } = this;
    return ["picture", stages.settled(a), stages.settled(b), host.get("compare"), this.parts.folding.key];
  }

  async show() {
    const { host, root, stages } = this;
    const pane = host.get("pane");
    root.dataset.pane = pane;
    root.classList.toggle("rl-tabbed", pane in this.parts.tabs);
    this.parts.toolbar.show(pane, host.get("compare"));
    this.parts.rail.mark();
    this.parts.timeline.mark();
    const turn = (this.shows += 1);
    const shown = `${stages.before}:${stages.after}`;
    if (this.parts.tabs[pane]) {
      const tab = this.parts.tabs[pane];
      if (this.parts.extra.firstChild !== tab.element) this.parts.extra.replaceChildren(tab.element);
      this.arrived();
      await tab.show();
      if (turn === this.shows) root.dataset.shown = shown;
      return;
    }
    const picture = await this.answers.ask(...this.question(stages.before, stages.after));
    if (turn !== this.shows) return;
    const arrival = this.onArrival;
    this.onArrival = null;
    if (picture.error) this.fail(picture.error);
    else (this.draw(picture), arrival?.());
    this.arrived();
    await this.showRest(pane);
    if (turn !== this.shows) return;
    const name = stages.row?.name ?? "source program";
    const roles = Object.entries(picture.roles ?? {}).map(([role, n]) => `${n} ${role}`);
    this.parts.say(`${name}: ${picture.error || roles.join(", ") || "nothing changed"}`);
    root.dataset.shown = shown;
    if (!host.live) return;
    const current = () => turn === this.shows;
    if (await prefetch(stages, this.answers, (a, b) => this.question(a, b), current)) root.dataset.ahead = shown;
  }

  // what stands around the picture
  async showRest(pane) {
    const { stages } = this;
    const one = stages.after - stages.before === 1 && stages.row?.changed;
    const steps = this.parts.stepper.load(one ? stages.after - 1 : -1);
    const said = this.parts.detail.settle(); // what is said of another stage goes at once
    if (pane === "text" || pane === "both") await this.parts.text.show(stages.settled(stages.before), stages.shown);
    if (pane === "code") await this.showCode();
    await steps;
    if (this.parts.overlay.name) await this.parts.overlay.paint(this.parts.overlay.name);
    await said;
  }

  showCode() {
    return this.parts.code.show(this.stages.shown, this.host.get("selected"));
  }

  draw(picture) {
    const selected = this.host.get("selected");
    this.picture = picture;
    const kept = this.parts.stage.draw(picture.scenes);
    this.drawLegend(picture);
    this.parts.outline.show(picture, () => this.host.get("selected"));
    this.parts.search.run();
    if (selected) this.select(selected, kept === selected ? KEPT : -1);
    this.parts.stage.minimap();
  }

  // nothing of the picture before is left
  fail(text) {
    this.picture = null;
    this.parts.stage.fail(text);
    this.parts.legend.replaceChildren();
    this.parts.outline.clear();
    this.parts.search.run();
  }

  drawLegend(picture) {
    const { stages } = this;
    const { folding, search } = this.parts;
    const only = (role) => search.find(search.text === `role:${role}` ? "" : `role:${role}`);
    const repeats = this.host.live ? () => this.repeats() : null;
    const changes = () => this.changes();
    const what = { title: stages.title, same: stages.before === stages.after, folding };
    const acts = { only, repeats, changes, expand: () => folding.expand() };
    this.parts.legend.replaceChildren(...legend(picture, what, acts));
  }

  // ---- selection

  pick(id, from = -1) {
    this.host.set("selected", id);
    this.select(id, from);
  }

  // everywhere; see `Stage.select` for `from`
  async select(id, from = -1) {
    const pane = this.host.get("pane");
    if (id && this.picture?.whole && !this.parts.stage.has(id) && this.sought !== id) this.refresh();
    this.sought = id; // it may be in neither stage
    this.parts.room.nothing(!id); // the panel takes its room first
    this.parts.stage.select(id, from);
    this.parts.outline.mark(id);
    this.parts.text.light(id);
    if (pane === "code") this.showCode();
    this.parts.tabs[pane]?.selected?.(id);
    await this.parts.detail.about(id);
  }

  // ---- named views

  look() {
    const { overlay, folding, search, stage } = this.parts;
    return { overlay: overlay.name, closed: [...folding.closed], query: search.shown, camera: stage.camera };
  }

  restore(name, view) {
    this.parts.folding.closed = new Set(view.closed);
    this.parts.overlay.choose(view.overlay);
    this.parts.stepper.reset();
    this.parts.search.field.value = view.query;
    if (name) this.select(this.host.get("selected"));
    this.onArrival = () => {
      if (!view.camera || !this.parts.stage.camera) return;
      this.parts.stage.camera = view.camera;
      this.root.dataset.view = name;
    };
    this.refresh();
  }

  // ---- what keys do

  help() {
    this.keyboard.help();
  }

  focus() {
    this.keyboard.focus();
  }

  map() {
    this.parts.room.map();
    this.parts.stage.minimap();
  }

  // the pass of this stage, by one place
  async movePass(by) {
    const { stages } = this;
    const at = stages.after - 1;
    const done = await this.parts.editor.edit("move", at, at + by);
    if (done && done.index + 1 === stages.after) this.go(Math.max(0, stages.before + by), stages.after + by);
  }

  changes() {
    this.root.focus({ preventScroll: true });
    this.parts.folding.changes();
  }

  repeats() {
    this.root.focus({ preventScroll: true }); // the button that was pressed goes away
    this.parts.folding.repeats();
  }

  // ---- on paper

  // what is seen: pictures, and elements to copy
  printed() {
    const pane = this.host.get("pane");
    const { tabs, stage, detail, text, code, toolbar, legend: line } = this.parts;
    const tab = tabs[pane];
    const canvases = tab ? (tab.canvases ?? []) : pane === "text" ? [] : stage.canvases;
    const node = this.host.get("selected") && !tab ? [detail.element] : [];
    const texts = { text: [text.element], both: [text.element], code: [code.element] }[pane] ?? [];
    return {
      title: toolbar.title.textContent,
      head: tab ? [] : [line],
      pictures: canvases.map(({ scene, selected }) => ({ scene, selected })),
      rest: [...texts, ...node],
    };
  }
}
