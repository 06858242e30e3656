// @ts-check
// Which groups are drawn as one card each, whether blocks that repeat are, and whether only what changed is drawn.
import { count, recall, remember } from "../dom.js";

const REPEATS = "×"; // among what is folded: all repeated blocks
const CHANGES = "Δ"; // what is far from every change
const SIDEWAYS = "→"; // the picture runs from left to right
const OPENED = "+"; // before an id: shown all the same
const WHOLE = "relaylab.whole"; // whether whole pictures were wished last
const STANDIN = /^(stretch|repeat|block|equal):/; // parts of pictures, not of programs

const TURNED = "relaylab.direction";
const MARKS = /^[×Δ+⌖→]/; // what is folded and no group
const HOPS = 2;
const NEAR = "⌖"; // among what is folded: all but what is so many edges from a node

// what is looked at closely, if anything is: a node and how many edges around it
export function nearOf(closed) {
  const [hops, ...id] =
    [...closed]
      .find((c) => c.startsWith(NEAR))
      ?.slice(1)
      .split(" ") ?? [];
  return hops ? { hops: Number(hops), id: id.join(" ") } : null;
}

// The group that a part of a picture is, or is in; empty for none.
export function groupOf(picture, id) {
  const known = picture?.groups.some(([g]) => g === id);
  return (known ? id : picture?.scenes.at(-1).nodes.find(([n]) => n === id)?.[1]) || "";
}

export class Folding {
  /** @param {{ picture: () => any, selected: () => string, pick: (id: string) => void, refresh: () => void,
   *   moving?: () => void, closer?: () => void, direction?: () => string | null,
   *   drawn?: (run: () => void) => void }} act
   *   `drawn` runs something once the picture that is on its way is there: what is folded are groups of it;
   *   a direction, `LR` or `TB`; empty for the one that was chosen last, null for pictures that have but one */
  constructor(act) {
    this.act = act;
    /** @type {Set<string>} */
    this.closed = new Set();
    if (!recall(WHOLE)) this.closed.add(CHANGES);
    const direction = act.direction?.();
    if ((direction === "" ? recall(TURNED) : direction) === "LR") this.closed.add(SIDEWAYS);
  }

  // as the question for a picture names it: the selected node is always shown, with what is around it
  get key() {
    const id = this.act.selected();
    const shown = this.brief && !this.near && id && !STANDIN.test(id) ? [OPENED + id] : [];
    return [...this.closed, ...shown].sort().join("\n");
  }

  get repeated() {
    return this.closed.has(REPEATS);
  }

  get brief() {
    return this.closed.has(CHANGES);
  }

  // what is folded, in words
  get words() {
    const groups = [...this.closed].filter((id) => !MARKS.test(id)).length;
    return [groups ? count(groups, "group") : "", this.repeated ? "repeated blocks" : ""].filter(Boolean).join(", ");
  }

  get near() {
    return nearOf(this.closed);
  }

  // only what is so many edges from a node; without one all again
  focus(id, hops = HOPS) {
    this.act.moving?.();
    for (const line of this.closed) if (line.startsWith(NEAR)) this.closed.delete(line);
    if (id) this.closed.add(`${NEAR}${Math.max(0, hops)} ${id}`);
    this.act.closer?.();
    this.act.refresh();
  }

  // one edge more, or less
  widen(by) {
    const { near } = this;
    if (near) this.focus(near.id, near.hops + by);
  }

  // the group of the selected node, or of another
  collapse(id = this.act.selected()) {
    this.drawn(() => this.fold(id));
  }

  fold(id) {
    const { picture, pick, refresh } = this.act;
    const group = groupOf(picture(), id);
    if (!group) return;
    this.act.moving?.();
    this.closed.add(group);
    pick(group);
    refresh();
  }

  // every kernel; once they are, every function
  collapseAll() {
    this.drawn(() => {
      this.act.moving?.();
      const open = (this.act.picture()?.groups ?? []).filter(([id]) => !this.closed.has(id));
      const kernels = open.filter(([, , kind]) => kind === "primitive");
      for (const [id] of kernels.length ? kernels : open) this.closed.add(id);
      this.act.refresh();
    });
  }

  drawn(run) {
    if (this.act.drawn) this.act.drawn(run);
    else run();
  }

  repeats() {
    this.act.moving?.();
    if (!this.closed.delete(REPEATS)) this.closed.add(REPEATS);
    this.act.refresh();
  }

  // a card: what is in it; nothing selected: everything that is folded
  expand() {
    if (this.open(this.act.selected())) return;
    this.level("operator");
  }

  // how far pictures are unfolded: functions as cards, what is in functions as cards, everything
  level(name) {
    this.drawn(() => {
      this.act.moving?.();
      const groups = this.act.picture()?.groups ?? [];
      const folded = groups.filter(([, , , parent]) => (parent ? name === "function" : name === "model"));
      const marks = [...this.closed].filter((id) => [CHANGES, SIDEWAYS].includes(id));
      this.closed = new Set([...marks, ...folded.map(([id]) => id)]);
      this.act.refresh();
    });
  }

  // from left to right, or from top to bottom; that is remembered
  turned() {
    this.act.moving?.();
    if (!this.closed.delete(SIDEWAYS)) this.closed.add(SIDEWAYS);
    remember(TURNED, this.closed.has(SIDEWAYS) ? "LR" : "TB");
    this.act.closer?.();
    this.act.refresh();
  }

  // what a click on the sign of a box or card does, and the sign
  turn(id) {
    if (!this.open(id)) this.collapse(id);
  }

  sign({ kind, id }) {
    if (kind === "group") return STANDIN.test(id) ? "" : "−";
    return this.closed.has(id) || STANDIN.test(id) ? "+" : "";
  }

  // a card that is unfolded alone; whether it was one
  open(id) {
    const made = STANDIN.test(id) && !this.closed.has(OPENED + id);
    if (!made && !this.closed.has(id)) return false;
    this.act.moving?.();
    if (made) this.closed.add(OPENED + id);
    else this.closed.delete(id);
    this.act.refresh();
    return true;
  }

  // what was opened in one picture is folded in the next
  forget() {
    for (const id of this.closed) if (id[0] === OPENED) this.closed.delete(id);
  }

  // everything, or only what changed; that is remembered
  changes() {
    this.act.moving?.();
    this.forget();
    if (!this.closed.delete(CHANGES)) this.closed.add(CHANGES);
    remember(WHOLE, !this.brief);
    this.act.refresh();
  }
}
