// @ts-check
// The picture of a stage, or two beside each other that move together, with a map of the whole in the corner.
import { cross, el, problem } from "../dom.js";
import { Canvas } from "../canvas/canvas.js";
import { divided } from "./room.js";

export const KEPT = Infinity; // selected where it stood already

export class Stage {
  /** @param {{ selected: () => string, select: (id: string, from: number) => void, open: (id: string) => void,
   *   turn: (id: string) => void, sign: (figure: any) => string, one: () => void }} act */
  constructor(act) {
    this.act = act;
    /** @type {Canvas[]} */
    this.canvases = [];
    this.following = false; // one side moves because the other did
    this.choosing = false; // nodes are selected because one was
    this.frame = 0;
    this.graphs = el("div", { className: "rl-graphs" });
    this.map = el("canvas", { className: "rl-minimap", width: 110, height: 150, title: "click to go there" });
    this.map.addEventListener("pointerdown", (e) => this.jump(e));
    this.element = el("div", { className: "rl-graphpane" }, this.graphs, this.map);
  }

  fail(text) {
    this.canvases = [];
    this.graphs.replaceChildren(problem(text));
    this.scale = null;
  }

  // Draws scenes in the place of those before; what was looked at stays where it was. Gives the id that was kept.
  draw(scenes) {
    const olds = this.canvases;
    const [old] = olds;
    const known = new Set(scenes[0].nodes.map(([id]) => id));
    const anchor = old?.touched || old?.selected ? old.anchor(known) : null; // while it is on the screen
    const focused = this.graphs.contains(document.activeElement);
    const slots = scenes.map(() => el("div", { className: "rl-view" }));
    const drawn = this.graphs.querySelectorAll(".rl-view");
    if (slots.length > 1 && drawn.length === slots.length)
      slots.forEach((slot, i) => (slot.style.flex = /** @type {HTMLElement} */ (drawn[i]).style.flex));
    this.graphs.replaceChildren(...divided(slots));
    this.graphs.classList.toggle("rl-two", slots.length > 1);
    this.canvases = scenes.map((scene, i) => {
      const select = (data) => this.choosing || this.act.select(data?.id ?? "", i);
      return new Canvas(slots[i], scene, { ...this.act, select, moved: (c) => this.moved(c, i) });
    });
    const { one } = this.act;
    if (slots.length > 1) for (const slot of slots) slot.append(cross("close: one picture (s)", one));
    this.following = true;
    for (const canvas of this.canvases) {
      if (!anchor) canvas.begin();
      else {
        canvas.touched = true;
        if (canvas.byId.has(anchor.id)) canvas.keep(anchor, old.k);
        if (anchor.id === old.selected && old.sees(anchor.id) && canvas.narrower(old)) canvas.inView(anchor.id);
      }
    }
    this.following = false;
    this.canvases.forEach((canvas, i) => canvas.morph(olds[i] ?? old));
    if (focused) this.canvases[0].svg.focus({ preventScroll: true });
    return anchor?.id;
  }

  // ---- what is selected, or lit

  /** `from` is the picture in which it was selected; -1 none; KEPT where it stands where it stood. */
  select(id, from) {
    this.choosing = true;
    this.canvases.forEach((c, i) => i !== from && c.select(c.byId.has(id) ? id : null, from < 0));
    this.canvases[from]?.inView(id);
    this.choosing = false;
  }

  glow(ids) {
    for (const canvas of this.canvases) canvas.glow(ids);
  }

  has(id) {
    return this.canvases.some((c) => c.byId.has(id));
  }

  // what is drawn for a node, after it before before
  figure(id) {
    return this.canvases.at(-1)?.byId.get(id)?.data ?? this.canvases[0]?.byId.get(id)?.data;
  }

  // ---- the view

  // another first look
  begin() {
    for (const canvas of this.canvases) {
      canvas.touched = false;
      canvas.begin();
      canvas.inView(this.act.selected());
    }
  }

  get camera() {
    const [canvas] = this.canvases;
    return canvas ? [canvas.k, canvas.x, canvas.y] : null;
  }

  set camera(place) {
    const [canvas] = this.canvases;
    if (!canvas || !place) return;
    [canvas.k, canvas.x, canvas.y] = place;
    canvas.touched = true;
    canvas.apply();
  }

  moved(canvas, index) {
    if (this.canvases[index] !== canvas) return; // it comes, or is gone
    if (!this.following && this.canvases.length > 1) {
      this.following = true;
      this.twin(canvas, this.canvases[1 - index]);
      this.following = false;
    }
    this.minimap();
  }

  // the other side moves along; a selected node stands at one height on both
  twin(canvas, other) {
    const id = this.act.selected();
    if (canvas.byId.has(id) && other.byId.has(id)) {
      const [x, y, w, h] = canvas.byId.get(id).data.box;
      other.keep({ id, x: canvas.x + (x + w / 2) * canvas.k, y: canvas.y + (y + h / 2) * canvas.k }, canvas.k);
    } else {
      [other.k, other.x, other.y] = [canvas.k, canvas.x, canvas.y];
      other.apply();
    }
  }

  minimap() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => (this.scale = this.canvases[0]?.mini(this.map)));
  }

  jump(e) {
    if (!this.scale) return;
    const box = this.map.getBoundingClientRect();
    const { k, left, top } = this.scale;
    this.canvases[0].touched = true;
    this.canvases[0].center((e.clientX - box.left - left) / k, (e.clientY - box.top - top) / k);
  }
}
