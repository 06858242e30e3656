// @ts-check
// Why a pass did nothing to a node: its rules, the nearest first, each with the test that failed.
import { dim, el, link, problem, select, subheading } from "../dom.js";

function reason([rule, words, fires, near, place, at], pick) {
  const share = `${Math.round(near * 100)}`;
  const bar = el("span", { className: "rl-near", title: `${share} % of the pattern fits` });
  bar.style.setProperty("--near", `${share}%`);
  const text = at ? link(words, () => pick(at)) : el("span", { textContent: words });
  const name = el("b", { textContent: `${rule}: ` });
  return el("li", { className: fires ? "rl-fires" : "" }, bar, name, text, place ? dim(place, "div") : null);
}

/**
 * A button that asks; `ask(index)` answers for the pass at an index, -1 for the nearest that can say.
 * @param {(index: number) => Promise<any>} ask
 * @param {(id: string) => void} pick
 * @param {number} [asked]  the pass that was asked about before
 */
export function why(ask, pick, asked) {
  const body = el("div", { className: "rl-why" });
  const show = async (index) => {
    const found = await ask(index);
    if (found.error) return body.replaceChildren(problem(found.error));
    if (!found.passes.length) return body.replaceChildren(dim("No pass of this pipeline is made of rules."));
    const passes = found.passes.map(([at, name]) => [at, `${at + 1} ${name}`]);
    const choose = select("pass", passes, found.index, (at) => show(Number(at)));
    const lines = (found.reasons ?? []).map((r) => reason(r, pick));
    const none = found.error_here ?? (lines.length ? "" : "It looks at no node like this.");
    const list = none ? dim(none) : el("ul", { className: "rl-story" }, ...lines);
    body.replaceChildren(subheading("why a pass did nothing here"), choose, list);
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
