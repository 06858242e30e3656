// @ts-check
// The picture as words in a tree.
import { el } from "../dom.js";
import { idle } from "../explorer/prefetch.js";

const LARGE = 300; // figures from which on the tree may come later

// The picture as a tree of words: groups and the nodes in them, for keyboards and screen readers.
function tree(scene, groups, select) {
  const name = (f) => el("span", { textContent: f.label.split("\n")[0], translate: false });
  const figures = new Map(scene.figures.filter((f) => f.kind === "node" || f.kind === "group").map((f) => [f.id, f]));
  const inside = new Map();
  const put = (parent, id) => inside.get(parent)?.push(id) ?? inside.set(parent, [id]);
  const parents = new Map([
    ...groups.map(([id, , , parent]) => [id, parent]),
    ...scene.nodes.map(([id, group]) => [id, group]),
  ]);
  for (const id of figures.keys()) put(figures.has(parents.get(id)) ? parents.get(id) : "", id);
  const item = (id, level) => {
    const figure = figures.get(id);
    const li = el(
      "li",
      { role: "treeitem", tabIndex: -1, "aria-level": String(level), "aria-selected": "false" },
      el("span", {}, name(figure), figure.role ? `, ${figure.role}` : ""),
    );
    li.dataset.id = id;
    const below = inside.get(id);
    if (below && level < 12) {
      li.setAttribute("aria-expanded", "true");
      li.append(el("ul", { role: "group" }, ...below.map((b) => item(b, level + 1))));
    }
    return li;
  };
  const root = el(
    "ul",
    { className: "rl-tree", role: "tree", "aria-label": "the graph as a tree" },
    ...(inside.get("") ?? []).map((id) => item(id, 1)),
  );
  if (root.querySelector("li")) root.querySelector("li").tabIndex = 0;
  root.addEventListener("click", (e) => {
    e.stopPropagation();
    select(e.target instanceof Element && e.target.closest("li")?.dataset.id);
  });
  root.addEventListener("keydown", (e) => {
    const all = [...root.querySelectorAll("li")].filter((li) => li.offsetParent !== null);
    const at = all.findIndex((li) => li === document.activeElement);
    const current = all[at];
    const open = current?.getAttribute("aria-expanded"); // null: a leaf
    const inward = open === "true" ? current.querySelector("li") : null;
    const outward = open === "true" ? null : current?.parentElement?.closest("li");
    const steps = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) };
    const to = { ...steps, ArrowRight: inward, ArrowLeft: outward }[e.key];
    if (to) (current && (current.tabIndex = -1), (to.tabIndex = 0), to.focus());
    else if ((e.key === "Enter" || e.key === " ") && current) select(current.dataset.id);
    else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && open)
      current.setAttribute("aria-expanded", String(e.key === "ArrowRight"));
    else if (!/^(Arrow|Home|End)/.test(e.key)) return; // these never leave the tree
    e.preventDefault();
    e.stopPropagation();
  });
  return root;
}

export class Outline {
  /** @param {(id: string) => void} pick */
  constructor(pick) {
    this.pick = pick;
    this.element = el("div", { className: "rl-outline" });
  }

  // the tree of a picture; of a large one a moment later
  async show(picture, selected) {
    this.picture = picture;
    const scene = picture.scenes.at(-1);
    if (scene.figures.length > LARGE) await idle();
    if (this.picture !== picture) return;
    this.element.replaceChildren(tree(scene, picture.groups, (id) => id && this.pick(id)));
    this.mark(selected());
    this.hit(this.hits ?? new Set());
  }

  clear() {
    this.picture = null;
    this.element.replaceChildren();
  }

  // what the search found
  hit(ids) {
    this.hits = ids;
    for (const li of this.element.querySelectorAll("li")) li.classList.toggle("rl-found", ids.has(li.dataset.id));
  }

  mark(id) {
    const lines = [...this.element.querySelectorAll("li")];
    for (const li of lines) if (li.ariaSelected === "true") li.ariaSelected = "false";
    for (const li of lines) if (li.dataset.id === id) li.ariaSelected = "true";
  }
}
