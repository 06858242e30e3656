// @ts-check
// Edits of the pipeline: asked of the kernel, which answers with the passes as they are then.
import { button, el, heading, problem } from "../dom.js";

export class Editor {
  /**
   * @param {{ put: import("../types.js").Ask, done: (how: string) => void, renew: (rows: any) => void,
   *   read: (...children: any[]) => void, problem: (text: string) => void,
   *   refused: () => void, leave: () => void }} act
   *   `done` is told of an edit that can be undone, `refused` of one that was not done; `leave` comes after its reason
   */
  constructor(act) {
    this.act = act;
  }

  // whether it was done
  async edit(how, index, value = null) {
    const rows = await this.act.put("edit", how, index, value);
    if (!rows.error) return (this.edited(rows, how), true);
    const ok = button("ok", "", this.act.leave);
    this.act.read(heading("not done"), problem(rows.error), el("p", {}, ok));
    this.act.refused();
  }

  edited(rows, how) {
    this.act.done(how);
    this.act.renew(rows);
  }

  // undo or redo
  async turn(what) {
    const rows = await this.act.put("edit", what, 0);
    if (rows.error) this.act.problem(rows.error);
    else this.act.renew(rows);
  }
}
