// @ts-check
// A pass that stopped the pipeline: what it raised, the line of code, the calls that led there, a reproducer.
import { button, code, dim, el, fold, heading, problem, subheading } from "../dom.js";

const call = ([place, name, text]) =>
  el("li", {}, el("code", { textContent: place }), ` in ${name}`, text ? code(text) : null);

// The calls of one side, relaylab's or the user's, in a row; relaylab's are folded.
function calls(trace) {
  const runs = [];
  for (const line of trace) {
    if (runs.at(-1)?.[0][3] === line[3]) runs.at(-1).push(line);
    else runs.push([line]);
  }
  let start = 1;
  return runs.map((run) => {
    const list = el("ol", { start }, ...run.map(call));
    start += run.length;
    if (!run[0][3]) return list;
    return fold(`${run.length} in relaylab`, "", list);
  });
}

/** @param {import("../questions.js").FailureFacts} found */
export function failure(found) {
  const title = `${found.name} ${found.raised ? `raised ${found.kind}` : "left a broken program"}`;
  const program = fold("the program", "", code(found.reproducer));
  const copy = () => {
    navigator.clipboard?.writeText(found.reproducer);
    program.open = true;
  };
  const trace = found.trace.length ? fold("traceback", "rl-trace-back", ...calls(found.trace)) : null;
  return el(
    "div",
    { className: "rl-failure" },
    heading(title),
    problem(found.message),
    found.at ? el("p", {}, "at ", el("code", { textContent: found.at })) : null,
    found.code ? code(found.code) : null,
    trace,
    subheading("a program that shows it"),
    button("Copy reproducer", "a Python program that runs this pass on this program", copy),
    program,
    dim("The picture is the program that the pass got; passes after it did not run."),
  );
}
