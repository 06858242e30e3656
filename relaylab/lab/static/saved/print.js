// @ts-check
// The page on paper: title, what differs, the picture cut into strips between its boxes, the text or the kernel,
// the selected node.
import { figure, svg } from "../../../viz/static/graph.js";
import { el } from "../dom.js";

const [WIDE, HIGH, GAP] = [700, 930, 12]; // CSS pixels between the margins of an A4 page, a title set aside
const PAGES = 6; // that a picture may take

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

// from where to where a figure reaches down the picture
function reach(data) {
  if (data.kind !== "edge") return [data.box[1], data.box[1] + data.box[3]];
  const ys = (data.shapes[0]?.[1].match?.(/-?[\d.]+/g) ?? []).filter((_, i) => i % 2).map(Number);
  return [Math.min(...ys), Math.max(...ys)];
}

// a picture as pages of strips that stand beside each other
function strips({ scene: { width, height, figures }, selected }) {
  const size = (beside) => Math.min(0.85, (WIDE - (beside - 1) * GAP) / beside / width);
  let beside = 1;
  while (size(beside + 1) > 0.6 || (size(beside + 1) > 0.3 && (height * size(beside)) / HIGH / beside > PAGES))
    beside += 1;
  const scale = size(beside);
  const ends = cuts(
    figures.filter((f) => f.kind === "node").map((f) => f.box),
    height,
    HIGH / scale,
  );
  const reaches = figures.map((f) => [f, ...reach(f)]);
  const cut = ends.slice(1).map((end, i) => {
    const top = ends[i];
    const viewBox = `0 ${top} ${width} ${end - top}`;
    const strip = svg("svg", { class: "relaylab", viewBox, width: width * scale, height: (end - top) * scale });
    for (const [data, from, to] of reaches) {
      if (to < top || from > end) continue;
      const drawn = figure(data);
      drawn.classList.toggle("selected", data.kind === "node" && data.id === selected);
      strip.append(drawn);
    }
    return strip;
  });
  const found = [];
  while (cut.length) found.push(el("div", { className: "rl-strips" }, ...cut.splice(0, beside)));
  return found;
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
