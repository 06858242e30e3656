// @ts-check
// A kernel at three levels, and LLVM's own passes over it.
import { coloured } from "./colours.js";
import { button, code, cross, dim, el, fold, problem, subheading } from "../dom.js";
import { divided } from "../explorer/room.js";
import { enlarge } from "../tabs/heat_map.js";
import { difference } from "./difference.js";

// LLVM's own passes over a kernel, asked for when they are opened; each opens to what it changed.
function passes(ask) {
  const body = el("div", {});
  const line = ([name, ms, changed, says, diff]) =>
    changed
      ? fold(
          `${name}  ${ms.toFixed(2)} ms  ${says}`,
          "rl-llvm-pass",
          difference(diff, () => {}, "llvm"),
        )
      : el("div", { className: "rl-dim rl-llvm-pass", textContent: `${name}  ${ms.toFixed(2)} ms  ${says}` });
  const open = async () => {
    if (!element.open || body.firstChild) return;
    body.append(dim("running …"));
    const found = await ask();
    body.replaceChildren(
      dim("The build runs none of them: the text goes to the code generator as it is. This is what they would do."),
      ...(found.error ? [problem(found.error)] : found.steps.map(line)),
    );
  };
  const element = fold("What LLVM's passes would do", "rl-llvm", body);
  element.addEventListener("toggle", open);
  return element;
}

// The blocks and loops of a kernel, over the whole window.
function controlFlow(ask) {
  const made = button("Control flow", "its blocks and loops, with their instructions", async () => {
    made.disabled = true; // until it is there, once is enough
    const found = await ask();
    made.disabled = false;
    if (!made.isConnected) return; // another kernel is shown by now
    if (found.error) made.replaceWith(problem(found.error));
    else enlarge(found.scene, made, true);
  });
  return made;
}

// A kernel at three levels; hovering a line lights the lines of the same part everywhere, and its node in the graph.
export function kernel(found, light, ask, flow, steps) {
  const element = el("div", { className: "rl-kernel" });
  const over = (part) => {
    element.querySelectorAll(".rl-lit").forEach((e) => e.classList.remove("rl-lit"));
    if (part < 0) return light("");
    element.querySelectorAll(`[data-part="${part}"]`).forEach((e) => e.classList.add("rl-lit"));
    light(found.parts[part]?.[1] ?? "");
  };
  /** @type {HTMLElement[]} */
  const columns = [];
  /** @type {HTMLElement[]} */
  const backs = []; // columns that were closed come back
  const reveal = (part) => {
    over(part);
    for (const column of columns) {
      const first = /** @type {HTMLElement} */ (column.querySelector(".rl-lit"));
      if (first) column.scrollTop = first.offsetTop - column.offsetTop - column.clientHeight / 3;
    }
  };
  const line = (language, [text, part]) => {
    const className = `rl-ins rl-part-${part < 0 ? "none" : part % 8}`;
    const row = el("div", { className }, ...coloured(text, language));
    row.dataset.part = String(part);
    row.addEventListener("mouseenter", () => over(part));
    return row;
  };
  const column = (title, ...children) => {
    const close = cross(`close ${title}`, () => show(false));
    const made = el("div", { className: "rl-column" }, close, subheading(title), ...children.filter(Boolean));
    const back = el("button", { className: "rl-chip rl-back", textContent: `+ ${title}`, hidden: true });
    const show = (on) => ((made.hidden = !on), (back.hidden = on));
    back.addEventListener("click", () => show(true));
    backs.push(back);
    return made;
  };
  const partChips = found.parts.map(([name], part) => {
    const chip = el("button", {
      className: `rl-chip rl-part-${part % 8}`,
      textContent: name,
      onmouseenter: () => reveal(part),
      onfocus: () => reveal(part),
    });
    chip.dataset.part = String(part);
    return chip;
  });
  columns.push(
    column(
      "Relay and loops",
      code(found.relay, "relay"),
      code(found.loops, "loops"),
      fold("Why these loops", "", code(found.why)),
      steps?.(found.name) ?? dim("Steps of a schedule can be tried in a notebook."),
    ),
    column(
      "LLVM IR",
      flow ? controlFlow(flow) : null,
      ask ? passes(ask) : null,
      ...found.llvm.map((row) => line("llvm", row)),
    ),
    column("assembly", ...found.asm.map((row) => line("assembly", row))),
  );
  const name = el("strong", { textContent: found.name });
  const coverage = dim(found.coverage.split(":")[0], "span");
  element.append(
    el("div", { className: "rl-kernel-bar" }, name, ...partChips, coverage, ...backs),
    el("div", { className: "rl-columns" }, ...divided(columns)),
  );
  return element;
}
