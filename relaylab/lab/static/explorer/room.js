// @ts-check
// Who gets the room: list and panel fold and take the width that they are drawn to, the whole takes the screen. What
// people choose is remembered, apart for narrow and wide panes.
import { el, recall, remember } from "../dom.js";

const NARROW = 560; // pixels under which parts stand below each other
const KEY = "relaylab.room";
const STEP = 16;
const [LEAST, MOST] = [120, 0.6]; // pixels; share of the explorer

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

  // a border that is drawn to another place; `side` is what grows: left or right
  /** @param {"left" | "right"} side */
  sash(side) {
    const sash = el("div", { className: `rl-sash rl-sash-${side}`, role: "separator", tabIndex: 0 });
    sash.setAttribute("aria-label", side === "left" ? "width of the list" : "width of the panel");
    sash.setAttribute("aria-orientation", "vertical");
    const size = () => {
      const part = side === "left" ? sash.previousElementSibling : sash.nextElementSibling;
      return part?.getBoundingClientRect().width ?? LEAST;
    };
    const grow = (from, by) =>
      this.keep(side, Math.round(Math.min(this.width * MOST, Math.max(LEAST, from + (side === "left" ? by : -by)))));
    sash.addEventListener("pointerdown", (down) => {
      const from = size();
      const ends = new AbortController();
      const { signal } = ends;
      window.addEventListener("pointermove", (e) => grow(from, e.clientX - down.clientX), { signal });
      window.addEventListener("pointerup", () => ends.abort(), { signal });
      down.preventDefault();
    });
    sash.addEventListener("dblclick", () => this.keep(side, undefined));
    sash.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -STEP, ArrowRight: STEP }[e.key];
      if (by) (grow(size(), by), e.preventDefault(), e.stopPropagation());
    });
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
