// @ts-check
// The bar at the top, one row: title, undo, search, panes, styles, overlays and tools; what has no room is in a menu.
import { button, choice, el } from "../dom.js";

const PANES = [
  ["graph", "Graph"],
  ["text", "Text"],
  ["both", "Both"],
  ["code", "Code", "from Relay to assembly"],
  ["several", "Panes", "two to four stages beside each other"],
  ["heat", "Heat", "the whole pipeline: which pass changed what"],
  ["operators", "Table", "operators by MACs, bytes, time"],
  ["branches", "Compare", "this pipeline with another"],
  ["live", "Edit", "the program as text to type in, and what that changes"],
];
const LEVELS = [
  ["model", "Model", "each function as one card (1)"],
  ["function", "Function", "kernels and inner functions as cards (2)"],
  ["operator", "Operator", "everything unfolded (3)"],
];
const STYLES = [
  ["merged", "Merged"],
  ["both", "Side by side"],
];

function named(made, name) {
  made.setAttribute("aria-label", name);
  return made;
}

export class Toolbar {
  /**
   * @param {{ tabs: string[], get: (name: string) => any, choose: (name: string, value: string) => void,
   *   back: () => void, forward: () => void, views: () => void, help: () => void,
   *   search: Element[], field: HTMLElement, overlay: HTMLElement, tools: HTMLElement[], list: () => void,
   *   panel: () => void, focus: () => void, full: () => void, map: () => void,
   *   level: (name: string) => void, turned: (() => void) | null }} act
   */
  constructor(act) {
    const { get, choose } = act;
    const offered = PANES.filter(([name], at) => at < 4 || act.tabs.includes(name));
    this.names = offered.map(([name]) => name);
    this.panes = choice("what to see", offered, get("pane"), (v) => choose("pane", v));
    this.styles = choice("how to compare", STYLES, get("compare"), (v) => choose("compare", v));
    this.undo = [button("↶", "undo (Ctrl Z)", act.back), button("↷", "redo (Ctrl Shift Z)", act.forward)];
    this.title = el("strong", { className: "rl-title" });
    const levels = choice("how far the picture is unfolded", LEVELS, "", act.level).group;
    const picture = [
      button("Focus", "only what is near the selected node (F)", act.focus),
      button("Map", "a map of the whole picture (m)", act.map),
      ...(act.turned ? [button("Turn", "from left to right, or from top to bottom (h)", act.turned)] : []),
    ];
    this.items = [
      this.panes.group,
      act.overlay,
      this.styles.group,
      el("span", { className: "rl-undo" }, ...this.undo),
      ...act.tools,
      button("Views", "named views to come back to, paths, parts", act.views),
      ...picture,
      levels,
    ];
    // they mean something where a picture of the stages is
    this.ofPicture = [...this.styles.group.children, act.overlay, ...picture, ...levels.children, act.field];
    this.place = el("span", { className: "rl-items" });
    this.menu = el("div", { className: "rl-menu" });
    this.more = el(
      "details",
      { className: "rl-more" },
      el("summary", { className: "rl-button", textContent: "⋯", title: "more tools", ariaLabel: "more tools" }),
      this.menu,
    );
    this.element = el(
      "header",
      { className: "rl-bar", role: "group", ariaLabel: "tools" },
      named(button("☰", "fold or show the list of passes", act.list), "list of passes"),
      this.title,
      ...act.search,
      this.place,
      this.more,
      button("?", "keys", act.help),
      named(button("◨", "fold or show the panel", act.panel), "panel"),
      named(button("Full", "full screen (z)", act.full), "full screen"),
    );
    this.menu.addEventListener("click", (e) => {
      if (e.target instanceof HTMLButtonElement) this.more.open = false;
    });
    const away = (e) => this.more.contains(e.target) || (this.more.open = false);
    // "toggle" comes a frame after it opened: too late for a click that follows at once
    this.more.firstElementChild.addEventListener("click", () => document.addEventListener("pointerdown", away, true));
    this.more.addEventListener("toggle", () => {
      if (!this.more.open) document.removeEventListener("pointerdown", away, true);
    });
    this.more.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || !this.more.open) return;
      e.stopPropagation();
      this.more.open = false;
    });
    const room = new ResizeObserver(() => this.arrange());
    [this.element, ...act.search].forEach((part) => room.observe(part)); // what is found needs room beside the field
    this.place.append(...this.items);
    this.marks(false, false);
  }

  // the last go into the menu first
  arrange() {
    const { element, place, menu, more, items } = this;
    if (!element.clientWidth) return;
    const held = items.find((item) => item.contains(document.activeElement)) ? document.activeElement : null;
    place.append(...items);
    more.hidden = true;
    element.classList.remove("rl-wraps");
    for (let at = items.length - 1; at >= 0 && element.scrollWidth > element.clientWidth; at -= 1) {
      more.hidden = false;
      menu.prepend(items[at]);
    }
    element.classList.toggle("rl-wraps", element.scrollWidth > element.clientWidth); // the pane is very narrow
    if (held instanceof HTMLElement && more.hidden) held.focus({ preventScroll: true });
  }

  // whether there is something to take back, or to do again
  marks(back, forward) {
    [this.undo[0].disabled, this.undo[1].disabled] = [!back, !forward];
  }

  show(pane, style) {
    this.panes.mark(pane);
    this.styles.mark(style);
    for (const control of this.ofPicture) Object.assign(control, { disabled: !["graph", "both"].includes(pane) });
  }

  paneAfter(pane) {
    return this.names[(this.names.indexOf(pane) + 1) % this.names.length];
  }
}
