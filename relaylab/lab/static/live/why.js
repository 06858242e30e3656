// @ts-check
// Why a pass did nothing to a node: the rules that came nearest, each with the way of the matcher up to what failed.
import { dim, el, fold, link, problem, select, subheading } from "../dom.js";

const mark = (holds) => (holds ? "✓ " : "✗ ");

/** @param {(id: string) => void} pick */
function reason(found, pick, named) {
  const share = `${Math.round(found.near * 100)}`;
  const bar = el("span", { className: "rl-near", title: `${share} % of the pattern fits` });
  bar.style.setProperty("--near", `${share}%`);
  const word = (text, id) => (id ? link(text, () => pick(id)) : el("span", { textContent: text }));
  const name = el("b", { textContent: `${named ? `${found.index + 1} ${found.pass}: ` : ""}${found.rule}: ` });
  const line = ([text, holds, id]) => el("li", { className: holds ? "" : "rl-broken" }, word(mark(holds) + text, id));
  const way = found.steps.length > 1 ? fold("step by step", "rl-way", el("ol", {}, ...found.steps.map(line))) : null;
  const place = found.place ? dim(found.place, "div") : null;
  return el("li", { className: found.fires ? "rl-fires" : "" }, bar, name, word(found.words, found.id), place, way);
}

/**
 * A button that asks; `ask(index)` answers for the pass at an index, -1 for the pass of the stage, and the others.
 * @param {(index: number) => Promise<any>} ask
 * @param {(id: string) => void} pick
 * @param {number} [asked]  the pass that was asked about before
 */
export function why(ask, pick, asked) {
  const body = el("div", { className: "rl-why" });
  const list = (reasons, named) => el("ul", { className: "rl-story" }, ...reasons.map((r) => reason(r, pick, named)));
  let turn = 0;
  const show = async (index) => {
    const own = (turn += 1);
    const found = await ask(index);
    if (own !== turn) return; // another pass was chosen, and its answer was there
    if (found.error) return body.replaceChildren(problem(found.error));
    const asked = [found.index, `${found.index + 1} ${found.pass}`];
    const others = found.passes.filter(([at]) => at !== found.index).map(([at, name]) => [at, `${at + 1} ${name}`]);
    const passes = [asked, ...others].sort((a, b) => a[0] - b[0]);
    const choose = found.pass ? select("pass", passes, found.index, (at) => show(Number(at))) : null;
    /** @type {(HTMLElement | null)[]} */
    const parts = [subheading("why a pass did nothing here"), choose, list(found.reasons, false)];
    if (found.note) parts.push(dim(`${found.note[0].toUpperCase()}${found.note.slice(1)}.`));
    if (found.others.length) parts.push(subheading("near misses of other passes"), list(found.others, true));
    body.replaceChildren(...parts.filter((part) => part !== null));
    const way = body.querySelector("details");
    if (way) way.open = true; // of the nearest
  };
  const start = el("button", {
    className: "rl-button rl-why-button",
    textContent: "Why not?",
    title: "why a pass did nothing here",
    onclick: () => (start.remove(), show(-1)),
  });
  if (asked === undefined) return el("div", {}, start, body);
  show(asked);
  return el("div", {}, body);
}
