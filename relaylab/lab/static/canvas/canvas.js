// @ts-check
// The graph as it moves: keeps its place when the stage changes, follows a twin beside it, shows itself in a minimap.
import { short } from "../dom.js";
import { VirtualPicture } from "./virtual_picture.js";

const LEGIBLE = 0.45; // the least zoom at which a first look can be read
const BEGIN = 0.7; // the zoom to begin with otherwise
const ROLE_COLORS = { added: "#0072b2", removed: "#b34700", changed: "#a3427c", moved: "#4d3800", merged: "#00664b" };

export class Canvas extends VirtualPicture {
  touched = false; // someone has moved in it

  apply() {
    super.apply();
    this.on.moved?.(this);
  }

  // The first look: the whole, or of a picture too large to be read at that size its beginning.
  begin() {
    this.fit();
    if (this.k >= LEGIBLE) return;
    const boxes = this.scene.figures.filter((f) => f.kind === "node").map((f) => f.box);
    if (boxes.length < 2) return;
    const top = Math.min(...boxes.map(([, y]) => y));
    const first = boxes.filter(([, y, , h]) => y < top + 4 * h).map(([x, , w]) => x + w / 2);
    const { width, height } = this.svg.getBoundingClientRect();
    if (Math.max(this.scene.width / width, this.scene.height / height) * LEGIBLE < 1.5) return;
    this.k = BEGIN;
    this.x = width / 2 - (first.reduce((a, b) => a + b, 0) / first.length) * this.k;
    this.y = 24 - top * this.k;
    this.apply();
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

  grab(e) {
    this.svg.addEventListener("pointermove", () => (this.touched ||= this.dragged));
    super.grab(e);
  }

  key(e) {
    if (e.key === "f" || e.key === "0") this.touched = false;
    super.key(e);
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
    for (const { data } of this.byId.values()) {
      if (data.kind !== "node") continue;
      const [x, y, w, h] = data.box;
      context.fillStyle = ROLE_COLORS[data.role] ?? "#94a3b8";
      context.fillRect(x * k, y * k, Math.max(1.5, w * k), Math.max(1.5, h * k));
    }
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
