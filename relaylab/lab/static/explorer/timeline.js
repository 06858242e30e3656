// @ts-check
// All stages on one line; the two handles say which two are compared.
import { svg } from "../../../viz/static/graph.js";
import { el } from "../dom.js";

// How a figure went on from stage to stage, as a line between its least and its most.
function trend(first, rows, change, className) {
  const values = [first];
  for (const row of rows) values.push(values.at(-1) + change(row));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const points = values.map((v, i) => `${i},${1 - (v - least) / (most - least || 1)}`).join(" ");
  return svg("polyline", { points, class: className });
}

export class Timeline {
  /** @param {{ before: () => number, after: () => number, go: (before: number, after: number) => void }} act */
  constructor(act) {
    this.act = act;
    this.frames = 1;
    this.names = ["source"];
    this.track = el("div", { className: "rl-track" });
    this.span = el("div", { className: "rl-span" });
    this.handles = ["before", "after"].map((name) => this.handle(name));
    this.element = el("div", { className: "rl-timeline" }, this.track);
  }

  handle(name) {
    const handle = el("div", {
      className: `rl-handle rl-${name}`,
      role: "slider",
      tabIndex: 0,
      "aria-label": `stage ${name}`,
      textContent: name === "before" ? "A" : "B",
      title: `drag: the stage ${name}`,
    });
    const place = (frame) => {
      const to = Math.max(0, Math.min(this.frames - 1, frame));
      if (name === "before") this.act.go(to, Math.max(to, this.act.after()));
      else this.act.go(Math.min(to, this.act.before()), to);
    };
    handle.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!step) return;
      e.preventDefault();
      e.stopPropagation();
      place((name === "before" ? this.act.before() : this.act.after()) + step);
    });
    handle.addEventListener("pointerdown", (down) => {
      down.preventDefault();
      handle.focus();
      handle.setPointerCapture(down.pointerId);
      const move = (e) => {
        const box = this.track.getBoundingClientRect();
        place(Math.round(((e.clientX - box.left) / box.width) * (this.frames - 1)));
      };
      handle.addEventListener("pointermove", move);
      handle.onlostpointercapture = () => handle.removeEventListener("pointermove", move);
    });
    return handle;
  }

  /**
   * @param {import("../types.js").PassRow[]} rows
   * @param {Record<string, number>} start  the figures of the source
   */
  draw(rows, start) {
    this.frames = rows.length + 1;
    this.names = ["source", ...rows.map((r) => r.name)];
    const ticks = this.names.map((name, frame) => {
      const row = rows[frame - 1];
      const tick = el("button", {
        className: `rl-tick${row && row.changed ? " rl-loud" : ""}${row?.error ? " rl-bad" : ""}`,
        title: `${frame}: ${name}`,
        tabIndex: -1,
        ariaLabel: name,
      });
      tick.style.left = `${(100 * frame) / Math.max(1, this.frames - 1)}%`;
      tick.addEventListener("click", () => this.act.go(Math.max(0, frame - 1), frame));
      return tick;
    });
    const operators = (row) => row.ops.reduce((sum, [, n]) => sum + n, 0);
    const lines = svg(
      "svg",
      { class: "rl-trend", viewBox: `0 0 ${rows.length || 1} 1`, preserveAspectRatio: "none" },
      svg("title", {}, "operators (solid) and bytes (dashed) after each pass"),
      trend(start.operators, rows, operators, ""),
      trend(start.bytes, rows, (row) => row.bytes, "rl-trend-bytes"),
    );
    this.track.replaceChildren(lines, this.span, ...ticks, ...this.handles);
    this.mark();
  }

  mark() {
    const at = (frame) => (100 * frame) / Math.max(1, this.frames - 1);
    const ends = [this.act.before(), this.act.after()];
    this.handles.forEach((handle, i) => {
      handle.style.left = `${at(ends[i])}%`;
      for (const [k, v] of Object.entries({
        valuemin: 0,
        valuemax: this.frames - 1,
        valuenow: ends[i],
        valuetext: this.names[ends[i]],
      }))
        handle.setAttribute(`aria-${k}`, String(v));
    });
    this.span.style.left = `${at(ends[0])}%`;
    this.span.style.width = `${at(ends[1]) - at(ends[0])}%`;
  }
}
