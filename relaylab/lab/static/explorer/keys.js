// @ts-check
// The keys: what each does, for people and for the explorer.
import { el, heading, paragraph, subheading } from "../dom.js";
import { QUERIES } from "./search.js";

// key, what it does, whether only a kernel can do it
const HELP = [
  ["← →", "previous, next changing pass (with Shift: every pass)"],
  ["Home End", "source program, last pass"],
  ["n b", "next, previous pass that touched the selected node"],
  ["[ ]", "previous, next single rewrite of the pass"],
  ["↑ ↓", "along the edges of the selected node"],
  ["v", "the next tab"],
  ["Ctrl Z", "undo the last move, search or fold (with Shift: redo)"],
  ["Ctrl Z", "undo the last edit of the pipeline as well", true],
  ["s", "merged or side by side"],
  ["/", "search; Enter: next hit"],
  ["a", "only what changed, or everything"],
  ["c C e", "collapse the group of the node (−), all kernels, then all functions; expand a card (+), or all"],
  ["1 2 3", "unfold as far as models, functions, operators"],
  ["h", "pictures from left to right, or from top to bottom", true],
  ["r", "fold, unfold repeated blocks (×N)", true],
  ["u d", "up-stream, down-stream of the node"],
  ["+ − 0", "zoom, fit the whole"],
  ["f", "fit the selected node with its neighbours"],
  ["F", "only what is near the selected node; + − take more, less of it"],
  ["z m", "full screen, map of the whole picture"],
  ["p", "slides: large, a changing pass at a time (Esc or p: back)"],
  ["o", "next overlay"],
  ["l", "left-hand list: passes or tree"],
  ["Alt ↑ ↓", "move the pass of this stage", true],
  ["x", "switch the pass of this stage on or off", true],
  ["?", "this help"],
  ["Esc", "close what is read, then let go of the node, then of the keyboard"],
];

/** @param {boolean} live  whether a kernel answers */
export function help(live) {
  const line = ([key, text]) => el("tr", {}, el("th", { textContent: key }), el("td", { textContent: text }));
  const lines = HELP.filter(([, , kernel]) => live || !kernel).map(line);
  return [heading("keys"), el("table", {}, ...lines), subheading("search"), paragraph(QUERIES)];
}

// what a key asks for, and with which argument
const KEYS = {
  ArrowRight: ["turn", 1],
  ArrowLeft: ["turn", -1],
  j: ["turn", 1],
  k: ["turn", -1],
  Home: ["first"],
  End: ["last"],
  n: ["touched", 1],
  b: ["touched", -1],
  N: ["touched", 1],
  B: ["touched", -1],
  "[": ["rewrite", -1],
  "]": ["rewrite", 1],
  "/": ["search"],
  v: ["nextPane"],
  s: ["otherStyle"],
  c: ["collapse"],
  C: ["collapseAll"],
  e: ["expand"],
  r: ["repeats"],
  1: ["level", "model"],
  2: ["level", "function"],
  3: ["level", "operator"],
  h: ["turned"],
  a: ["changes"],
  o: ["nextOverlay"],
  l: ["list"],
  "?": ["help"],
  F: ["focus"],
  "+": ["wider"],
  "=": ["wider"],
  "-": ["closer"],
  z: ["full"],
  m: ["map"],
  p: ["slides"],
  PageDown: ["slide", 1],
  PageUp: ["slide", -1],
  " ": ["slide", 1],
  x: ["togglePass"],
  Escape: ["leave"],
};

/**
 * What a key does; nothing for keys that are not the explorer's, or that mean nothing now.
 * @param {Record<string, any>} act
 * @param {KeyboardEvent} e
 * @returns {(() => any) | undefined}
 */
export function keyOf(act, e) {
  const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
  if (e.altKey) return by && act.movePass ? () => act.movePass(by) : undefined;
  const [name, ...given] = KEYS[e.key] ?? [];
  return act[name] && (() => act[name](...given, e.shiftKey));
}
