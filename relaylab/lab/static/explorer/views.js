// @ts-check
// Places to come back to: stage, selection, camera, folding, overlay and search under a name.
import { button, cross, el, heading, link } from "../dom.js";

const PLACE = ["before", "after", "compare", "pane", "selected"];

// A field for a name; Enter keeps it. The keys of the explorer rest in it.
export function nameField(placeholder, label, keep) {
  const field = el("input", { className: "rl-add", placeholder, ariaLabel: label });
  const run = () => field.value.trim() && keep(field.value.trim());
  field.addEventListener("keydown", (e) => (e.stopPropagation(), e.key === "Enter" && run()));
  return { field, run };
}

export class Views {
  /**
   * @param {{ get: (name: string) => any, set: (name: string, value: any) => void, look: () => object,
   *   restore: (name: string, view: any) => void, moving: () => void, read: (...children: any[]) => void,
   *   more: () => Node[] }} act  `look` and `restore` know what is seen and is no choice
   */
  constructor(act) {
    this.act = act;
  }

  get known() {
    return this.act.get("views") ?? {};
  }

  keep(name) {
    const place = Object.fromEntries(PLACE.map((key) => [key, this.act.get(key)]));
    this.act.set("views", { ...this.known, [name]: { ...place, ...this.act.look() } });
    this.show();
  }

  drop(name) {
    const { [name]: gone, ...rest } = this.known;
    this.act.set("views", rest);
    this.show();
  }

  go(name) {
    const view = this.known[name];
    this.act.moving();
    for (const key of PLACE) this.act.set(key, view[key]);
    this.act.restore(name, view);
  }

  show() {
    const { field, run } = nameField("keep this view as …", "name of a view", (name) => this.keep(name));
    const line = (name) => {
      const open = link(name, () => this.go(name));
      open.classList.add("rl-view-name");
      const drop = cross(`forget ${name}`, () => this.drop(name));
      return el("li", {}, open, " ", drop);
    };
    const list = el("ul", { className: "rl-story" }, ...Object.keys(this.known).map(line));
    const keep = button("Keep", "stage, selection, place, folding, overlay, search", run);
    this.act.read(heading("views"), list, field, keep, ...this.act.more());
    field.focus();
  }
}
