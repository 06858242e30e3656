// @ts-check
// All that only a kernel can do, for the explorer of a notebook.
import { codeOpener } from "./code_place.js";
import { Branches } from "./branches.js";
import { LivePane } from "./live_pane.js";
import { OperatorTable } from "./operator_table.js";
import { schedule } from "./schedule.js";
import { Tools } from "./tools.js";
import { Ways } from "./ways.js";
import { why } from "./why.js";

/** @param {import("./tools.js").Act} act */
export function kernelTools(act) {
  const ways = new Ways(act);
  // of a node at a stage: the pass last asked about; the panel is built anew with every picture
  const asked = new Map();
  const reasons = (id) => {
    const { shown } = act.stages;
    const here = `${shown} ${id}`;
    const ask = (index) => (asked.set(here, index), act.ask("why", shown, id, index));
    return why(ask, act.pick, asked.get(here));
  };
  return {
    open: codeOpener(act.ask, act.say),
    schedule,
    buttons: new Tools(act).buttons,
    tabs: { operators: new OperatorTable(act), branches: new Branches(act), live: new LivePane(act) },
    beside: (id) => [reasons(id), ways.beside(id)],
    more: () => ways.more(),
  };
}
