// @ts-check
// Draws relaylab pictures and lets people move in them. No library, no network, no markup from data:
// every piece of program text becomes a text node or an attribute value.

export const SVG = "http://www.w3.org/2000/svg";
const READABLE = 0.35; // below this zoom text is only noise (and most of the drawing time)

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function styled(element, own) {
  if (own) element.style.cssText = own;
  return element;
}

const shapes = {
  r: ([, x, y, width, height, rx, names, own]) => styled(svg("rect", { x, y, width, height, rx, class: names }), own),
  p: ([, d, names, own]) => styled(svg("path", { d, class: names }), own),
  t: ([, x, y, text, size, anchor, styles]) =>
    svg("text", { x, y, "font-size": size, "text-anchor": anchor, class: styles, "xml:space": "preserve" }, text),
};

// ---- wires, as `viz.scene` draws them

const [HEAD, PULLED] = [6, 5]; // how long the head is; how far before its tip the wire ends

/**
 * The path of a wire through its corners: lines along the axes, S-curves that leave and arrive along the flow.
 * @param {number[][]} corners
 * @param {boolean} sideways
 */
export function curve(corners, sideways) {
  let [[x, y], ...rest] = corners;
  let path = `M${x} ${y}`;
  for (const [nx, ny] of rest) {
    if (Math.abs(nx - x) < 0.05 || Math.abs(ny - y) < 0.05) path += `L${nx} ${ny}`;
    else if (sideways) path += `C${(x + nx) / 2} ${y} ${(x + nx) / 2} ${ny} ${nx} ${ny}`;
    else path += `C${x} ${(y + ny) / 2} ${nx} ${(y + ny) / 2} ${nx} ${ny}`;
    [x, y] = [nx, ny];
  }
  return path;
}

/**
 * The head of a wire that ends at a place and goes on in a direction (a unit vector).
 * @param {number[]} end
 * @param {number[]} direction
 */
export function arrow([x, y], [dx, dy]) {
  const half = HEAD * 0.45;
  const [tx, ty] = [x + dx * PULLED, y + dy * PULLED];
  const [bx, by] = [tx - dx * HEAD, ty - dy * HEAD];
  return `M${tx} ${ty}L${bx - dy * half} ${by + dx * half}L${bx + dy * half} ${by - dx * half}Z`;
}

export function figure(data) {
  const group = svg("g", { class: data.kind, "data-id": data.id });
  if (data.label) group.append(svg("title", {}, data.label));
  if (data.kind === "node") group.setAttribute("role", "img");
  for (const shape of data.shapes) group.append(shapes[shape[0]](shape));
  return group;
}

// The next of a row in a direction, around its ends; what is not in it stands before the first and behind the last.
export function onward(row, one, step) {
  const at = row.indexOf(one);
  return row.at((at < 0 && step < 0 ? at : at + step) % row.length);
}

// Hears of the pointer wherever it goes; gives what ends that.
export function followPointer(move, up) {
  const ends = new AbortController();
  const { signal } = ends;
  window.addEventListener("pointermove", move, { signal });
  window.addEventListener("pointerup", up, { signal });
  window.addEventListener("pointercancel", up, { signal });
  return () => ends.abort();
}

// One picture: pan, zoom, neighbours. `on.select(figure or null)` is told what is chosen.
export class Picture {
  /**
   * @param {Element} root
   * @param {any} scene
   * @param {{ select?: (figure: any) => any, moved?: (picture: any) => any, open?: (id: string) => any,
   *   turn?: (id: string) => any, sign?: (figure: any) => string }} [on]
   */
  constructor(root, scene, on = {}) {
    this.scene = scene;
    this.on = on;
    /** @type {Map<string, any>} */
    this.byId = new Map();
    /** @type {any[]} */
    this.edges = [];
    /** @type {string | null} */
    this.selected = null;
    /** @type {string[] | undefined} */
    this.hits = undefined; // what the last search found
    this.dragged = false;
    [this.k, this.x, this.y] = [1, 0, 0]; // the zoom, and where the origin of the scene is on the screen
    this.layer = svg("g");
    this.svg = svg(
      "svg",
      { class: "relaylab", tabindex: 0, role: "group", "aria-label": scene.title || "graph" },
      this.layer,
    );
    this.prepare();
    for (const data of scene.figures) this.add(data);
    root.replaceChildren(this.svg);
    this.svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.svg.addEventListener("pointerdown", (e) => this.grab(e));
    this.svg.addEventListener("keydown", (e) => this.key(e));
    this.fit();
  }

  // for pictures that keep more
  prepare() {}

  add(data) {
    const element = figure(data);
    this.layer.append(element);
    if (data.kind === "edge") this.edges.push({ data, element });
    if (data.kind !== "node" && data.kind !== "group") return;
    this.byId.set(data.id, { data, element });
    element.addEventListener("click", (e) => {
      e.stopPropagation();
      if (!this.dragged) this.select(data.id);
    });
  }

  // ---- the view

  apply() {
    this.layer.setAttribute("transform", `translate(${this.x},${this.y}) scale(${this.k})`);
    this.svg.classList.toggle("far", this.k < READABLE);
  }

  fit(box = [0, 0, this.scene.width, this.scene.height]) {
    const { width, height } = this.svg.getBoundingClientRect();
    const tall = box[3] / box[2] > 2.2 * (height / width || 1);
    const whole = Math.min((width - 16) / box[2], (height - 16) / box[3]);
    this.k = Math.max(0.02, Math.min(1.4, tall ? Math.min((width - 16) / box[2], Math.max(whole, 0.8)) : whole));
    this.x = (width - box[2] * this.k) / 2 - box[0] * this.k;
    this.y = Math.max(8, (height - box[3] * this.k) / 2) - box[1] * this.k;
    this.apply();
  }

  zoom(factor, cx, cy) {
    const k = Math.max(0.02, Math.min(6, this.k * factor));
    this.x = cx - ((cx - this.x) * k) / this.k;
    this.y = cy - ((cy - this.y) * k) / this.k;
    this.k = k;
    this.apply();
  }

  wheel(e) {
    const box = this.svg.getBoundingClientRect();
    e.preventDefault();
    if (e.ctrlKey || e.metaKey)
      return this.zoom(Math.exp(-e.deltaY * 0.004), e.clientX - box.left, e.clientY - box.top);
    this.x -= e.shiftKey ? e.deltaY : e.deltaX;
    this.y -= e.shiftKey ? 0 : e.deltaY;
    this.apply();
  }

  grab(down) {
    const start = [down.clientX - this.x, down.clientY - this.y];
    this.dragged = false;
    this.fingers = (this.fingers ?? new Map()).set(down.pointerId, down);
    if (this.fingers.size === 2) this.pinch();
    const move = (e) => {
      if (e.pointerId !== down.pointerId || this.pinched) return;
      this.fingers.set(e.pointerId, e);
      if (!this.dragged && Math.hypot(e.clientX - down.clientX, e.clientY - down.clientY) < 4) return;
      this.dragged = true;
      this.x = e.clientX - start[0];
      this.y = e.clientY - start[1];
      this.apply();
    };
    const up = (e) => {
      if (e.pointerId !== down.pointerId) return;
      this.fingers.delete(e.pointerId);
      unfollow();
      if (!this.dragged && !this.pinched && !e.target.closest?.(".node, .group")) this.select(null);
    };
    const unfollow = followPointer(move, up);
    this.svg.focus({ preventScroll: true });
  }

  // two fingers: zoom about the middle between them, until both are lifted
  pinch() {
    const span = () => {
      const [a, b] = [...this.fingers.values()];
      return [
        Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1,
        (a.clientX + b.clientX) / 2,
        (a.clientY + b.clientY) / 2,
      ];
    };
    let [far] = span();
    this.pinched = true;
    const move = (e) => {
      if (this.fingers.size !== 2 || !this.fingers.has(e.pointerId)) return;
      this.fingers.set(e.pointerId, e);
      const [now, x, y] = span();
      const box = this.svg.getBoundingClientRect();
      this.zoom(now / far, x - box.left, y - box.top);
      far = now;
    };
    const up = () => {
      if (this.fingers.size) return;
      this.pinched = false;
      unfollow();
    };
    const unfollow = followPointer(move, up);
  }

  reveal(id) {
    const [x, y, w, h] = this.byId.get(id).data.box;
    const { width, height } = this.svg.getBoundingClientRect();
    if (this.k < READABLE) this.k = 0.8;
    const [sx, sy] = [this.x + (x + w / 2) * this.k, this.y + (y + h / 2) * this.k];
    if (sx < 60 || sx > width - 60) this.x += width / 2 - sx;
    if (sy < 40 || sy > height - 40) this.y += height / 2 - sy;
    this.apply();
  }

  // ---- selection, neighbours

  // each kind of picture has its own way
  select(id, show = false) {}

  near(id, end) {
    const other = end === "source" ? "target" : "source";
    return this.edges
      .filter(({ data }) => data[end] === id && this.byId.has(data[other]))
      .map(({ data }) => data[other]);
  }

  reach(id, end) {
    const found = new Set([id]);
    for (const at of found) this.near(at, end).forEach((next) => found.add(next));
    return found;
  }

  mark(ids) {
    for (const [id, { element, data }] of this.byId)
      if (data.kind === "node") element.classList.toggle("dim", ids !== null && !ids.has(id));
    for (const { element, data } of this.edges)
      element.classList.toggle("dim", ids !== null && !(ids.has(data.source) && ids.has(data.target)));
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const walk = { ArrowUp: ["target", 0], ArrowDown: ["source", 0] }[e.key];
    const { width, height } = this.svg.getBoundingClientRect();
    if (walk && this.selected) this.select(this.near(this.selected, walk[0])[walk[1]] ?? this.selected, true);
    else if (e.key === "f" || e.key === "0") this.fit();
    else if (e.key === "+" || e.key === "=") this.zoom(1.25, width / 2, height / 2);
    else if (e.key === "-") this.zoom(0.8, width / 2, height / 2);
    else if (e.key === "u" && this.selected) this.mark(this.reach(this.selected, "target"));
    else if (e.key === "d" && this.selected) this.mark(this.reach(this.selected, "source"));
    else if (e.key === "Escape") (this.mark(null), this.select(null));
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}

// The document that a page carries: JSON, compressed, in base64.
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
