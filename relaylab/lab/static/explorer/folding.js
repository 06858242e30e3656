// @ts-check
// Which groups are drawn as one card each, and whether blocks that repeat are.
import { count } from "../dom.js";

const REPEATS = "×"; // among what is folded: all repeated blocks

// The group that a part of a picture is, or is in; empty for none.
export function groupOf(picture, id) {
  const known = picture?.groups.some(([g]) => g === id);
  return (known ? id : picture?.scenes.at(-1).nodes.find(([n]) => n === id)?.[1]) || "";
}

export class Folding {
  /** @param {{ picture: () => any, selected: () => string, pick: (id: string) => void, refresh: () => void }} act */
  constructor(act) {
    this.act = act;
    /** @type {Set<string>} */
    this.closed = new Set();
  }

  // as the question for a picture names it
  get key() {
    return [...this.closed].sort().join("\n");
  }

  get repeated() {
    return this.closed.has(REPEATS);
  }

  // what is folded, in words
  get words() {
    const groups = this.closed.size - (this.repeated ? 1 : 0);
    return [groups ? count(groups, "group") : "", this.repeated ? "repeated blocks" : ""].filter(Boolean).join(", ");
  }

  // the group of the selected node
  collapse() {
    const { picture, selected, pick, refresh } = this.act;
    const group = groupOf(picture(), selected());
    if (!group) return;
    this.closed.add(group);
    pick(group);
    refresh();
  }

  // every kernel
  collapseAll() {
    for (const [id, , kind] of this.act.picture()?.groups ?? []) if (kind === "primitive") this.closed.add(id);
    this.act.refresh();
  }

  repeats() {
    if (!this.closed.delete(REPEATS)) this.closed.add(REPEATS);
    this.act.refresh();
  }

  expand() {
    this.closed.clear();
    this.act.refresh();
  }
}
