// @ts-check
// Slides: the whole screen, large type, keys only, a changing pass at a time; no later pass is seen before its turn.

export class Slides {
  /** @param {import("./explorer.js").Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.reached = 0;
    this.filled = false; // whether the slides had the screen
    const { root, host } = explorer;
    if (host.get("slides")) root.classList.add("rl-slides");
    host.on("slides", () => host.get("slides") === this.on || this.turn());
    root.addEventListener("keydown", () => this.fill(), true); // browsers give the screen to a key, not to a program
    root.addEventListener("fullscreenchange", () => this.back());
  }

  get on() {
    return this.explorer.root.classList.contains("rl-slides");
  }

  get full() {
    return this.explorer.root.matches(":fullscreen, :popover-open");
  }

  fill() {
    if (this.on && !this.filled) ((this.filled = true), this.full || this.explorer.parts.room.full());
  }

  // on or off
  turn() {
    const { root, host, parts, stages } = this.explorer;
    const on = root.classList.toggle("rl-slides");
    this.reached = stages.after;
    this.filled = false;
    for (const canvas of parts.stage.canvases) canvas.touched = false;
    if (host.get("slides") !== on) host.set("slides", on);
    if (on) this.explorer.choose("pane", "graph");
    if (on !== this.full) parts.room.full();
    this.filled = on;
    this.explorer.refresh();
  }

  // the browser's own way out of the full screen leaves the slides, too
  back() {
    if (this.on && this.filled && !this.full) this.turn();
  }

  /** What keys do in slides, of what they do else.
   * @param {Record<string, any>} acts */
  acts({ turn, first, rewrite, otherStyle, slides }) {
    const { stages } = this.explorer;
    this.reached = Math.max(this.reached, stages.after);
    const last = () => this.explorer.go(Math.max(0, this.reached - 1), this.reached);
    const slide = (direction) => turn(direction, false);
    return { turn: slide, slide, first, last, rewrite, otherStyle, slides, leave: slides };
  }
}
