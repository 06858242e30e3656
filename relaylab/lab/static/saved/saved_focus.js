// @ts-check
// A part of a saved picture: a node with what is a few edges away, in its place; the rim says what is left out.
import { count } from "../dom.js";

const MARGIN = 24;

const tenth = (v) => Math.round(v * 10) / 10;

export function moved([kind, first, ...rest], x, y) {
  if (kind !== "p") return [kind, tenth(first + x), tenth(rest[0] + y), ...rest.slice(1)];
  let turn = 0;
  return [kind, first.replace(/-?\d+(?:\.\d+)?/g, (n) => tenth(Number(n) + ((turn += 1) % 2 ? x : y))), ...rest];
}

/**
 * @param {any} scene
 * @param {{ id: string, hops: number }} near
 * @param {(id: string) => string} groupOf
 */
export function focused(scene, { id, hops }, groupOf) {
  const nodes = new Map(scene.figures.filter((f) => f.kind === "node").map((f) => [f.id, f]));
  const edges = scene.figures.filter((f) => f.kind === "edge" && nodes.has(f.source) && nodes.has(f.target));
  const kept = new Set([...nodes.keys()].filter((n) => n === id || groupOf(n) === id));
  if (!kept.size) return scene;
  for (let k = 0; k < hops; k++) {
    const rim = edges.filter((e) => kept.has(e.source) !== kept.has(e.target));
    for (const e of rim) kept.add(e.source).add(e.target);
  }
  const homes = new Set([...kept].map(groupOf));
  const small = (f) => f.kind === "group" && homes.has(f.id) && f.label.startsWith("primitive");
  const shown = scene.figures.filter((f) =>
    f.kind === "edge" ? kept.has(f.source) && kept.has(f.target) : kept.has(f.id) || small(f),
  );
  const boxes = shown.filter((f) => f.kind !== "edge").map((f) => f.box);
  const [x, y] = [0, 1].map((i) => Math.min(...boxes.map((b) => b[i])) - MARGIN);
  const [right, bottom] = [0, 1].map((i) => Math.max(...boxes.map((b) => b[i] + b[i + 2])) + MARGIN);
  const place = (f) => ({
    ...f,
    box: [f.box[0] - x, f.box[1] - y, f.box[2], f.box[3]],
    shapes: f.shapes.map((s) => moved(s, -x, -y)),
  });
  const figures = shown.map((f) => place({ ...f, shapes: [...f.shapes, ...ghosts(f, edges, kept)] }));
  return { ...scene, figures, width: right - x, height: bottom - y, nodes: scene.nodes.filter(([n]) => kept.has(n)) };
}

// how many neighbours of a node are not shown: inputs above it, users below
function ghosts({ id, kind, box: [x, y, width, height] }, edges, kept) {
  const words = (own, other, what, at) => {
    const beyond = new Set(edges.filter((e) => e[own] === id && !kept.has(e[other])).map((e) => e[other]));
    const text = `… ${count(beyond.size, what)}`;
    return beyond.size ? [["t", x + width / 2, at, text, 8, "middle", "text-dim"]] : [];
  };
  if (kind !== "node") return [];
  return [
    ...words("target", "source", "more input", y - 4),
    ...words("source", "target", "more user", y + height + 10),
  ];
}
