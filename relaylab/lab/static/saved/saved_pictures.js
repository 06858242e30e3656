// @ts-check
// The pictures of a saved page: put together from numbers, with differences painted on them and groups folded.
import { count } from "../dom.js";
import { arrow, curve } from "../../../viz/static/graph.js";
import { nearOf } from "../explorer/folding.js";
import { SIGNS } from "../explorer/legend.js";
import { focused, moved } from "./saved_focus.js";
import { chunks } from "./saved_stages.js";

const DIRECTIONS = [
  [0, 1],
  [0, -1],
  [1, 0],
  [-1, 0],
];

const BOLD = 0.58; // how wide a bold letter is, of its size

// A shape as a difference shows it: the border, the title and its sign say the role.
function paintedShape(shape, role) {
  const [kind] = shape;
  const at = { t: 6, r: 6, p: 2 }[kind];
  const styles = shape[at];
  if (kind === "t" && /\btext-title\b/.test(styles))
    return signedText(shape, role, styles.replace("text-title", `text-role-${role}`));
  if (kind === "t") return shape;
  if (/\b(box|group-\w+|wire)\b/.test(styles) && !/\bplate\b/.test(styles))
    return shape.with(at, `${styles} role-${role}`);
  return styles === "tip" ? shape.with(at, `tip tip-${role}`) : shape;
}

// A line of text with the sign of a role before it.
const signedText = (text, role, styles) => text.with(3, `${SIGNS[role]} ${text[3]}`).with(6, styles);

const painted = (figure, role) => ({ ...figure, role, shapes: figure.shapes.map((s) => paintedShape(s, role)) });

// The heading of a group is named after it.
const groupOfHeading = (figure) => figure.id.slice(0, -" title".length);

export class SavedPictures {
  /**
   * @param {any} data
   * @param {import("./saved_stages.js").SavedStages} stages
   */
  constructor(data, stages) {
    this.data = data;
    this.stages = stages;
  }

  // What differs between two stages; nothing if that is not in the page.
  picture(a, b, style, closed) {
    const { data, stages } = this;
    const pair = a === b ? { roles: {}, edges: 0, sides: [[], []] } : data.pairs[`${a} ${b}`];
    if (!pair) return null;
    /** @returns {[string, any]} */
    const differs = ([id, role, note]) => [data.ids[id], [data.roles[role], data.notes[note]]];
    const cards = new Set(closed ? closed.split("\n") : []);
    const near = nearOf(cards);
    const [left, right] = pair.sides.map((side) => new Map([...chunks(side, 3)].map(differs)));
    const groups = [...stages.stage(b)].slice(-data.stages[b].groups || Infinity).map(([id, part]) => {
      const { title, kind, group } = stages.facts(part.facts);
      return [id, title, kind, group];
    });
    /** @type {{ roles: any, edges: number, groups: any[], how: string, scenes: any[], note?: string,
     *   whole?: number }} */
    const answer = { roles: pair.roles, edges: pair.edges, groups, how: "", scenes: [] };
    const ghosts = [...left].some(([, [role]]) => role === "removed");
    const removed = () => [...left].filter(([, [role]]) => role === "removed");
    const known = (id) => !/^stretch:/.test(id) && pair.brief.boxes.includes(data.ids.indexOf(id));
    const far = (card) => card[0] === "+" && !known(card.slice(1));
    if (pair.brief && !near && style === "merged" && cards.has("Δ") && ![...cards].some(far)) {
      answer.scenes = [this.scene(pair.brief, b, new Map([...removed(), ...right]))];
      answer.whole = pair.whole;
    } else if (a === b || (style === "merged" && !pair.merged && !ghosts))
      answer.scenes = [this.compared(b, a, right, "added")];
    else if (style === "merged" && pair.merged)
      answer.scenes = [this.scene(pair.merged, b, new Map([...removed(), ...right]))];
    else {
      answer.scenes = [this.compared(a, b, left, "removed"), this.compared(b, a, right, "added")];
      if (style === "merged") answer.note = "side by side: one picture of these two stages is not in the saved page";
    }
    const home = (id) => stages.of(b, id)?.group ?? stages.of(a, id)?.group ?? "";
    if (near) answer.scenes = answer.scenes.map((scene) => focused(scene, near, home));
    if (cards.size) answer.scenes = answer.scenes.map((scene) => this.folded(scene, b, cards));
    return answer;
  }

  // the picture of a stage with its differences from another painted on it
  compared(stop, other, roles, word) {
    const drawn = this.scene(this.data.stages[stop].scene, stop, roles);
    const key = (f) => `${f.source}\n${f.target}\n${f.port}`;
    const there = new Set(
      this.scene(this.data.stages[other].scene, other, new Map())
        .figures.filter((f) => f.kind === "edge")
        .map(key),
    );
    const figures = drawn.figures.map((f) => {
      if (f.kind === "edge") return there.has(key(f)) ? f : painted(f, word);
      const role = roles.get(f.kind === "heading" ? groupOfHeading(f) : f.id)?.[0];
      if (!role) return f;
      if (f.kind !== "heading") return painted(f, role);
      const named = (s) => (s[0] === "t" ? signedText(s, role, `text-role-${role} b`) : s);
      return { ...f, shapes: f.shapes.map(named) };
    });
    return { ...drawn, figures };
  }

  scene(packed, stop, roles) {
    const { ids, cards } = this.data;
    const boxes = [...chunks(packed.boxes, 4)].map(([id, card, x, y]) =>
      this.box(ids[id], cards[card], x / 10, y / 10, stop, roles),
    );
    const wires = packed.wires.map((numbers) => this.wire(numbers));
    const of = (kind) => boxes.filter((b) => b.kind === kind);
    const nodes = of("node");
    const row = ({ id }) => [id, this.stages.of(stop, id)?.group ?? ""];
    return {
      title: packed.title,
      width: packed.size[0],
      height: packed.size[1],
      figures: [...of("group"), ...wires, ...packed.other, ...of("heading"), ...nodes, ...of("note")],
      nodes: nodes.map(row),
    };
  }

  wire([source, target, look, label, ...steps]) {
    const { ids, looks, labels } = this.data;
    const [line, tip, way, sideways, role] = looks[look];
    const [words, ...port] = labels[label];
    let [x, y] = [0, 0];
    const corners = [...chunks(steps, 2)].map(([dx, dy]) => {
      [x, y] = [x + dx, y + dy];
      return [x / 10, y / 10];
    });
    const shapes = [
      ["p", curve(corners, sideways), line, ""],
      ["p", arrow(corners.at(-1), DIRECTIONS[way]), tip, ""],
    ];
    const ends = { source: ids[source], target: ids[target], port: port.join(":") };
    return { id: "", kind: "edge", label: words, detail: "", role, ...ends, box: [0, 0, 0, 0], shapes };
  }

  box(id, [kind, label, width, height, shapes], x, y, stop, roles) {
    const [role, note] = roles.get(id) ?? ["", ""];
    const detail = kind === "node" || kind === "group" ? this.detail(stop, id, role, note) : "";
    const place = { box: [x, y, width / 10, height / 10], shapes: shapes.map((s) => moved(s, x, y)) };
    return { id, kind, label, detail, role, source: "", target: "", ...place };
  }

  // all that is known of a part in words, a fact a line; what the search looks at
  detail(stop, id, role, note) {
    const f = this.stages.of(stop, id);
    if (!f) return id;
    const words = this.stages.once("detail", f, () =>
      [
        `${f.kind}: ${f.title}`,
        f.text,
        ...f.names.map((n) => `let ${n}`),
        ...f.rows,
        ...f.operands.map(([n, text, type]) => `${n}: ${text} ${type}`),
        ...f.attrs.map(([n, value]) => `${n} = ${value}`),
        ...f.cost.map(([n, value]) => `${n}: ${value}`),
        f.type,
        f.span,
      ]
        .filter(Boolean)
        .join("\n"),
    );
    return role ? `${words}\n${role}${note ? `: ${note}` : ""}` : words;
  }

  // groups closed in their places: a card over what is in them
  folded(scene, stop, closed) {
    const homes = new Map([["", ""]]);
    const homeOf = (group) => {
      if (!homes.has(group))
        homes.set(group, homeOf(this.stages.of(stop, group)?.group ?? "") || (closed.has(group) ? group : ""));
      return homes.get(group);
    };
    const inside = (id) => homeOf(this.stages.of(stop, id)?.group ?? "");
    const homeOfFigure = (f) => {
      if (f.kind === "node") return inside(f.id);
      if (f.kind === "group") return homeOf(f.id);
      return f.kind === "heading" ? homeOf(groupOfHeading(f)) : "";
    };
    const cards = [];
    const held = {};
    for (const f of scene.figures)
      if (f.kind === "node" && inside(f.id)) (held[inside(f.id)] ??= []).push(f.label.split("\n")[0]);
    const figures = scene.figures.filter((f) => {
      const home = homeOfFigure(f);
      if (f.kind === "group" && home === f.id && held[home])
        cards.push(this.card(f, held[home], this.stages.of(stop, home).kind));
      return !home && !(f.kind === "edge" && inside(f.source) && inside(f.source) === inside(f.target));
    });
    const open = scene.nodes.filter(([id]) => !inside(id));
    const rows = cards.map((c) => [c.id, this.stages.of(stop, c.id)?.group ?? ""]);
    return { ...scene, figures: [...figures, ...cards], nodes: [...open, ...rows] };
  }

  // in the place of a group, as large as that: what is in it, as far as there is room
  card(group, held, kind) {
    const [x, y, width, height] = group.box;
    const [title] = group.label.split("\n");
    const times = (name) => held.filter((other) => other === name).length;
    const names = [...new Set(held)].map((name) => (times(name) > 1 ? `${times(name)} × ${name}` : name));
    const words = [`${count(held.length, "node")} inside`, ...names.slice(0, Math.max(0, height / 13 - 3))];
    const top = y + height / 2 - 6.5 * words.length;
    const name = title.replace(/^\w+: /, "");
    const signed = name.length + 2; // a sign may stand before it
    const size = Math.min(10, (width - 8) / (signed * BOLD)); // a title may be longer than its kernel is wide
    const line = (text, k) => ["t", x + width / 2, top + 13 * (k + 1), text, 8.5, "middle", "text-dim"];
    const shapes = [
      ["r", x, y, width, height, 4, `group-${kind}`, ""],
      ["t", x + width / 2, top, name, size, "middle", "text-title b"],
      ...words.map(line),
    ];
    const card = { ...group, kind: "node", label: title, shapes };
    return group.role ? painted(card, group.role) : card;
  }
}
