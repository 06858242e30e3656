// @ts-check
// Edits of the pipeline: asked of the kernel, which answers with the passes as they are then.
// Choices: docs/choices.md, The explorer.
import { button, el, heading, problem } from "../dom.js";

/** @typedef {{ how: string, index: number, value: any }} Edit */

// Where the pass that stood at a place stands after an edit; -1 if it is gone.
function afterEdit(at, { how, index, value }) {
  if (how === "remove") return at === index ? -1 : at - Number(at > index);
  if (how === "insert") return at + Number(at >= index);
  if (how !== "move") return at;
  if (at === index) return value;
  const rest = at - Number(at > index);
  return rest + Number(rest >= value);
}

// An edit that was meant for the list before another edit, for the list after it.
/**
 * @param {Edit} later
 * @param {Edit} edit
 */
function overtaken(later, edit) {
  const { how, index, value } = later;
  if (how === "insert") {
    const behind = afterEdit(index - 1, edit); // the pass behind which it is put
    later.index = index && behind >= 0 ? behind + 1 : Math.max(0, index - 1);
    return;
  }
  later.index = afterEdit(index, edit);
  if (how !== "move") return;
  const again = edit.how === "move" && edit.index === index; // a key that was pressed twice
  later.value = again ? later.index + value - index : Math.max(0, afterEdit(value, edit));
}

export class Editor {
  /**
   * @param {{ put: import("../types.js").Ask, done: (how: string) => void, renew: (rows: any) => void,
   *   read: (...children: any[]) => void, problem: (text: string) => void, count: () => number,
   *   refused: () => void, leave: () => void }} act
   *   `done` is told of an edit that can be undone, `refused` of one that was not done; `leave` comes after its reason
   */
  constructor(act) {
    this.act = act;
    /** @type {Promise<any>} */
    this.last = Promise.resolve();
    /** @type {Edit[]} */
    this.waiting = []; // edits of the list that is shown
    this.asked = 0; // how many are under way
  }

  // One after the other: what is clicked before the answer to the edit before is meant for the list that is shown.
  edit(how, index, value = null) {
    const edit = { how, index, value };
    this.waiting.push(edit);
    return this.then(() => this.put(edit));
  }

  then(run) {
    const over = () => (this.asked -= 1);
    this.asked += 1;
    this.last = this.last.then(run, run); // what went wrong before is told by itself
    this.last.then(over, over);
    return this.last;
  }

  // while edits are under way: when they are done
  get done() {
    return this.asked ? this.last : null;
  }

  // the edit as it was done; false if it was not
  async put(edit) {
    const { how, index, value } = edit;
    this.waiting.shift();
    if (index < 0 || (how === "move" && (value < 0 || value >= this.act.count()))) return false; // gone, or at the end
    const rows = await this.act.put("edit", how, index, value);
    if (!rows.error) {
      for (const later of this.waiting) overtaken(later, edit);
      this.edited(rows, how);
      return edit;
    }
    const ok = button("ok", "", this.act.leave);
    this.act.read(heading("not done"), problem(rows.error), el("p", {}, ok));
    this.act.refused();
    return false;
  }

  edited(rows, how) {
    this.act.done(how);
    this.act.renew(rows);
  }

  // undo or redo
  turn(what) {
    return this.then(async () => {
      const rows = await this.act.put("edit", what, 0);
      if (rows.error) this.act.problem(rows.error);
      else this.act.renew(rows);
    });
  }
}
