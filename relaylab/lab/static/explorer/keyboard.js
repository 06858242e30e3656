// @ts-check
// The keyboard: whatever of the explorer has the focus, its keys work; only where text is typed they rest.
import { canvasOf } from "../canvas/canvas.js";
import { help, keyOf } from "./keys.js";

const TYPED = "input:not([type=checkbox]), textarea, select";

export class Keyboard {
  /** @param {import("./explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    const { root } = explorer;
    this.chosen = false; // by the pointer
    this.walk = Promise.resolve(); // along the life of a node: a key begins where the one before led
    root.addEventListener("keydown", (e) => ((this.chosen = false), this.key(e)));
    root.addEventListener("pointerdown", () => (this.chosen = true), true);
    root.addEventListener("change", (e) => this.chosen && e.target instanceof HTMLSelectElement && this.take());
    root.addEventListener("focusout", (e) => this.lost(e.target));
  }

  take() {
    this.explorer.root.focus({ preventScroll: true });
  }

  // what had the focus may have gone with what was drawn anew, or with a menu
  lost(element) {
    const { root } = this.explorer;
    queueMicrotask(() => {
      const gone = !element.checkVisibility() && root.checkVisibility();
      if (gone && document.activeElement === document.body) this.take();
    });
  }

  key(e) {
    const { parts } = this.explorer;
    const element = /** @type {HTMLElement} */ (e.target);
    if (element.matches(TYPED)) return;
    const { slides } = this.explorer;
    const shown = slides.on ? slides.acts(this.acts()) : this.acts();
    const run = parts.undo.key(e) ? () => {} : !e.ctrlKey && !e.metaKey && (keyOf(shown, e) ?? this.moves(e));
    if (!run) return;
    run();
    e.preventDefault();
    e.stopPropagation();
  }

  // keys of the picture that has the focus, or of the one that is shown
  moves(e) {
    const { parts, host } = this.explorer;
    const shown = parts.tabs[host.get("pane")]?.canvases ?? (this.pictured ? parts.stage.canvases : []);
    const canvas = canvasOf(document.activeElement) ?? shown.at(-1);
    return canvas?.knows(e) ? () => canvas.act(e) : undefined;
  }

  get pictured() {
    return ["graph", "both"].includes(this.explorer.host.get("pane"));
  }

  // a key that only means something where a picture of the stages is shown
  seen(act) {
    return this.pictured ? act : undefined;
  }

  acts() {
    const { explorer } = this;
    const { host, stages, parts } = explorer;
    const { folding, toolbar, editor } = parts;
    const pass = host.live && stages.after > 0;
    const other = () => explorer.choose("compare", host.get("compare") === "both" ? "merged" : "both");
    return {
      turn: (direction, every) => explorer.turn(direction, every),
      first: () => explorer.go(0, 0),
      last: () => explorer.go(0, stages.last),
      rewrite: (by) => parts.stepper.move(by),
      touched: (direction) => this.walkOn(direction),
      search: () => this.search(),
      nextPane: () => explorer.choose("pane", toolbar.paneAfter(host.get("pane"))),
      otherStyle: this.seen(other),
      collapse: this.seen(() => folding.collapse()),
      collapseAll: this.seen(() => folding.collapseAll()),
      expand: this.seen(() => folding.expand()),
      repeats: host.live ? this.seen(() => explorer.repeats()) : undefined,
      level: this.seen((name) => folding.level(name)),
      turned: host.live ? this.seen(() => folding.turned()) : undefined,
      focus: this.seen(() => this.focus()),
      wider: this.pictured && folding.near ? () => folding.widen(1) : undefined,
      closer: this.pictured && folding.near ? () => folding.widen(-1) : undefined,
      changes: this.seen(() => explorer.changes()),
      nextOverlay: this.seen(() => parts.overlay.next()),
      list: () => explorer.root.classList.toggle("rl-show-tree"),
      help: () => this.help(),
      full: () => parts.room.full(),
      map: this.seen(() => explorer.map()),
      slides: () => explorer.slides.turn(),
      movePass: pass && ((by) => explorer.movePass(by)),
      togglePass: pass ? () => editor.edit("toggle", stages.after - 1) : undefined,
      leave: () => this.leave(),
    };
  }

  help() {
    const { detail } = this.explorer.parts;
    if (detail.reading) detail.close();
    else detail.read(...help(this.explorer.host.live));
  }

  search() {
    const { explorer } = this;
    if (!this.pictured) explorer.choose("pane", "graph");
    explorer.parts.search.field.disabled = false;
    explorer.parts.search.field.focus();
  }

  // only the selected node and what is near it
  focus() {
    const { host, parts } = this.explorer;
    const id = host.get("selected");
    if (id) parts.folding.focus(id);
    else parts.say("select a node first");
  }

  // one step back: from what is read, from the selection, from the explorer
  leave() {
    const { parts, host } = this.explorer;
    const marked = parts.stage.canvases.some((c) => c.marked);
    if (parts.detail.reading) return parts.detail.close();
    if (marked) parts.search.run();
    if (parts.folding.near) return parts.folding.focus("");
    if (host.get("selected")) return this.explorer.pick("");
    if (!marked && document.activeElement instanceof HTMLElement) document.activeElement.blur();
  }

  walkOn(direction) {
    const step = () => this.touched(direction);
    this.walk = this.walk.then(step, step);
  }

  // the next pass, or the one before, that did something to the selected node
  async touched(direction) {
    const { host, stages, answers, parts } = this.explorer;
    const id = host.get("selected");
    if (!id) return parts.say("select a node first");
    const { story = [] } = await answers.ask("node", stages.shown, id);
    if (id !== host.get("selected")) return;
    const later = story.filter(({ frame }) => (direction > 0 ? frame > stages.after : frame < stages.after));
    const entry = direction > 0 ? later[0] : later.at(-1);
    if (entry) return this.explorer.follow(entry);
    parts.say(`no pass ${direction > 0 ? "after" : "before"} this one touched the node`);
  }
}
