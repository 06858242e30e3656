// @ts-check
// A text to type in, in colours: what is typed stands in a field whose letters cannot be seen, over lines that can.
import { el } from "../dom.js";
import { codeTokens } from "../panels/colours.js";

const painted = ([kind, text]) => (kind ? el("span", { className: `rl-t-${kind}`, textContent: text }) : text);

export class Paper {
  /** @param {() => void} typed */
  constructor(typed) {
    this.typed = typed;
    /** @type {string[]} */
    this.known = []; // the lines that are drawn
    this.lines = el("pre", { className: "rl-paper-lines", "aria-hidden": "true", translate: false });
    this.field = el("textarea", { spellcheck: false, wrap: "off", ariaLabel: "the program as Relay text" });
    this.field.addEventListener("input", () => (this.paint(), typed()));
    this.field.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.field.blur();
      e.stopPropagation(); // keys of the explorer are letters here, and undo is that of the field
    });
    this.element = el("div", { className: "rl-typing" }, el("div", {}, this.lines, this.field));
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.paint();
  }

  // Draws the lines that are not what they were.
  paint() {
    /** @type {[string, string][][]} */
    const lines = [[]];
    for (const [kind, part] of codeTokens(this.text, "relay"))
      part.split("\n").forEach((piece, k) => {
        if (k) lines.push([]);
        if (piece) lines[lines.length - 1].push([kind, piece]);
      });
    const { children } = this.lines;
    const now = lines.map((line) => line.flat().join("\0"));
    now.forEach((line, k) => {
      if (line !== this.known[k])
        (children[k] ?? this.lines.appendChild(el("div"))).replaceChildren(...lines[k].map(painted));
    });
    while (children.length > now.length) this.lines.lastChild?.remove();
    this.known = now;
  }

  // Underlines what is wrong, and says why at the end of the line.
  /** @param {import("../questions.js").TextFault[]} faults */
  mark(faults) {
    this.lines.querySelectorAll(".rl-under").forEach((e) => e.remove());
    this.field.setAttribute("aria-invalid", String(faults.length > 0));
    const text = this.text.split("\n");
    for (const { line, column, end_line: last, end_column: end, message } of faults) {
      const shown = [...text[line - 1]]; // columns are characters, also those that are two units long
      const part = (from, to = shown.length) => shown.slice(from, to).join("");
      const upto = last === line ? end : shown.length;
      const under = el("span", { className: "rl-wrong", textContent: part(column - 1, upto) || " " });
      const [rest, says] = [part(upto), el("span", { className: "rl-says", textContent: message })];
      this.lines.children[line - 1].append(
        el("span", { className: "rl-under" }, part(0, column - 1), under, rest, says),
      );
    }
  }

  /** @param {import("../questions.js").TextFault} fault */
  go({ line, column }) {
    const lines = this.text.split("\n").slice(0, line);
    lines.push([...lines.pop()].slice(0, column - 1).join(""));
    const start = lines.join("\n").length;
    this.field.focus();
    this.field.setSelectionRange(start, start);
    this.lines.children[line - 1]?.scrollIntoView({ block: "nearest" });
  }
}
