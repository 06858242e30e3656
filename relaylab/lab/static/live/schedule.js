// @ts-check
// The loops of a kernel under steps of one's own: typed, switched off, moved; what they make of the loops, whether the
// numbers stay, and the time beside that of the picked loops.
import { button, cross, dim, el, fold, problem, short } from "../dom.js";
import { difference } from "../panels/difference.js";

/** @type {Map<string, { text: string, on: boolean }[]>} */
const schedules = new Map(); // by kernel

/**
 * @param {string} kernel
 * @param {(steps: string) => Promise<any>} ask
 */
export function schedule(kernel, ask) {
  const steps = schedules.get(kernel) ?? [];
  schedules.set(kernel, steps);
  const list = el("ol", { className: "rl-story" });
  const shown = el("div", { className: "rl-tried" });
  const row = (step, k) => {
    const move = (by) => {
      steps.splice(k + by, 0, ...steps.splice(k, 1));
      draw();
    };
    const on = el("input", { type: "checkbox", checked: step.on, title: "take this step" });
    on.addEventListener("change", () => (step.on = on.checked));
    const field = el("input", { className: "rl-add", value: step.text, ariaLabel: "step" });
    field.addEventListener("input", () => (step.text = field.value));
    field.addEventListener("keydown", (e) => (e.stopPropagation(), e.key === "Enter" && run()));
    const up = k ? button("↑", "earlier", () => move(-1)) : null;
    const down = steps[k + 1] ? button("↓", "later", () => move(1)) : null;
    const drop = cross("remove", () => (steps.splice(k, 1), draw()));
    return el("li", {}, on, field, up, down, drop);
  };
  const draw = () => list.replaceChildren(...steps.map(row));
  const add = () => {
    steps.push({ text: "", on: true });
    draw();
    /** @type {HTMLElement} */ (list.querySelector("li:last-child .rl-add")).focus();
  };
  const bar = (name, time, most) =>
    el("div", {}, el("meter", { max: most, value: time }), ` ${short(time)} µs ${name}`);
  let turn = 0;
  const run = async () => {
    const asked = (turn += 1);
    shown.replaceChildren(dim("compiling …"));
    const taken = steps.filter(({ on, text }) => on && text.trim());
    const found = await ask(taken.map(({ text }) => text).join("\n"));
    if (asked !== turn) return; // other steps were tried, and their answer was there
    shown.dataset.tried = found.error ?? "";
    if (found.error) return shown.replaceChildren(problem(found.error));
    const [picked, own] = found.times;
    const most = Math.max(picked, own);
    shown.replaceChildren(
      bar("picked loops", picked, most),
      bar("these steps", own, most),
      ...(found.sizes ? [dim(`measured for ${found.sizes}`)] : []),
      dim(`largest error ${found.error_size.toExponential(0)} of the largest value`),
      difference(found.rows, () => {}, "loops"),
      fold(
        "all steps",
        "",
        el("dl", {}, ...found.known.flatMap(([use, says]) => [el("dt", {}, use), el("dd", {}, says)])),
      ),
    );
  };
  draw();
  const bars = el("div", {}, button("Add a step", "e.g. split i0 16", add), button("Try", "build and measure it", run));
  return fold("Schedule these loops", "rl-schedule", list, bars, shown);
}
