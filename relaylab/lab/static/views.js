// Places to come back to, ways through the picture, and a part of it as a program.
import { choice, el } from "./dom.js";

const PLACE = ["before", "after", "compare", "pane", "selected"];

export class Views {
  constructor(explorer) {
    this.explorer = explorer;
  }

  button(text, title, onclick) {
    return el("button", { className: "rl-button", textContent: text, title, onclick });
  }

  // ---- named views

  now() {
    const { host, overlay, closed, field, canvases } = this.explorer;
    const [canvas] = canvases;
    return { ...Object.fromEntries(PLACE.map((name) => [name, host.get(name)])), overlay, closed: [...closed], query: field.value, camera: canvas ? [canvas.k, canvas.x, canvas.y] : null };
  }

  keep(name) {
    const { host } = this.explorer;
    host.set("views", { ...(host.get("views") ?? {}), [name]: this.now() });
    this.show();
  }

  drop(name) {
    const { [name]: gone, ...rest } = this.explorer.host.get("views") ?? {};
    this.explorer.host.set("views", rest);
    this.show();
  }

  go(name) {
    const { explorer } = this;
    const view = explorer.host.get("views")[name];
    explorer.undo.moving();
    for (const key of PLACE) explorer.host.set(key, view[key]);
    Object.assign(explorer, { closed: new Set(view.closed), overlay: view.overlay, step: -1 });
    explorer.overlays.value = view.overlay;
    explorer.field.value = view.query;
    explorer.arrive = () => {
      const [canvas] = explorer.canvases;
      if (!canvas || !view.camera) return;
      [canvas.k, canvas.x, canvas.y] = view.camera;
      canvas.touched = true;
      canvas.apply();
      explorer.root.dataset.view = name;
    };
    explorer.refresh();
  }

  show() {
    const { host } = this.explorer;
    const names = Object.keys(host.get("views") ?? {});
    const field = el("input", { className: "rl-add", placeholder: "keep this view as …", ariaLabel: "name of a view" });
    const keep = () => field.value.trim() && this.keep(field.value.trim());
    field.addEventListener("keydown", (e) => (e.stopPropagation(), e.key === "Enter" && keep()));
    const line = (name) => el("li", {}, el("button", { className: "rl-link rl-view-name", textContent: name, onclick: () => this.go(name) }), " ", el("button", { className: "rl-tool rl-drop", textContent: "×", title: `forget ${name}`, onclick: () => this.drop(name) }));
    const figures = ["MACs", "bytes", "time", ...(host.get("overlays") ?? [])];
    const ways = host.live ? [el("h3", { textContent: "critical path by" }), choice("figure", figures.map((f) => [f, f]), "", (f) => this.critical(f)).group, el("h3", { textContent: "what the search finds" }), this.extractor(() => this.found())] : [];
    this.explorer.read(el("h2", { textContent: "views" }), el("ul", { className: "rl-story" }, ...names.map(line)), field, this.button("Keep", "stage, selection, place, folding, overlay, search", keep), ...ways);
    field.focus();
  }

  // ---- ways

  // what a panel about a node offers beside it
  beside(id) {
    const { from } = this;
    const start = this.button("Path from here", "then select the node where it ends", () => ((this.from = id), this.explorer.say(`a path from ${id}: select where it ends`), this.explorer.about(id)));
    const end = from && from !== id ? this.button(`Path from ${from}`, "the shortest way along the edges", () => this.path(from, id)) : null;
    return el("div", { className: "rl-ways" }, start, end, this.extractor(() => [id]));
  }

  async path(a, b) {
    this.trace("path", await this.explorer.ask("path", this.explorer.settled(this.explorer.after), a, b));
  }

  async critical(figure) {
    const found = await this.explorer.ask("critical", this.explorer.settled(this.explorer.after), figure);
    if (found.frame !== undefined && found.frame !== this.explorer.settled(this.explorer.after)) {
      this.explorer.arrive = () => this.trace("critical path", found);
      return this.explorer.go(found.frame, found.frame);
    }
    this.trace("critical path", found);
  }

  trace(title, found) {
    const { explorer } = this;
    if (found.error) return explorer.read(el("pre", { className: "rl-error", textContent: found.error }));
    explorer.canvases.forEach((c) => c.glow(found.ids));
    const line = ([id, name, type]) => el("li", {}, el("button", { className: "rl-link", textContent: name || id, onclick: () => explorer.pick(id) }), el("span", { className: "rl-dim", textContent: ` ${type}` }));
    explorer.read(el("h2", { textContent: title }), el("p", { textContent: found.text }), el("ol", { className: "rl-story rl-trace" }, ...found.nodes.map(line)));
    explorer.say(found.text);
  }

  // ---- a part as a program

  found() {
    return [...new Set(this.explorer.canvases.flatMap((c) => c.hits ?? []))];
  }

  extractor(ids) {
    const field = el("input", { className: "rl-add", value: "part", size: 8, ariaLabel: "name of the module" });
    field.addEventListener("keydown", (e) => e.stopPropagation());
    return el("span", { className: "rl-extract" }, this.button("Extract as", "make a module of it, under this name in the notebook", () => this.extract(ids(), field.value.trim())), field);
  }

  async extract(ids, name) {
    const { explorer } = this;
    if (!ids.length) return explorer.say("search for what is to be extracted first");
    const found = await explorer.host.ask("extract", [explorer.settled(explorer.after), ids, name]);
    if (found.error) return explorer.read(el("pre", { className: "rl-error", textContent: found.error }));
    const code = found.code ? [this.button("copy", "copy the code", () => navigator.clipboard?.writeText(found.code)), el("pre", { className: "rl-code", textContent: found.code })] : [el("p", { textContent: "It has large constants and is not shown." })];
    explorer.read(el("h2", { textContent: `${found.name} is a module now` }), el("p", { textContent: `inputs: ${found.inputs.join(", ") || "none"}` }), ...code);
    explorer.say(`${found.name} is a module now`);
    explorer.root.dataset.extracted = found.name;
  }
}
