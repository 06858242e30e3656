// @ts-check
// The graph as it moves: keeps its place when the stage changes, follows a twin beside it, shows itself in a minimap.
import { short } from "../dom.js";
import { VirtualPicture } from "./virtual_picture.js";

const LEGIBLE = 9 / 7.5; // the least zoom of a first look: the smallest text of a picture is 9 pixels high
const ROLE_COLORS = { added: "#0072b2", removed: "#b34700", changed: "#a3427c", moved: "#4d3800", merged: "#00664b" };

const MOVING = 400; // figures of a picture that moves into the next

const FOUND = "#d946a0"; // what the search found, in the map

// Where a picture of a size begins in a room, so that a place of it stands at a share of the room and no room is lost.
function placed(room, size, place, share) {
  if (size <= room - 16) return (room - size) / 2;
  return Math.min(8, Math.max(room - 8 - size, room * share - place));
}

/** @type {WeakMap<Element, Canvas>} */
const canvases = new WeakMap();
const OWN = /^(ArrowUp|ArrowDown|[+=\-f0ud])$/; // keys of a picture

// the picture that an element is
export const canvasOf = (element) => (element ? canvases.get(element) : undefined);

export class Canvas extends VirtualPicture {
  constructor(root, scene, on = {}) {
    super(root, scene, on);
    canvases.set(this.svg, this);
    this.svg.addEventListener("pointermove", () => (this.touched ||= this.dragged));
  }

  touched = false; // someone has moved in it
  marked = false; // what leads to a node, or from it, is
  begun = ""; // the room in which the first look was taken
  /** @type {[number, number] | null} */
  room = null; // the one that there is

  apply() {
    super.apply();
    this.on.moved?.(this);
  }

  // The first look: the whole, or of a picture too large to be read at that size the first change, or the beginning.
  begin() {
    this.fit();
    const { width, height } = this.svg.getBoundingClientRect();
    this.begun = `${width} ${height}`;
    const least = Number(getComputedStyle(this.svg).getPropertyValue("--rl-least")) || LEGIBLE;
    if (this.k >= least || !width) return;
    const nodes = this.scene.figures.filter((f) => f.kind === "node");
    const changed = nodes.filter((f) => f.role);
    const boxes = (changed.length ? changed : nodes).map((f) => f.box);
    if (!boxes.length) return;
    const [x, y, w, h] = boxes.reduce((first, box) => (box[1] < first[1] ? box : first));
    this.k = least;
    this.x = placed(width, this.scene.width * this.k, (x + w / 2) * this.k, 0.5);
    this.y = placed(height, this.scene.height * this.k, (y + h / 2) * this.k, changed.length ? 0.4 : 0.1);
    this.apply();
  }

  // a first look is another one in another room; who has moved keeps the place, and sees the selected node on
  resize() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return; // it is not shown
    const other = this.begun && this.begun !== `${width} ${height}`;
    const seen = this.touched && this.sees(this.selected);
    this.room = [width, height];
    if (!this.touched && other && !this.selected) return this.begin();
    super.resize();
    if (seen || (!this.touched && other)) this.inView(this.selected);
  }

  // whether a part of a box was in the room that there was before
  sees(id) {
    if (!this.room || !this.byId.has(id)) return false;
    const [x, y, w, h] = this.byId.get(id).data.box.map((v) => v * this.k);
    const [width, height] = this.room;
    return this.x + x < width && this.x + x + w > 0 && this.y + y < height && this.y + y + h > 0;
  }

  // whether there is less room than another picture had
  narrower(other) {
    const { width, height } = this.svg.getBoundingClientRect();
    return Boolean(other.room) && (width < other.room[0] || height < other.room[1]);
  }

  // once someone has moved in the picture, a new stage keeps the place instead of fitting the whole
  zoom(...args) {
    this.touched = true;
    super.zoom(...args);
  }

  wheel(e) {
    this.touched = true;
    super.wheel(e);
  }

  // the keyboard of the explorer knows which picture a key is for
  key() {}

  knows(e) {
    return OWN.test(e.key);
  }

  act(e) {
    if (e.key === "f" && this.selected) return this.fitNode(this.selected);
    if (e.key === "f" || e.key === "0") this.touched = false;
    super.key(e);
    this.marked ||= e.key === "u" || e.key === "d"; // until something else is marked
  }

  // a node with what is beside it
  fitNode(id) {
    const ids = [id, ...this.near(id, "source"), ...this.near(id, "target")];
    const boxes = ids.map((n) => this.byId.get(n).data.box);
    const [x, y] = [0, 1].map((i) => Math.min(...boxes.map((b) => b[i])));
    const [right, bottom] = [0, 1].map((i) => Math.max(...boxes.map((b) => b[i] + b[i + 2])));
    this.touched = true;
    this.fit([x, y, right - x, bottom - y]);
  }

  mark(ids) {
    this.marked = false;
    super.mark(ids);
  }

  // Where a node is on the screen; the selected one, or the one nearest to the middle of the view.
  anchor(known) {
    const at = (id) => {
      const [x, y, w, h] = this.byId.get(id).data.box;
      return { id, x: this.x + (x + w / 2) * this.k, y: this.y + (y + h / 2) * this.k };
    };
    const { width, height } = this.svg.getBoundingClientRect();
    const common = (id) => this.byId.has(id) && known.has(id) && this.byId.get(id).data.kind === "node";
    if (this.selected && common(this.selected)) return at(this.selected);
    let best = null;
    for (const id of this.byId.keys()) {
      if (!common(id)) continue;
      const spot = at(id);
      spot.far = Math.hypot(spot.x - width / 2, spot.y - height / 3);
      if (!best || spot.far < best.far) best = spot;
    }
    return best;
  }

  // Move by as little as brings the whole of a box that one sees a part of into view.
  inView(id) {
    if (!this.byId.has(id)) return;
    const { width, height } = this.svg.getBoundingClientRect();
    const [x, y, w, h] = this.byId.get(id).data.box;
    const aside = (from, size, room) => (size > room ? 0 : Math.max(0, 4 - from) - Math.max(0, from + size + 4 - room));
    const [dx, dy] = [aside(this.x + x * this.k, w * this.k, width), aside(this.y + y * this.k, h * this.k, height)];
    if (!dx && !dy) return;
    this.x += dx;
    this.y += dy;
    this.apply();
  }

  // From the picture before: what is in both moves to its place, what is new appears.
  morph(old) {
    if (!old || this.parts.length > MOVING || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const still = new Set();
    const play = (made, frame) => made?.animate([frame, {}], 200);
    queueMicrotask(() => {
      for (const { data, made, kind } of this.byId.values()) {
        const box = old.byId.get(data.id)?.data.box;
        const move = box && [old.x - this.x + box[0] * old.k, old.y - this.y + box[1] * old.k];
        const [dx, dy] = move ? move.map((at, i) => at / this.k - data.box[i]) : [0, 0];
        if (!box) play(made, { opacity: 0 });
        else if (kind === "group" || Math.hypot(dx, dy) * this.k < 2) still.add(data.id);
        else play(made, { transform: `translate(${dx}px,${dy}px)` });
      }
      for (const { data, made } of this.edges)
        if (!still.has(data.source) || !still.has(data.target)) play(made, { opacity: 0 });
    });
  }

  // Put a node at the place on the screen that it had before.
  keep(anchor, zoom) {
    const [x, y, w, h] = this.byId.get(anchor.id).data.box;
    this.k = zoom;
    this.x = anchor.x - (x + w / 2) * zoom;
    this.y = anchor.y - (y + h / 2) * zoom;
    this.apply();
  }

  // Colour nodes by a figure: a frame whose strength is the share of the largest value, and the value in words.
  heat(values, unit) {
    this.layers.get("heat").replaceChildren();
    this.parts = this.parts.filter((part) => part.kind !== "heat");
    const nodes = values ? [...this.byId.values()].filter(({ data }) => values[data.id] !== undefined) : [];
    const most = Math.max(
      ...nodes.filter(({ kind }) => kind === "node").map(({ data }) => Math.abs(values[data.id])),
      1e-12,
    );
    for (const { data, kind } of nodes) {
      const [x, y, w, h] = data.box;
      const frame = [
        "r",
        x - 2,
        y - 2,
        w + 4,
        h + 4,
        5,
        "",
        `opacity:${0.12 + 0.55 * Math.min(1, Math.abs(values[data.id]) / most)}`,
      ];
      const text = ["t", x + w - 3, y - 2, `${short(values[data.id])} ${unit}`, 8, "end", "rl-figure"];
      this.add({ id: data.id, kind: "heat", box: data.box, shapes: kind === "node" ? [frame, text] : [text] });
    }
    this.fill(true);
  }

  mini(canvas) {
    const { width, height } = this.scene;
    const k = Math.min(canvas.width / width, canvas.height / height);
    const [left, top] = [(canvas.width - width * k) / 2, (canvas.height - height * k) / 2];
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.save();
    context.translate(left, top);
    const nodes = [...this.byId.values()].filter(({ data }) => data.kind === "node");
    const hit = (id) => Number(Boolean(this.found?.has(id))); // what is found stands out, above the others
    for (const { data } of nodes.sort((a, b) => hit(a.data.id) - hit(b.data.id))) {
      const [x, y, w, h] = data.box;
      const least = hit(data.id) ? 3.5 : 1.5;
      context.globalAlpha = this.found && !hit(data.id) ? 0.3 : 1;
      context.fillStyle = hit(data.id) ? FOUND : (ROLE_COLORS[data.role] ?? "#94a3b8");
      context.fillRect(x * k, y * k, Math.max(least, w * k), Math.max(least, h * k));
    }
    context.globalAlpha = 1;
    const view = this.svg.getBoundingClientRect();
    context.strokeStyle = style.color;
    context.lineWidth = 1.5;
    context.strokeRect(
      (-this.x / this.k) * k,
      (-this.y / this.k) * k,
      (view.width / this.k) * k,
      (view.height / this.k) * k,
    );
    context.restore();
    return { k, left, top };
  }

  center(x, y) {
    const { width, height } = this.svg.getBoundingClientRect();
    this.x = width / 2 - x * this.k;
    this.y = height / 2 - y * this.k;
    this.apply();
  }
}
