// @ts-check
// What was done, to take it back and do it again: edits of the pipeline, and moves from view to view,
// searches and folds among them.
// Choices: docs/choices.md, The explorer.

const VIEW = ["before", "after", "pane", "compare"];
const QUICK = 300; // milliseconds: moves in quicker succession (a handle that is dragged) are one

/** @typedef {{ view?: Record<string, any>, edit?: string }} Entry */

export class Undo {
  /**
   * @param {{ get: (name: string) => any, set: (name: string, value: any) => void, edit: (what: string) => any,
   *   refresh: () => void, say: (text: string) => void, changed: () => void,
   *   look?: () => any, restore?: (look: any) => void, editing?: () => Promise<any> | null }} act
   *   a look is what is searched, folded and coloured; `editing` ends when what is edited just now is
   */
  constructor(act) {
    this.act = act;
    /** @type {Entry[]} */
    this.past = [];
    /** @type {Entry[]} */
    this.future = [];
    this.last = 0;
    this.sort = "";
  }

  view() {
    const look = this.act.look ? { look: this.act.look() } : {};
    return { ...Object.fromEntries(VIEW.map((name) => [name, this.act.get(name)])), ...look };
  }

  // the view is about to change
  moving(sort = "stage") {
    const now = Date.now();
    if (now - this.last > QUICK || sort !== this.sort) this.keep({ view: this.view() });
    [this.last, this.sort] = [now, sort];
  }

  // the pipeline was edited
  edited(how) {
    this.last = 0;
    this.keep({ edit: how });
  }

  keep(entry) {
    this.past.push(entry);
    this.future.length = 0;
    this.act.changed();
  }

  back() {
    return this.turn(this.past, this.future, "undo");
  }

  forward() {
    return this.turn(this.future, this.past, "redo");
  }

  turn(from, to, what) {
    const editing = this.act.editing?.();
    if (editing) return editing.then(() => this.turn(from, to, what)); // an edit is known once it is done
    const entry = from.pop();
    if (!entry) return this.act.say(`nothing to ${what}`);
    to.push(entry.view ? { view: this.view() } : entry);
    this.act.changed();
    this.last = 0;
    if (!entry.view) return this.act.edit(what);
    const { look, ...view } = entry.view;
    for (const [name, value] of Object.entries(view)) this.act.set(name, value);
    if (look) this.act.restore(look);
    this.act.refresh();
  }

  // whether a key was for us
  key(e) {
    const name = e.key.toLowerCase();
    if (!(e.ctrlKey || e.metaKey) || !["z", "y"].includes(name)) return false;
    if (name === "z" && !e.shiftKey) this.back();
    else this.forward();
    return true;
  }
}
