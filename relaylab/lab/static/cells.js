// @ts-check
// Colours for cells of Relay text. Their editors know no Relay, and only an extension could teach it them: the
// page marks what they show (CSS Custom Highlights) and leaves the text alone.
import { el } from "./dom.js";
import { codeTokens } from "./panels/colours.js";

const RELAY = /^\s*%%relay(_passes)?(?!\w)/;
const first = new WeakMap(); // whether the first line of an editor, when it was seen last, said Relay

// the first line may be out of view, and then not in the page
function isRelay(editor, lines) {
  if (!editor.querySelector(":scope > .cm-gap:first-child")) first.set(editor, RELAY.test(lines[0]?.textContent ?? ""));
  return first.get(editor);
}

// The tokens of a line as ranges of its text.
function mark(line, found) {
  const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  /** @type {[Node, number][]} */
  const nodes = []; // with the offset behind each
  let length = 0;
  while (walk.nextNode()) nodes.push([walk.currentNode, (length += walk.currentNode.textContent?.length ?? 0)]);
  const place = (at, end) => {
    const k = nodes.findIndex(([, behind]) => (end ? at <= behind : at < behind));
    return /** @type {[Node, number]} */ ([nodes[k][0], at - (nodes[k - 1]?.[1] ?? 0)]);
  };
  let at = 0;
  for (const [kind, part] of codeTokens(line.textContent, "relay")) {
    const range = document.createRange();
    if (kind) {
      range.setStart(...place(at, false));
      range.setEnd(...place(at + part.length, true));
      found[kind].add(range);
    }
    at += part.length;
  }
}

/**
 * @param {string[]} kinds
 * @param {string} style  a rule for each kind
 */
export function colourCells(kinds, style) {
  document.head.append(el("style", { textContent: style }));
  const found = Object.fromEntries(kinds.map((kind) => [kind, new Highlight()]));
  for (const kind of kinds) CSS.highlights.set(`rl-t-${kind}`, found[kind]);
  let queued = false;
  const paint = () => {
    queued = false;
    for (const kind of kinds) found[kind].clear();
    for (const editor of document.querySelectorAll(".cm-content")) {
      const lines = [...editor.querySelectorAll(".cm-line")];
      if (!isRelay(editor, lines)) continue;
      for (const line of lines) if (!RELAY.test(line.textContent ?? "")) mark(line, found);
    }
  };
  const seen = new MutationObserver(() => {
    if (!queued) requestAnimationFrame(paint);
    queued = true;
  });
  seen.observe(document.body, { childList: true, subtree: true, characterData: true });
  paint();
  return seen;
}
