// @ts-check
// The stages of a pipeline: which two are compared, where a step leads, how they are called. Stage 0 is the source
// program, stage k the program after pass k.
/** @import { FigureData, PassRow, Rows } from "../types.js" */

export class Stages {
  /** @param {(name: string) => number} chosen  what is chosen as `before` and `after` */
  constructor(chosen) {
    this.chosen = chosen;
    /** @type {PassRow[]} */
    this.rows = [];
    this.count = 1;
    this.several = false; // whether there are functions beside @main
    /** @type {FigureData[]} */
    this.figures = []; // by which nodes can be coloured
    this.changing = [0]; // the source and the stages whose pass changed something, or failed
    this.different = [0]; // those that differ from the one before
  }

  /** @param {Rows} found */
  load(found) {
    this.rows = found.rows;
    this.count = found.frames;
    this.figures = found.figures;
    this.several = found.functions > 1;
    const where = (test) => [0, ...this.rows.map((r, i) => (test(r) ? i + 1 : -1)).filter((i) => i > 0)];
    this.changing = where((r) => r.changed || r.error);
    this.different = where((r) => r.changed);
  }

  get before() {
    return Math.min(this.chosen("before"), this.last);
  }

  get after() {
    return Math.min(this.chosen("after"), this.last);
  }

  get last() {
    return this.count - 1;
  }

  // the pass whose program is shown
  get row() {
    return this.rows[this.after - 1];
  }

  // stages between two changes look alike: ask about the first of them
  settled(stage) {
    return this.different.filter((f) => f <= stage).at(-1) ?? 0;
  }

  get shown() {
    return this.settled(this.after);
  }

  // where a step leads: to the next stage that differs, or just the next; undefined at the ends
  next(direction, every = false) {
    const { after, changing } = this;
    if (every) return after + direction >= 0 && after + direction < this.count ? after + direction : undefined;
    return direction > 0 ? changing.find((f) => f > after) : changing.filter((f) => f < after).at(-1);
  }

  nameOf(stage) {
    return stage ? `${stage} ${this.rows[stage - 1].name}` : "source program";
  }

  // what is compared, in words
  get title() {
    const { before, after } = this;
    if (before === after) return after ? `after ${this.nameOf(after)}` : this.nameOf(after);
    if (after - before === 1) return this.nameOf(after);
    return `from ${before ? this.nameOf(before) : "the source"} to ${this.nameOf(after)}`;
  }
}
