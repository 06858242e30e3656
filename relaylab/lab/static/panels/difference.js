// @ts-check
// The difference of two texts, line by line, with the words that differ.
import { count, el } from "../dom.js";
import { coloured } from "./colours.js";

// A difference of two texts in a language, line by line.
export function difference(rows, pick, language = "relay") {
  const names = { "+": "rl-plus", "-": "rl-minus", "⋮": "rl-gap" };
  const line = ([mark, text, id, words]) => {
    const gap = mark === "⋮";
    const made = el(
      "div",
      { className: `rl-line ${names[mark] ?? ""}`, role: "row" },
      el("span", { className: "rl-mark", role: "cell", textContent: gap ? "" : mark }),
      el("span", { role: "cell" }, ...(gap ? ["⋮ ", count(text, "equal line")] : coloured(text, language, words))),
    );
    if (!id) return made;
    made.dataset.id = id;
    made.addEventListener("click", () => pick(id));
    return made;
  };
  return el("div", { className: "rl-diff", role: "table", "aria-label": "text difference" }, ...rows.map(line));
}

// Lights the lines of a node; gives the first.
export function lightLines(element, id) {
  const lines = [...element.querySelectorAll(".rl-line")];
  for (const line of lines) line.classList.toggle("rl-lit", Boolean(id) && line.dataset.id === id);
  return lines.find((line) => line.classList.contains("rl-lit"));
}
