// @ts-check
// A picture of which only what is in view is in the document: large graphs are drawn at once and stay light to move in.
// Choices: docs/choices.md, The explorer.
import { figure, Picture, svg } from "../../../viz/static/graph.js";

const FEW = 300; // a picture of so many figures is drawn whole
const AROUND = 0.5; // what is drawn beyond each border of the view, in views
const AT_ONCE = 2500; // figures drawn in one go; if more are in view, the others follow frame by frame
const LAYERS = ["group", "bundle", "edge", "heading", "node", "note", "heat"]; // back to front

// The extent of a figure: boxes have theirs, of lines it is that of their points.
export function extent(data) {
  if (data.kind !== "edge") return [data.box[0], data.box[1], data.box[0] + data.box[2], data.box[1] + data.box[3]];
  const found = [Infinity, Infinity, -Infinity, -Infinity];
  const numbers = data.shapes[0]?.[0] === "p" ? data.shapes[0][1].match(/-?[\d.]+/g) : [];
  numbers.forEach((text, i) => {
    found[i % 2] = Math.min(found[i % 2], text);
    found[2 + (i % 2)] = Math.max(found[2 + (i % 2)], text);
  });
  return found;
}

// What is drawn of a box from far away: no text.
const rough = (data) => ({ ...data, shapes: data.shapes.filter(([kind]) => kind !== "t") });

export class VirtualPicture extends Picture {
  constructor(root, scene, on = {}) {
    super(root, scene, on);
    this.layer.addEventListener("click", (e) => {
      const id = e.target.closest?.(".node, .group")?.dataset.id;
      if (id === undefined) return;
      e.stopPropagation();
      if (this.dragged) return;
      if (e.target.matches(".rl-sign")) this.on.turn(id);
      else if (id.startsWith("stretch:") || e.detail === 2) this.on.open?.(id);
      else this.select(id);
    });
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(this.svg);
  }

  prepare() {
    /** @type {Map<string, SVGElement>} */
    this.layers = new Map(LAYERS.map((name) => [name, svg("g")]));
    this.layers.get("heat").setAttribute("class", "rl-heat");
    this.layer.append(...this.layers.values());
    this.parts = [];
    this.lines = []; // those that are drawn as bundles
    /** @type {any} */
    this.filled = null; // what is in the document
    this.glowing = new Set();
    /** @type {Set<string> | null} */
    this.found = null;
    this.waiting = false;
    this.coming = 0;
  }

  add(data) {
    const part = { data, made: null, kind: data.kind };
    this.parts.push(part);
    if (data.kind === "edge") this.edges.push(part);
    if (data.kind === "node" || data.kind === "group") this.byId.set(data.id, part);
    return part;
  }

  apply() {
    super.apply();
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => ((this.waiting = false), this.svg.isConnected && this.fill()));
  }

  resize() {
    this.apply();
  }

  // ---- what is in the document

  // The part of the scene that is in view.
  window() {
    const { width, height } = this.svg.getBoundingClientRect();
    return {
      left: -this.x / this.k,
      top: -this.y / this.k,
      right: (width - this.x) / this.k,
      bottom: (height - this.y) / this.k,
      width: width / this.k,
      height: height / this.k,
    };
  }

  // Draw what is in view and a little around it, unless that is there already; `anew` after other parts came.
  fill(anew = false) {
    const all = this.scene.figures.length <= FEW;
    const view = this.window();
    if (!view.width) return;
    const far = !all && this.svg.classList.contains("far");
    if (!anew && this.filled?.far === far && (all || this.covers(view))) return;
    const [dx, dy] = all ? [Infinity, Infinity] : [view.width * AROUND, view.height * AROUND];
    this.filled = {
      ...view,
      far,
      left: view.left - dx,
      top: view.top - dy,
      right: view.right + dx,
      bottom: view.bottom + dy,
    };
    this.draw(this.filled);
  }

  // whether what is in the document is enough for a view, and not much too large
  covers({ left, top, right, bottom, width }) {
    const { filled } = this;
    const around = filled.left <= left && filled.top <= top && filled.right >= right && filled.bottom >= bottom;
    return around && filled.width < 3 * width;
  }

  /** @param {{ left: number, top: number, right: number, bottom: number, far: boolean }} area */
  draw({ left, top, right, bottom, far }) {
    const [missing, lines] = [[], []];
    for (const part of this.parts) {
      part.extent ??= extent(part.data);
      const [a, b, c, d] = part.extent;
      const inside = a <= right && c >= left && b <= bottom && d >= top;
      const line = part.kind === "edge" && far;
      if (inside && line) lines.push(part);
      if (part.made && (!inside || line || part.far !== far)) (part.made.remove(), (part.made = null));
      if (inside && !line && !part.made) missing.push(part);
    }
    this.lines = lines;
    this.bundle();
    this.follow(missing, far);
  }

  follow(parts, far) {
    cancelAnimationFrame(this.coming);
    this.put(parts.slice(0, AT_ONCE), far);
    if (parts.length > AT_ONCE) this.coming = requestAnimationFrame(() => this.follow(parts.slice(AT_ONCE), far));
  }

  put(parts, far) {
    const stacks = new Map(parts.map((part) => [part.kind, []]));
    for (const part of parts) {
      part.far = far;
      part.made = figure(far ? rough(part.data) : part.data);
      if (!far) this.sign(part);
      this.dress(part);
      stacks.get(part.kind).push(part.made);
    }
    for (const [kind, made] of stacks) this.layers.get(kind).append(...made);
    // groups are drawn again in their order: inner ones above outer ones
    if (stacks.has("group"))
      this.layers.get("group").append(...this.parts.filter((p) => p.kind === "group" && p.made).map((p) => p.made));
  }

  // a box can be closed, a card opened, by its sign
  sign({ data, made, kind }) {
    const sign = kind !== "edge" && this.on.sign?.(data);
    if (!sign) return;
    const [x, y, w] = data.box;
    const [at, styles] = [
      { x: x + w - 9, y: y + 13 },
      { "font-size": 14, "text-anchor": "middle", class: "rl-sign" },
    ];
    made.append(svg("text", { ...at, ...styles }, sign));
  }

  // Lines from far away: one path for all that look alike, without arrow heads.
  bundle() {
    const alike = new Map();
    for (const { data } of this.lines) {
      const [kind, d, names, own] = data.shapes[0] ?? [];
      if (kind !== "p") continue;
      const key = [this.isNear(data), this.isDim(data), names, own].join("\n");
      if (!alike.has(key)) alike.set(key, { data, names, own, d: [] });
      alike.get(key).d.push(d);
    }
    const made = [...alike.values()].map(({ data, names, own, d }) => {
      const made = figure({ id: "", kind: "edge", label: "", shapes: [["p", d.join(""), names, own]] });
      this.dress({ data, made, kind: "edge" });
      return made;
    });
    this.layers.get("bundle").replaceChildren(...made);
  }

  // ---- what is shown of the parts: all of it is state of the picture, so that parts may come and go

  isNear(line) {
    return this.selected != null && (line.source === this.selected || line.target === this.selected);
  }

  isDim(line) {
    return Boolean(this.found) && !(this.found.has(line.source) && this.found.has(line.target));
  }

  dress({ data, made, kind }) {
    const line = kind === "edge";
    const has = (name, on) => (on || made.classList.contains(name)) && made.classList.toggle(name, Boolean(on));
    has("selected", !line && this.selected === data.id);
    has("near", line && this.isNear(data));
    has("rl-glow", this.glowing.has(data.id));
    has("dim", line ? this.isDim(data) : kind === "node" && this.found && !this.found.has(data.id));
  }

  dressAll() {
    for (const part of this.parts) if (part.made) this.dress(part);
    if (this.lines.length) this.bundle();
  }

  select(id, show = false) {
    this.selected = this.byId.has(id) ? id : null;
    this.dressAll();
    if (this.selected !== null && show) this.reveal(id);
    this.on.select?.(this.selected === null ? null : this.byId.get(id).data);
  }

  mark(ids) {
    this.found = ids;
    this.dressAll();
  }

  glow(ids) {
    this.glowing = new Set(ids);
    this.dressAll();
  }
}
