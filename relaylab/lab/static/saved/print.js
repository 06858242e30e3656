// @ts-check
// The page on paper: title, what differs, the picture cut into strips between its boxes, the text or the kernel,
// the selected node.
import { figure, svg } from "../../../viz/static/graph.js";
import { extent } from "../canvas/virtual_picture.js";
import { el } from "../dom.js";

const [WIDE, HIGH, GAP] = [700, 930, 12]; // CSS pixels between the margins of an A4 page, a title set aside
const PAGES = 6; // that a picture may take in letters that are read with ease
const EASILY = 0.6;
const RIM = 12; // of the picture, beside what is in a strip
const SCALES = [0.85, 0.78, 0.72, 0.66, 0.6, 0.45, 0.3];

// where to cut a picture into strips of at most `high`, if possible where no box is
export function cuts(boxes, height, high) {
  const found = [0];
  while (height - found.at(-1) > high) {
    const [from, limit] = [found.at(-1), found.at(-1) + high];
    const tops = boxes.filter(([, y, , h]) => y < limit && y + h > limit).map(([, y]) => y - 6);
    const cut = Math.min(limit, ...tops);
    found.push(cut > from + high / 2 ? cut : limit);
  }
  return [...found, height];
}

// The strips of a picture at a scale, page by page: each as wide as what is in it; nothing if one is too wide.
function laid({ height, figures }, scale) {
  const parts = figures.map((f) => [f, ...extent(f)]);
  const boxes = figures.filter((f) => f.kind === "node").map((f) => f.box);
  const ends = cuts(boxes, height, HIGH / scale);
  const pages = [];
  let free = 0;
  for (const [i, end] of ends.slice(1).entries()) {
    const top = ends[i];
    const seen = parts.filter(([, , from, , to]) => to >= top && from <= end);
    const own = seen.filter(([f]) => f.kind !== "group");
    const left = Math.min(...own.map(([, x]) => x)) - RIM;
    const wide = Math.max(...own.map(([, , , x]) => x)) + RIM - left;
    if (wide * scale > WIDE + 1) return null;
    if (wide * scale > free) (pages.push([]), (free = WIDE));
    free -= wide * scale + GAP;
    pages.at(-1).push({ seen: seen.map(([f]) => f), box: [left, top, wide, end - top] });
  }
  return pages;
}

// the box of a group that is wider than a strip has its sides in the strip
const within = ([from, , wide], [kind, x, y, w, ...rest]) => {
  if (kind !== "r") return [kind, x, y, w, ...rest];
  const [left, right] = [Math.max(x, from + 1), Math.min(x + w, from + wide - 1)];
  return [kind, left, y, Math.max(0, right - left), ...rest];
};

// a picture as pages of strips that stand beside each other
function strips({ scene, selected }) {
  const fit = Math.min(SCALES[0], WIDE / (scene.width + 2 * RIM));
  const tried = [...SCALES, fit].map((scale) => ({ scale, pages: laid(scene, scale) })).filter(({ pages }) => pages);
  // smaller than that only for long pictures
  const good = tried.filter(({ scale }, i) => !i || scale >= EASILY || tried[i - 1].pages.length > PAGES);
  const { scale, pages } = good.reduce((a, b) => (b.pages.length < a.pages.length ? b : a));
  const strip = ({ seen, box }) => {
    const [, , width, height] = box;
    const size = { viewBox: box.join(" "), width: width * scale, height: height * scale };
    const drawn = svg("svg", { class: "relaylab", ...size });
    for (const data of seen) {
      const shapes = data.kind === "group" ? data.shapes.map((s) => within(box, s)) : data.shapes;
      const made = figure({ ...data, shapes });
      made.classList.toggle("selected", data.kind === "node" && data.id === selected);
      drawn.append(made);
    }
    return drawn;
  };
  return pages.map((page) => el("div", { className: "rl-strips" }, ...page.map(strip)));
}

/**
 * Puts what is seen on paper when the page is printed.
 * @param {() => { title: string, head: Element[], pictures: { scene: any, selected: string }[], rest: Element[] }} seen
 */
export function paper(seen) {
  /** @type {HTMLElement | null} */
  let sheet = null;
  const away = () => {
    sheet?.remove();
    sheet = null;
  };
  const make = () => {
    away();
    const { title, head, pictures, rest } = seen();
    const copies = (elements) => elements.map((element) => element.cloneNode(true));
    const top = el("h1", { textContent: title });
    const body = [top, ...copies(head), ...pictures.flatMap(strips), ...copies(rest)];
    sheet = el("div", { className: "rl-explorer rl-paper" }, ...body);
    document.body.append(sheet);
  };
  window.addEventListener("beforeprint", make);
  window.addEventListener("afterprint", away);
}
