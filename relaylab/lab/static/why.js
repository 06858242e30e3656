// Why a pass did nothing to a node: its rules, the nearest first, each with the test that failed.
import { el } from "./dom.js";

function line([rule, words, fires, near, place, at], pick) {
  const bar = el("span", { className: "rl-near", title: `${Math.round(near * 100)} % of the pattern fits` });
  bar.style.setProperty("--near", `${Math.round(near * 100)}%`);
  const text = at ? el("button", { className: "rl-link", textContent: words, onclick: () => pick(at) }) : el("span", { textContent: words });
  return el("li", { className: fires ? "rl-fires" : "" }, bar, el("b", { textContent: `${rule}: ` }), text, place ? el("div", { className: "rl-dim", textContent: place }) : null);
}

// `ask(index)` answers for the pass at an index, -1 for the nearest that can say.
export function why(ask, pick) {
  const body = el("div", { className: "rl-why" });
  const show = async (index) => {
    const found = await ask(index);
    if (found.error) return body.replaceChildren(el("pre", { className: "rl-error", textContent: found.error }));
    if (!found.passes.length) return body.replaceChildren(el("p", { className: "rl-dim", textContent: "No pass of this pipeline is made of rules." }));
    const choose = el("select", { ariaLabel: "pass", onchange: () => show(Number(choose.value)) }, ...found.passes.map(([at, name]) => el("option", { value: String(at), textContent: `${at + 1} ${name}` })));
    choose.value = String(found.index);
    const lines = (found.reasons ?? []).map((reason) => line(reason, pick));
    const none = found.error_here ?? (lines.length ? "" : "It looks at no node like this.");
    body.replaceChildren(el("h3", { textContent: "why a pass did nothing here" }), choose, none ? el("p", { className: "rl-dim", textContent: none }) : el("ul", { className: "rl-story" }, ...lines));
  };
  const button = el("button", { className: "rl-button rl-why-button", textContent: "Why not?", title: "why a pass did nothing here", onclick: () => (button.remove(), show(-1)) });
  return el("div", {}, button, body);
}
