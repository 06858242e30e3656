// @ts-check
// What a saved page knows: pictures, differences, facts and kernels, unfolded from the numbers in it
// when they are asked for.
import { SavedPictures } from "./saved_pictures.js";
import { SavedStages, chunks } from "./saved_stages.js";

export class SavedPage {
  constructor(data) {
    this.data = data;
    this.stages = new SavedStages(data);
    this.pictures = new SavedPictures(data, this.stages);
  }

  // The answer to a question of the explorer.
  ask(what, args) {
    if (this.data.held.includes(what)) return this[what](...args);
    return this.data.answers[[what, ...args].join("\n")] ?? this.missing(what);
  }

  missing(what) {
    return {
      error:
        `This is not in the saved page: ${this.data.missing[what] ?? "it has to be computed"}. ` +
        "Open the explorer in a notebook to see it.",
    };
  }

  kernels(stop) {
    return this.stages.once(
      "kernels",
      stop,
      () =>
        new Map([...chunks(this.data.code.homes[stop] ?? [], 2)].map(([id, kernel]) => [this.data.ids[id], kernel])),
    );
  }

  node(frame, id) {
    const home = this.stages.home(frame, id);
    if (/^(stretch|equal):/.test(id)) return { error: "These nodes are far from every change, or equal. Press e." };
    if (home === undefined) return { error: `There is no node ${id} up to this stage.` };
    const { facts, story } = this.stages.stage(home).get(id);
    const about = this.data.missing.node ? { text: `(${this.data.missing.node})` } : {};
    return {
      ...this.stages.facts(facts),
      ...about,
      id,
      frame: home,
      role: "",
      note: "",
      story: this.data.values[story],
      kernel: this.kernels(home).has(id),
    };
  }

  parts(frame) {
    const words = ([id, { facts }]) => ({ id, role: "", note: "", ...this.stages.facts(facts) });
    return { parts: [...this.stages.stage(frame)].map(words) };
  }

  kernel(frame, id) {
    const { code, lines } = this.data;
    const home = this.stages.home(frame, id);
    const number = home === undefined ? undefined : this.kernels(home).get(id);
    if (number === undefined)
      return {
        error: code.error ?? "No machine code was made for this node: it is in no fused kernel of the last stage.",
      };
    const text = (list) => [...chunks(list, 2)].map(([line, part]) => [lines[line][0], part]);
    const found = code.kernels[number];
    return found.error ? found : { ...found, llvm: text(found.llvm), asm: text(found.asm) };
  }

  // what stands for a node in other stages, or what it was made from
  counterparts(frame, id, others) {
    return { ids: Object.fromEntries(others.map((other) => [other, this.counterpart(frame, id, other)])) };
  }

  counterpart(frame, id, other) {
    const way = this.stages.stops.filter((s) => s >= Math.min(frame, other) && s <= Math.max(frame, other));
    if (other < frame) way.reverse();
    let at = [id];
    for (let i = 1; i < way.length; i++) {
      const [from, to] = [way[i - 1], way[i]];
      const next = (node) =>
        this.stages.stage(to).has(node)
          ? [node]
          : to < from
            ? (this.origins(from).get(node) ?? [])
            : (this.made(to).get(node) ?? []);
      at = [...new Set(at.flatMap(next))].filter((node) => this.stages.stage(to).has(node));
    }
    return at;
  }

  origins(stop) {
    const { ids, stages } = this.data;
    return this.stages.once(
      "origins",
      stop,
      () => new Map(Object.entries(stages[stop].origins).map(([id, from]) => [ids[id], from.map((f) => ids[f])])),
    );
  }

  // for what a node was made from: the nodes that were made from it
  made(stop) {
    return this.stages.once("made", stop, () => {
      const found = new Map();
      for (const [id, from] of this.origins(stop))
        for (const old of from) found.set(old, [...(found.get(old) ?? []), id]);
      return found;
    });
  }

  // ---- text

  text(a, b) {
    const { ids, lines, marks, texts } = this.data;
    const found = texts[`${a} ${b}`];
    if (!found) return this.missing("text");
    const row = ([number, mark]) =>
      marks[mark] === "⋮"
        ? ["⋮", -number, "", []]
        : [marks[mark], lines[number][0], lines[number][1] < 0 ? "" : ids[lines[number][1]], lines[number][2] ?? []];
    return { rows: [...chunks(found, 2)].map(row) };
  }

  picture(a, b, style, closed) {
    return this.pictures.picture(a, b, style, closed) ?? this.missing("picture");
  }
}
