// What can be read: a node and its life, text differences, kernels, the tree for those who do not see the picture.
import { el, short } from "./dom.js";

function table(rows) {
  return el("table", {}, ...rows.map(([name, value, dim]) => el("tr", { className: dim ? "rl-dim" : "" }, el("th", { textContent: name }), el("td", { textContent: value }))));
}

function section(title, ...children) {
  return children.some(Boolean) ? [el("h3", { textContent: title }), ...children.filter(Boolean)] : [];
}

function histogram(value) {
  if (!value.bins) return null;
  const most = Math.max(...value.bins, 1);
  const bars = value.bins.map((n) => {
    const bar = el("i");
    bar.style.height = `${Math.round((100 * n) / most)}%`;
    return bar;
  });
  return el("div", { className: "rl-histogram", title: `${short(value.edges[0])} … ${short(value.edges[1])}` }, ...bars);
}

// A tensor as a tiny heat map: blue below zero, orange above.
function grid(value) {
  if (!value.grid?.length) return null;
  const [rows, columns] = [value.grid.length, value.grid[0].length];
  const canvas = el("canvas", { className: "rl-grid", width: columns, height: rows, role: "img", ariaLabel: `values of ${value.name}`, title: "blocks of elements: blue below zero, orange above, the largest of each" });
  const [context, side] = [canvas.getContext("2d"), Math.max(4, Math.min(10, Math.floor(220 / columns)))];
  value.grid.forEach((row, y) => row.forEach((v, x) => ((context.fillStyle = `rgba(${v < 0 ? "0,114,178" : "214,94,0"},${Math.abs(v) / 9})`), context.fillRect(x, y, 1, 1))));
  Object.assign(canvas.style, { width: `${columns * side}px`, height: `${rows * side}px` });
  return canvas;
}

function valueOf(value) {
  const figures = value.bins ? `min ${short(value.min)}  max ${short(value.max)}  mean ${short(value.mean)}  std ${short(value.std)}` : "";
  return el("div", { className: "rl-value" }, el("div", { textContent: `${value.name}: ${value.dtype}[${value.shape.join("×")}] ${figures}` }), grid(value), histogram(value), el("code", { textContent: `${value.head.join(" ")}${value.head.length > 7 ? " …" : ""}` }));
}

export function story(entries, follow) {
  return el("ol", { className: "rl-story" }, ...entries.map((entry) => {
    const button = el("button", { className: "rl-link", onclick: () => follow(entry) }, el("b", { textContent: entry.frame ? `${entry.frame} ${entry.pass}` : entry.pass }));
    return el("li", {}, button, el("span", { textContent: ` ${entry.what}` }));
  }));
}

// The detail panel of a node.
export function about(node, act) {
  const head = el("h2", { textContent: node.title || node.id });
  const role = node.role ? el("p", { className: `rl-role rl-role-${node.role}`, textContent: `${node.role}${node.note ? `: ${node.note}` : ""}` }) : null;
  const text = node.text ? el("pre", { className: "rl-code", textContent: node.text }) : null;
  const cost = node.cost.map(([name, v]) => [name, short(v)]);
  const facts = table([["id", node.id, true], ["kind", node.kind], ...(node.type ? [["type", node.type]] : []), ...node.names.map((n) => ["bound to", n]), ...cost, ...(node.span ? [["built at", node.span]] : []), ...(node.group ? [["inside", node.group]] : [])]);
  const code = node.kernel ? el("button", { className: "rl-button", textContent: "machine code", onclick: act.code }) : null;
  return [
    head, role, text, code, facts,
    ...section("attributes", node.attrs.length ? table(node.attrs) : null),
    ...section("operands", node.operands.length ? table(node.operands.map(([n, t, type]) => [n, `${t} ${type}`])) : null),
    ...section("values", ...node.values.map(valueOf)),
    ...section("life", story(node.story, act.follow)),
    ...act.why,
    ...section("operator", node.doc ? el("p", { className: "rl-doc", textContent: node.doc }) : null),
  ].filter(Boolean);
}

// A difference of two texts.
export function difference(rows, select) {
  const names = { "+": "rl-plus", "-": "rl-minus", "⋮": "rl-gap" };
  return el("div", { className: "rl-diff", role: "table", "aria-label": "text difference" }, ...rows.map(([mark, text, id]) => {
    const words = mark === "⋮" ? `⋮ ${text} equal lines` : text;
    const line = el("div", { className: `rl-line ${names[mark] ?? ""}`, role: "row" }, el("span", { className: "rl-mark", textContent: mark === "⋮" ? "" : mark }), el("span", { textContent: words }));
    if (id) {
      line.dataset.id = id;
      line.addEventListener("click", () => select(id));
    }
    return line;
  }));
}

// LLVM's own passes over a kernel, asked for when they are opened; each opens to what it changed.
function passes(ask) {
  const body = el("div", {});
  const line = ([name, ms, changed, says, diff]) => (changed ? el("details", { className: "rl-llvm-pass" }, el("summary", { textContent: `${name}  ${ms.toFixed(2)} ms  ${says}` }), el("pre", { className: "rl-code", textContent: diff })) : el("div", { className: "rl-dim rl-llvm-pass", textContent: `${name}  ${ms.toFixed(2)} ms  ${says}` }));
  const open = async () => {
    if (!element.open || body.firstChild) return;
    body.append(el("p", { className: "rl-dim", textContent: "running …" }));
    const found = await ask();
    body.replaceChildren(el("p", { className: "rl-dim", textContent: "The build runs none of them: the text goes to the code generator as it is. This is what they would do." }), ...(found.error ? [el("pre", { className: "rl-error", textContent: found.error })] : found.steps.map(line)));
  };
  const element = el("details", { className: "rl-llvm", ontoggle: open }, el("summary", { textContent: "What LLVM's passes would do" }), body);
  return element;
}

// A kernel at three levels; hovering a line lights the lines of the same part everywhere, and its node in the graph.
export function kernel(found, light, ask) {
  const element = el("div", { className: "rl-kernel" });
  const over = (part) => {
    element.querySelectorAll(".rl-lit").forEach((e) => e.classList.remove("rl-lit"));
    if (part < 0) return light("");
    element.querySelectorAll(`[data-part="${part}"]`).forEach((e) => e.classList.add("rl-lit"));
    light(found.parts[part]?.[1] ?? "");
  };
  const reveal = (part) => {
    over(part);
    for (const column of element.querySelectorAll(".rl-column")) {
      const first = column.querySelector(".rl-lit");
      if (first) column.scrollTop = first.offsetTop - column.offsetTop - column.clientHeight / 3;
    }
  };
  const line = ([text, part]) => {
    const row = el("div", { className: `rl-ins rl-part-${part < 0 ? "none" : part % 8}`, textContent: text });
    row.dataset.part = String(part);
    row.addEventListener("mouseenter", () => over(part));
    return row;
  };
  const text = (textContent) => el("pre", { className: "rl-code", textContent });
  const column = (title, ...children) => el("div", { className: "rl-column" }, el("h3", { textContent: title }), ...children.filter(Boolean));
  const legend = found.parts.map(([name], part) => {
    const chip = el("button", { className: `rl-chip rl-part-${part % 8}`, textContent: name, onmouseenter: () => reveal(part), onfocus: () => reveal(part) });
    chip.dataset.part = String(part);
    return chip;
  });
  element.append(
    el("div", { className: "rl-kernel-bar" }, el("strong", { textContent: found.name }), ...legend, el("span", { className: "rl-dim", textContent: found.coverage.split(":")[0] })),
    el("div", { className: "rl-columns" },
      column("Relay and loops", text(found.relay), text(found.loops), el("details", {}, el("summary", { textContent: "Why these loops" }), text(found.why))),
      column("LLVM IR", ask ? passes(ask) : null, ...found.llvm.map(line)), column("assembly", ...found.asm.map(line))),
  );
  return element;
}

// The picture as a tree of words: groups and the nodes in them, for keyboards and screen readers.
export function tree(scene, groups, select) {
  const words = (f) => `${f.label.split("\n")[0]}${f.role ? `, ${f.role}` : ""}`;
  const figures = new Map(scene.figures.filter((f) => f.kind === "node" || f.kind === "group").map((f) => [f.id, f]));
  const inside = new Map();
  const put = (parent, id) => inside.set(parent, [...(inside.get(parent) ?? []), id]);
  const parents = new Map([...groups.map(([id, , , parent]) => [id, parent]), ...scene.nodes.map(([id, group]) => [id, group])]);
  for (const id of figures.keys()) put(figures.has(parents.get(id)) ? parents.get(id) : "", id);
  const item = (id, level) => {
    const figure = figures.get(id);
    const li = el("li", { role: "treeitem", tabIndex: -1, "aria-level": String(level), "aria-selected": "false" }, el("span", { textContent: words(figure) }));
    li.dataset.id = id;
    const below = inside.get(id);
    if (below && level < 12) {
      li.setAttribute("aria-expanded", "true");
      li.append(el("ul", { role: "group" }, ...below.map((b) => item(b, level + 1))));
    }
    return li;
  };
  const root = el("ul", { className: "rl-tree", role: "tree", "aria-label": "the graph as a tree" }, ...(inside.get("") ?? []).map((id) => item(id, 1)));
  if (root.querySelector("li")) root.querySelector("li").tabIndex = 0;
  root.addEventListener("click", (e) => (e.stopPropagation(), select(e.target.closest("li")?.dataset.id)));
  root.addEventListener("keydown", (e) => {
    const all = [...root.querySelectorAll("li")].filter((li) => li.offsetParent !== null);
    const at = all.indexOf(document.activeElement);
    const current = all[at];
    const to = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) }[e.key];
    if (to) (current && (current.tabIndex = -1), (to.tabIndex = 0), to.focus());
    else if ((e.key === "Enter" || e.key === " ") && current) select(current.dataset.id);
    else if ((e.key === "ArrowLeft" || e.key === "ArrowRight") && current?.hasAttribute("aria-expanded")) current.setAttribute("aria-expanded", String(e.key === "ArrowRight"));
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  return root;
}

// Which bytes hold a value during which steps.
export function memory(plan) {
  const steps = Math.max(1, plan.steps.length);
  const bars = plan.bars.map((bar) => {
    const block = el("div", { className: "rl-bar-block", title: `${short(bar.bytes)}B at ${bar.offset}, steps ${bar.first} to ${bar.last}` });
    Object.assign(block.style, { left: `${(100 * bar.first) / steps}%`, width: `${(100 * (bar.last - bar.first + 1)) / steps}%`, bottom: `${(100 * bar.offset) / plan.arena}%`, height: `${Math.max(0.8, (100 * bar.bytes) / plan.arena)}%` });
    return block;
  });
  return [el("h2", { textContent: "memory plan" }), el("p", { className: "rl-dim", textContent: `${short(plan.arena)}B for tensors; steps from left to right, addresses upward` }), el("div", { className: "rl-memory" }, ...bars)];
}

// The remark of the diff about a figure: the last line of its description.
export function noteOf(figure) {
  const last = figure.detail.split("\n").at(-1);
  return last.startsWith(`${figure.role}: `) ? last.slice(figure.role.length + 2) : "";
}

// What a pass did, in sentences; shown while nothing is selected.
export function words(sentences) {
  const list = el("ul", { className: "rl-story rl-words" }, ...sentences.map((text) => el("li", { textContent: text })));
  const hint = "Select a node: its type, attributes, cost, values, documentation, and its life through the passes.";
  return [...section("in words", sentences.length ? list : null), el("p", { className: "rl-dim", textContent: hint })];
}
