// @ts-check
// A node: its type, attributes, operands, values and its life.
import { button, code, dim, el, fold, heading, short, subheading } from "../dom.js";
import { roleClass } from "../explorer/legend.js";

// names and values are the program's; so are the words before them in a table of its `own`
function table(rows, own = false) {
  return el(
    "table",
    {},
    ...rows.map(([name, value, quiet]) =>
      el(
        "tr",
        { className: quiet ? "rl-dim" : "" },
        el("th", { textContent: name, translate: !own }),
        el("td", { textContent: value, translate: false }),
      ),
    ),
  );
}

function section(title, ...children) {
  return children.some(Boolean) ? [subheading(title), ...children.filter(Boolean)] : [];
}

function histogram(value) {
  if (!value.bins) return null;
  const most = Math.max(...value.bins, 1);
  const bars = value.bins.map((n) => {
    const bar = el("i");
    bar.style.height = `${Math.round((100 * n) / most)}%`;
    return bar;
  });
  return el(
    "div",
    { className: "rl-histogram", title: `${short(value.edges[0])} … ${short(value.edges[1])}` },
    ...bars,
  );
}

// A tensor as a tiny heat map: blue below zero, orange above.
function grid(value) {
  if (!value.grid?.length) return null;
  const [rows, columns] = [value.grid.length, value.grid[0].length];
  const canvas = el("canvas", {
    className: "rl-grid",
    width: columns,
    height: rows,
    role: "img",
    ariaLabel: `values of ${value.name}`,
    title: "blocks of elements: blue below zero, orange above, the largest of each",
  });
  const [context, side] = [canvas.getContext("2d"), Math.max(4, Math.min(10, Math.floor(220 / columns)))];
  value.grid.forEach((row, y) =>
    row.forEach(
      (v, x) => (
        (context.fillStyle = `rgba(${v < 0 ? "0,114,178" : "214,94,0"},${Math.abs(v) / 9})`),
        context.fillRect(x, y, 1, 1)
      ),
    ),
  );
  Object.assign(canvas.style, { width: `${columns * side}px`, height: `${rows * side}px` });
  return canvas;
}

function valueOf(value) {
  const figures = value.bins
    ? `min ${short(value.min)}  max ${short(value.max)}  mean ${short(value.mean)}  std ${short(value.std)}`
    : "";
  return el(
    "div",
    { className: "rl-value" },
    el("div", { textContent: `${value.name}: ${value.dtype}[${value.shape.join("×")}] ${figures}` }),
    grid(value),
    histogram(value),
    el("code", { textContent: `${value.head.join(" ")}${value.head.length > 7 ? " …" : ""}` }),
  );
}

function story(entries, follow) {
  return el(
    "ol",
    { className: "rl-story" },
    ...entries.map((entry) => {
      const button = el(
        "button",
        { className: "rl-link", onclick: () => follow(entry) },
        el("b", { textContent: entry.frame ? `${entry.frame} ${entry.pass}` : entry.pass }),
      );
      return el("li", {}, button, el("span", { textContent: ` ${entry.what}` }));
    }),
  );
}

// What an operator means, as code.
const numpy = (text) => (text ? fold("the same in numpy", "", code(text)) : null);

// The detail panel of a node.
export function about(node, act) {
  const head = heading(node.title || node.id);
  head.translate = false;
  const role = node.role
    ? el("p", {
        className: roleClass(node.role),
        textContent: `${node.role}${node.note ? `: ${node.note}` : ""}`,
      })
    : null;
  const text = node.text ? code(node.text, "relay") : null;
  const cost = node.cost.map(([name, v]) => [name, short(v)]);
  const facts = table([
    ["id", node.id, true],
    ["kind", node.kind],
    ...(node.type ? [["type", node.type]] : []),
    ...node.names.map((n) => ["bound to", n]),
    ...cost,
    ...(node.span ? [["built at", node.span]] : []),
    ...(node.group ? [["inside", node.group]] : []),
  ]);
  const machine = node.kernel ? button("machine code", "", act.code) : null;
  return [
    head,
    role,
    text,
    machine,
    facts,
    ...section("attributes", node.attrs.length ? table(node.attrs, true) : null),
    ...section(
      "operands",
      node.operands.length
        ? table(
            node.operands.map(([n, t, type]) => [n, `${t} ${type}`]),
            true,
          )
        : null,
    ),
    ...section("values", ...node.values.map(valueOf)),
    ...section("life", story(node.story, act.follow)),
    ...act.beside,
    ...section(
      "operator",
      node.doc ? el("p", { className: "rl-doc", textContent: node.doc }) : null,
      numpy(node.reference),
    ),
  ].filter(Boolean);
}

// The remark of the diff about a figure: the last line of its description.
export function noteOf(figure) {
  const last = figure.detail.split("\n").at(-1);
  return last.startsWith(`${figure.role}: `) ? last.slice(figure.role.length + 2) : "";
}

// What a pass did, in sentences; shown while nothing is selected.
export function words(sentences) {
  const list = el(
    "ul",
    { className: "rl-story rl-words" },
    ...sentences.map((text) => el("li", { textContent: text })),
  );
  const hint = "Select a node: its type, attributes, cost, values, documentation, and its life through the passes.";
  return [...section("in words", sentences.length ? list : null), dim(hint)];
}
