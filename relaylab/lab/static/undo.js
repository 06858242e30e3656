// What was done, to take it back and do it again: edits of the pipeline, and moves from view to view.
import { el } from "./dom.js";

const VIEW = ["before", "after", "pane", "compare"];
const QUICK = 300; // milliseconds: moves in quicker succession (a handle that is dragged) are one

export class Undo {
  constructor(host, act) {
    Object.assign(this, { host, act, past: [], future: [], last: 0 }); // act: { edit(what), refresh(), say(text) }
    const button = (text, title, run) => el("button", { className: "rl-button", textContent: text, title, disabled: true, onclick: run });
    this.buttons = [button("↶", "undo (Ctrl Z)", () => this.back()), button("↷", "redo (Ctrl Shift Z)", () => this.forward())];
  }

  view() {
    return Object.fromEntries(VIEW.map((name) => [name, this.host.get(name)]));
  }

  // the view is about to change
  moving() {
    const now = Date.now();
    if (now - this.last > QUICK) this.keep({ view: this.view() });
    this.last = now;
  }

  // the pipeline was edited
  edited(how) {
    this.last = 0;
    this.keep({ edit: how });
  }

  keep(entry) {
    this.past.push(entry);
    this.future.length = 0;
    this.draw();
  }

  draw() {
    [this.past, this.future].forEach((list, i) => (this.buttons[i].disabled = !list.length));
  }

  back() {
    return this.turn(this.past, this.future, "undo");
  }

  forward() {
    return this.turn(this.future, this.past, "redo");
  }

  async turn(from, to, what) {
    const entry = from.pop();
    if (!entry) return this.act.say(`nothing to ${what}`);
    to.push(entry.view ? { view: this.view() } : entry);
    this.draw();
    this.last = 0;
    if (!entry.view) return this.act.edit(what);
    for (const [name, value] of Object.entries(entry.view)) this.host.set(name, value);
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
