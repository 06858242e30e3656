// The saved page: every answer is in the page.
import { unpack } from "./graph.js";
import { Explorer } from "./explorer.js";

// What the pages' pictures share is stored once: figures are [number, x, y], shapes stand relative to their figure.
function scene(packed, pool) {
  const moved = (shape, x, y) => {
    const [kind, first, ...rest] = shape;
    if (kind !== "p") return [kind, first + x, rest[0] + y, ...rest.slice(1)];
    let turn = 0;
    return [kind, first.replace(/-?\d+(?:\.\d+)?/g, (n) => String(Number(n) + ((turn += 1) % 2 ? x : y))), ...rest];
  };
  const figures = packed.figures.map(([number, x, y]) => {
    const [id, kind, label, detail, role, source, target, [left, top, wide, high], shapes] = pool[number];
    return { id, kind, label, detail, role, source, target, box: [left + x, top + y, wide, high], shapes: shapes.map((s) => moved(pool[s], x, y)) };
  });
  return { ...packed, figures, nodes: packed.nodes.map((n) => pool[n]) };
}

function host(book) {
  const chosen = { ...book.chosen };
  const missing = { error: `This is ${book.missing}.` };
  const opened = (answer) => (answer.scenes ? { ...answer, scenes: answer.scenes.map((s) => scene(s, book.pool)) } : answer);
  return {
    live: false,
    ask: async (what, args) => opened(book.answers[[what, ...args].join("\u0001")] ?? missing),
    get: (name) => (name === "rows" ? book.rows : chosen[name]),
    set: (name, value) => (chosen[name] = value),
    on: () => {},
  };
}

unpack(document.getElementById("relaylab-data").textContent).then((book) => {
  const root = document.getElementById("relaylab");
  window.relaylab = new Explorer(root, host(book));
});
