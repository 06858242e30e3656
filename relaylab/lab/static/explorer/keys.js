// @ts-check
// The keys: what each does, for people and for the explorer.
import { el, heading, subheading } from "../dom.js";
import { QUERIES } from "./search.js";

const HELP = [
  ["← →", "previous, next changing pass (with Shift: every pass)"],
  ["Home End", "source program, last pass"],
  ["[ ]", "previous, next single rewrite of the pass"],
  ["↑ ↓", "along the edges of the selected node"],
  ["v", "graph, text, both, code, panes, heat, table, compare"],
  ["Ctrl Z", "undo the last edit or move (with Shift: redo)"],
  ["s", "merged or side by side"],
  ["/", "search; Enter: next hit"],
  ["c C e", "collapse the group of the node, all kernels; expand all"],
  ["r", "fold, unfold repeated blocks (×N)"],
  ["u d", "up-stream, down-stream of the node"],
  ["+ − f", "zoom, fit"],
  ["o", "next overlay"],
  ["l", "left-hand list: passes or tree"],
  ["Alt ↑ ↓", "move the pass of this stage"],
  ["x", "switch the pass of this stage on or off"],
  ["?", "this help"],
  ["Esc", "give the keyboard back to the notebook"],
];

export function help() {
  const line = ([key, text]) => el("tr", {}, el("th", { textContent: key }), el("td", { textContent: text }));
  return [heading("keys"), el("table", {}, ...HELP.map(line)), subheading("search"), el("p", { textContent: QUERIES })];
}

/**
 * What a key does; nothing for keys that are not the explorer's.
 * @param {Record<string, (...args: any[]) => any>} act
 * @param {KeyboardEvent} e
 * @returns {(() => any) | undefined}
 */
export function keyOf(act, e) {
  if (e.altKey) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    return by && act.movePass ? () => act.movePass(by) : undefined;
  }
  return {
    ArrowRight: () => act.turn(1, e.shiftKey),
    ArrowLeft: () => act.turn(-1, e.shiftKey),
    j: () => act.turn(1),
    k: () => act.turn(-1),
    Home: () => act.first(),
    End: () => act.last(),
    "[": () => act.rewrite(-1),
    "]": () => act.rewrite(1),
    "/": () => act.search(),
    v: () => act.nextPane(),
    s: () => act.otherStyle(),
    c: () => act.collapse(),
    C: () => act.collapseAll(),
    e: () => act.expand(),
    r: () => act.repeats(),
    o: () => act.nextOverlay(),
    l: () => act.list(),
    "?": () => act.help(),
    f: () => act.fit(),
    x: () => act.togglePass(),
    Escape: () => act.leave(),
  }[e.key];
}
