// @ts-check
// Who gets the room: list and panel fold and take the width that they are drawn to, the whole takes the screen. What
// people choose is remembered, apart for narrow and wide panes.
import { followPointer } from "../../../viz/static/graph.js";
import { el, recall, remember } from "../dom.js";

const NARROW = 560; // pixels under which parts stand below each other
const KEY = "relaylab.room";
const STEP = 16;
const [LEAST, MOST] = [120, 0.6]; // pixels; share of the explorer

/**
 * A border that is drawn to another place.
 * @param {string} label
 * @param {() => Element | null} part  what gets wider
 * @param {(width?: number) => void} keep  takes the width; none: as it was at first
 * @param {1 | -1} way  whether it gets wider to the right, or to the left
 */
function border(label, part, keep, way = 1) {
  const sash = el("div", { className: "rl-sash", role: "separator", tabIndex: 0, ariaLabel: label });
  sash.setAttribute("aria-orientation", "vertical");
  const size = () => part()?.getBoundingClientRect().width ?? LEAST;
  const told = () => {
    const most = sash.parentElement?.clientWidth ?? 0;
    const values = { ariaValueMin: "0", ariaValueMax: String(most), ariaValueNow: String(Math.round(size())) };
    Object.assign(sash, values);
  };
  new ResizeObserver(told).observe(sash); // once it is seen
  sash.addEventListener("focus", told);
  sash.addEventListener("pointerdown", (down) => {
    const from = size();
    const end = followPointer(
      (e) => keep(from + way * (e.clientX - down.clientX)),
      () => end(),
    );
    down.preventDefault();
  });
  sash.addEventListener("dblclick", () => keep());
  sash.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[e.key];
    if (by) (keep(size() + way * by), told(), e.preventDefault(), e.stopPropagation());
  });
  return sash;
}

/**
 * The border between two parts beside each other, which share the room that they have together.
 * @param {HTMLElement} first
 * @param {HTMLElement[]} others  of which one is shown
 */
export function divider(first, ...others) {
  const set = (part, size) => (part.style.flex = size ? `${size} 1 0%` : "");
  return border(
    "width of the columns",
    () => first,
    (width) => {
      const beside = /** @type {HTMLElement[]} */ ([...first.parentElement.children]);
      for (const part of beside) if (!part.matches(".rl-sash")) set(part, width && part.offsetWidth);
      const all = first.offsetWidth + (others.find((o) => o.offsetWidth) ?? others[0]).offsetWidth;
      const size = width && Math.min(0.9 * all, Math.max(0.1 * all, width));
      set(first, size);
      for (const other of others) set(other, size && all - size);
    },
  );
}

// Parts beside each other, with borders between them.
export const divided = (parts) => parts.flatMap((part, i) => (i ? [divider(parts[i - 1], part), part] : [part]));

export class Room {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.kept = recall(KEY) ?? {};
    this.width = 0;
    /** @type {boolean | undefined} */
    this.now = undefined; // whether the panel is shown against what is remembered
    this.sized = new ResizeObserver(() => this.measure());
    this.sized.observe(root);
  }

  // what is remembered for panes of this kind
  get mine() {
    return (this.kept[this.root.dataset.room ?? "wide"] ??= {});
  }

  measure() {
    const { width } = this.root.getBoundingClientRect();
    if (!width || width === this.width) return;
    this.width = width;
    this.root.dataset.room = width < NARROW ? "narrow" : "wide";
    this.apply();
  }

  apply() {
    const { root, mine } = this;
    const page = root.closest(".rl-page") !== null; // there the list stands below the picture
    const list = mine.list ?? (root.dataset.room !== "narrow" || page);
    root.classList.toggle("rl-no-list", !list);
    root.classList.toggle("rl-no-panel", (this.now ?? mine.panel) === false);
    root.classList.toggle("rl-panel-open", (this.now ?? mine.panel) === true);
    root.classList.toggle("rl-map", Boolean(mine.map));
    for (const name of ["left", "right"])
      if (mine[name]) root.style.setProperty(`--rl-${name}`, `${mine[name]}px`);
      else root.style.removeProperty(`--rl-${name}`);
  }

  keep(name, value) {
    this.mine[name] = value;
    this.apply();
    remember(KEY, this.kept);
  }

  list() {
    this.keep("list", this.root.classList.contains("rl-no-list"));
  }

  map() {
    this.keep("map", !this.root.classList.contains("rl-map"));
  }

  panel() {
    const panel = this.root.querySelector(".rl-panel");
    this.now = undefined;
    this.keep("panel", !(panel instanceof HTMLElement && panel.offsetWidth));
  }

  // nothing is selected, or something is; what a tool has to say is shown in a panel that is folded as well
  nothing(on, reading = false) {
    this.root.classList.toggle("rl-nothing", on);
    this.now = reading || undefined;
    this.apply();
  }

  // the border of the list (left) or of the panel (right)
  /** @param {"left" | "right"} side */
  sash(side) {
    const part = () => (side === "left" ? sash.previousElementSibling : sash.nextElementSibling);
    const keep = (width) => this.keep(side, width && Math.round(Math.min(this.width * MOST, Math.max(LEAST, width))));
    const sash = border(
      side === "left" ? "width of the list" : "width of the panel",
      part,
      keep,
      side === "left" ? 1 : -1,
    );
    sash.classList.add(`rl-sash-${side}`);
    return sash;
  }

  // the whole screen; where that is refused, the whole window
  async full() {
    const { root } = this;
    if (document.fullscreenElement === root) return document.exitFullscreen();
    if (root.hasAttribute("popover")) return root.removeAttribute("popover");
    try {
      await root.requestFullscreen();
    } catch {
      root.setAttribute("popover", "manual");
      root.showPopover();
    }
    root.focus({ preventScroll: true });
  }
}
