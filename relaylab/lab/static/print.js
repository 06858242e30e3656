// The page on paper: title, what differs, the picture cut into strips between its boxes, the text or the kernel, the selected node.
import { el } from "./dom.js";

const [WIDE, HIGH, PAGES, TITLE] = [700, 960, 6, 90]; // CSS pixels that an A4 page has between its margins; pages that a picture may take
const NAMESPACE = "http://www.w3.org/2000/svg";

// where to cut a picture into strips of at most `high`, if possible where no box is
function cuts(boxes, height, high) {
  const found = [0];
  while (height - found.at(-1) > high) {
    const [from, limit] = [found.at(-1), found.at(-1) + high];
    const tops = boxes.filter(([, y, , h]) => y < limit && y + h > limit).map(([, y]) => y - 6);
    const cut = Math.min(limit, ...tops);
    found.push(cut > from + high / 2 ? cut : limit);
  }
  return [...found, height];
}

function strips(canvas, name) {
  const { width, height, figures } = canvas.scene;
  const boxes = figures.filter((f) => f.kind === "node").map((f) => f.box);
  let scale = Math.min(0.85, WIDE / width);
  const pages = () => (height * scale) / HIGH / Math.max(1, Math.floor(WIDE / (width * scale)));
  while (pages() > PAGES && scale > 0.3) scale *= 0.9;
  canvas.layer.id = name;
  const ends = cuts(boxes, height, (HIGH - TITLE) / scale);
  return ends.slice(1).map((end, i) => {
    const top = ends[i];
    const strip = document.createElementNS(NAMESPACE, "svg");
    for (const [key, value] of Object.entries({ class: "relaylab rl-strip", viewBox: `0 ${top} ${width} ${end - top}`, width: width * scale, height: (end - top) * scale })) strip.setAttribute(key, value);
    const use = document.createElementNS(NAMESPACE, "use");
    use.setAttribute("href", `#${name}`);
    strip.append(use);
    return strip;
  });
}

export function paper(explorer) {
  let sheet = null;
  const away = () => {
    sheet?.remove();
    sheet = null;
    explorer.canvases.forEach((c) => c.apply());
  };
  const make = () => {
    away();
    const pane = explorer.root.dataset.pane;
    const copy = (element) => element.cloneNode(true);
    const graph = ["graph", "both", "code"].includes(pane) ? explorer.canvases : explorer.tabs[pane]?.panes?.map((p) => p.canvas) ?? [explorer.tabs[pane]?.canvas].filter(Boolean);
    const pictures = graph.map((c, i) => el("div", { className: "rl-strips" }, ...strips(c, `rl-paper-${i}`)));
    graph.forEach((c) => c.layer.removeAttribute("transform"));
    const texts = { text: [explorer.text], both: [explorer.text], code: [explorer.code] }[pane] ?? [];
    const node = explorer.host.get("selected") && !explorer.tabs[pane] ? [copy(explorer.panel)] : [];
    sheet = el("div", { className: "rl-explorer rl-paper" }, el("h1", { textContent: explorer.title.textContent }), copy(explorer.legend), ...node, ...pictures, ...texts.map(copy));
    document.body.append(sheet);
  };
  window.addEventListener("beforeprint", make);
  window.addEventListener("afterprint", away);
}
