// What a saved page knows: pictures, differences, facts and kernels, unfolded from the numbers in it when they are asked for.

const HEADS = [[0, 1], [0, -1], [1, 0], [-1, 0]];
const SIGNS = { added: "+", removed: "–", changed: "±", moved: "»", merged: "&" };

function* parts(list, size) {
  for (let i = 0; i < list.length; i += size) yield list.slice(i, i + size);
}

const tenth = (v) => Math.round(v * 10) / 10;

// A wire through its corners: lines along the axes, S-curves that leave and arrive along the flow.
function curve([[x, y], ...rest], sideways) {
  let path = `M${x} ${y}`;
  for (const [nx, ny] of rest) {
    if (Math.abs(nx - x) < 0.05 || Math.abs(ny - y) < 0.05) path += `L${nx} ${ny}`;
    else if (sideways) path += `C${(x + nx) / 2} ${y} ${(x + nx) / 2} ${ny} ${nx} ${ny}`;
    else path += `C${x} ${(y + ny) / 2} ${nx} ${(y + ny) / 2} ${nx} ${ny}`;
    [x, y] = [nx, ny];
  }
  return path;
}

function head([x, y], [dx, dy]) {
  const [tx, ty, bx, by] = [x + dx * 5, y + dy * 5, x - dx, y - dy];
  return `M${tx} ${ty}L${bx - dy * 2.7} ${by + dx * 2.7}L${bx + dy * 2.7} ${by - dx * 2.7}Z`;
}

function moved([kind, first, ...rest], x, y) {
  if (kind !== "p") return [kind, tenth(first + x), tenth(rest[0] + y), ...rest.slice(1)];
  let turn = 0;
  return [kind, first.replace(/-?\d+(?:\.\d+)?/g, (n) => tenth(Number(n) + ((turn += 1) % 2 ? x : y))), ...rest];
}

// A box as a difference shows it: the border, the title and its sign say the role.
function painted(figure, role) {
  const shapes = figure.shapes.map((shape) => {
    if (shape[0] === "t") return /\btext-title\b/.test(shape[6]) ? [...shape.slice(0, 3), `${SIGNS[role]} ${shape[3]}`, ...shape.slice(4, 6), shape[6].replace("text-title", `text-role-${role}`)] : shape;
    const at = shape[0] === "r" ? 6 : 2;
    return /\b(box|group-\w+|wire)\b/.test(shape[at]) && !/\bplate\b/.test(shape[at]) ? shape.with(at, `${shape[at]} role-${role}`) : shape[at] === "tip" ? shape.with(at, `tip tip-${role}`) : shape;
  });
  return { ...figure, role, shapes };
}

export class Book {
  constructor(data) {
    this.data = data;
    this.stops = Object.keys(data.stages).map(Number).sort((a, b) => a - b);
    this.known = {};
  }

  once(table, key, make) {
    const known = (this.known[table] ??= new Map());
    if (!known.has(key)) known.set(key, make());
    return known.get(key);
  }

  // The answer to a question of the explorer.
  ask(what, args) {
    if (["picture", "text", "node", "kernel", "counterparts"].includes(what)) return this[what](...args);
    return this.data.answers[[what, ...args].join("\n")] ?? this.missing(what);
  }

  missing(what) {
    return { error: `This is not in the saved page: ${this.data.missing[what] ?? "it has to be computed"}. Open the explorer in a notebook to see it.` };
  }

  // ---- parts of stages

  // the parts of a stage by id: numbers of facts and story; groups come last
  stage(stop) {
    return this.once("stage", stop, () => new Map([...parts(this.data.stages[stop].parts, 3)].map(([id, facts, story]) => [this.data.ids[id], { facts, story }])));
  }

  facts(number) {
    const { fields, facts, values } = this.data;
    return this.once("facts", number, () => Object.fromEntries(facts[number].map((value, i) => [fields[i], values[value]])));
  }

  // the stage at or before one that has a part of that id
  home(stop, id) {
    return this.stops.filter((s) => s <= stop).findLast((s) => this.stage(s).has(id));
  }

  of(stop, id) {
    const home = this.home(stop, id);
    return home === undefined ? null : this.facts(this.stage(home).get(id).facts);
  }

  kernels(stop) {
    return this.once("kernels", stop, () => new Map([...parts(this.data.code.homes[stop] ?? [], 2)].map(([id, kernel]) => [this.data.ids[id], kernel])));
  }

  node(frame, id) {
    const home = this.home(frame, id);
    if (home === undefined) return { error: `There is no node ${id} up to this stage.` };
    const { facts, story } = this.stage(home).get(id);
    const about = this.data.missing.node ? { text: `(${this.data.missing.node})` } : {};
    return { ...this.facts(facts), ...about, id, frame: home, role: "", note: "", story: this.data.values[story], kernel: this.kernels(home).has(id) };
  }

  kernel(frame, id) {
    const { code, lines } = this.data;
    const home = this.home(frame, id);
    const number = home === undefined ? undefined : this.kernels(home).get(id);
    if (number === undefined) return { error: code.error ?? "No machine code was made for this node: it is in no fused kernel of the last stage." };
    const text = (list) => [...parts(list, 2)].map(([line, part]) => [lines[line][0], part]);
    const found = code.kernels[number];
    return found.error ? found : { ...found, llvm: text(found.llvm), asm: text(found.asm) };
  }

  // what stands for a node in other stages, or what it was made from
  counterparts(frame, id, others) {
    return { ids: Object.fromEntries(others.map((other) => [other, this.counterpart(frame, id, other)])) };
  }

  counterpart(frame, id, other) {
    const way = this.stops.filter((s) => s >= Math.min(frame, other) && s <= Math.max(frame, other));
    if (other < frame) way.reverse();
    let at = [id];
    for (let i = 1; i < way.length; i++) {
      const [from, to] = [way[i - 1], way[i]];
      const next = (node) => (this.stage(to).has(node) ? [node] : to < from ? (this.origins(from).get(node) ?? []) : (this.made(to).get(node) ?? []));
      at = [...new Set(at.flatMap(next))].filter((node) => this.stage(to).has(node));
    }
    return at;
  }

  origins(stop) {
    const { ids, stages } = this.data;
    return this.once("origins", stop, () => new Map(Object.entries(stages[stop].origins).map(([id, from]) => [ids[id], from.map((f) => ids[f])])));
  }

  // for what a node was made from: the nodes that were made from it
  made(stop) {
    return this.once("made", stop, () => {
      const found = new Map();
      for (const [id, from] of this.origins(stop)) for (const old of from) found.set(old, [...(found.get(old) ?? []), id]);
      return found;
    });
  }

  // ---- text

  text(a, b) {
    const { ids, lines, marks, texts } = this.data;
    const found = texts[`${a} ${b}`];
    if (!found) return this.missing("text");
    const row = ([number, mark]) => (marks[mark] === "⋮" ? ["⋮", -number, ""] : [marks[mark], lines[number][0], lines[number][1] < 0 ? "" : ids[lines[number][1]]]);
    return { rows: [...parts(found, 2)].map(row) };
  }

  // ---- pictures

  picture(a, b, style, closed) {
    const { data } = this;
    const pair = a === b ? { roles: {}, edges: 0, sides: [[], []] } : data.pairs[`${a} ${b}`];
    if (!pair) return this.missing("picture");
    const [left, right] = pair.sides.map((side) => new Map([...parts(side, 3)].map(([id, role, note]) => [data.ids[id], [data.roles[role], data.notes[note]]])));
    const groups = [...this.stage(b)].slice(-data.stages[b].groups || Infinity).map(([id, { facts }]) => [id, this.facts(facts).title, this.facts(facts).kind, this.facts(facts).group]);
    const answer = { roles: pair.roles, edges: pair.edges, groups, how: "" };
    const ghosts = [...left].some(([, [role]]) => role === "removed");
    if (a === b || (style === "merged" && !pair.merged && !ghosts)) answer.scenes = [this.compared(b, a, right, "added")];
    else if (style === "merged" && pair.merged) {
      const removed = [...left].filter(([, [role]]) => role === "removed");
      answer.scenes = [this.scene(pair.merged, b, new Map([...removed, ...right]))];
    } else {
      answer.scenes = [this.compared(a, b, left, "removed"), this.compared(b, a, right, "added")];
      if (style === "merged") answer.note = "side by side: one picture of these two stages is not in the saved page";
    }
    const cards = new Set(closed ? closed.split("\n") : []);
    if (cards.size) answer.scenes = answer.scenes.map((scene) => this.folded(scene, b, cards));
    return answer;
  }

  // the picture of a stage with its differences from another painted on it
  compared(stop, other, roles, word) {
    const drawn = this.scene(this.data.stages[stop].scene, stop, roles);
    const key = (f) => `${f.source}\n${f.target}\n${f.port}`;
    const there = new Set(this.scene(this.data.stages[other].scene, other, new Map()).figures.filter((f) => f.kind === "edge").map(key));
    const figures = drawn.figures.map((f) => {
      if (f.kind === "edge") return there.has(key(f)) ? f : painted(f, word);
      const role = roles.get(f.kind === "heading" ? f.id.slice(0, -" title".length) : f.id)?.[0];
      if (f.kind === "heading" && role) return { ...f, shapes: f.shapes.map((s) => (s[0] === "t" ? [...s.slice(0, 3), `${SIGNS[role]} ${s[3]}`, ...s.slice(4, 6), `text-role-${role} b`] : s)) };
      return role ? painted(f, role) : f;
    });
    return { ...drawn, figures };
  }

  scene(packed, stop, roles) {
    const { ids, cards, looks, labels } = this.data;
    const boxes = [...parts(packed.boxes, 4)].map(([id, card, x, y]) => this.box(ids[id], cards[card], x / 10, y / 10, stop, roles));
    const wires = packed.wires.map(([source, target, look, label, ...steps]) => {
      let [x, y] = [0, 0];
      const corners = [...parts(steps, 2)].map(([dx, dy]) => ((x += dx), (y += dy), [x / 10, y / 10]));
      const [line, tip, way, sideways, role] = looks[look];
      const [words, ...port] = labels[label];
      const shapes = [["p", curve(corners, sideways), line, ""], ["p", head(corners.at(-1), HEADS[way]), tip, ""]];
      return { id: "", kind: "edge", label: words, detail: "", role, source: ids[source], target: ids[target], port: port.join(":"), box: [0, 0, 0, 0], shapes };
    });
    const of = (kind) => boxes.filter((b) => b.kind === kind);
    const nodes = of("node");
    const rows = nodes.map(({ id }) => [id, this.of(stop, id)]).map(([id, f]) => [id, f?.group ?? "", f?.operator ?? "", f?.type ?? "", (f?.attrs ?? []).map(([name, value]) => `${name}=${value}`)]);
    return { title: packed.title, width: packed.size[0], height: packed.size[1], figures: [...of("group"), ...wires, ...packed.other, ...of("heading"), ...nodes, ...of("note")], nodes: rows };
  }

  box(id, [kind, label, width, height, shapes], x, y, stop, roles) {
    const [role, note] = roles.get(id) ?? ["", ""];
    const detail = kind === "node" || kind === "group" ? this.detail(stop, id, role, note) : "";
    return { id, kind, label, detail, role, source: "", target: "", box: [x, y, width / 10, height / 10], shapes: shapes.map((s) => moved(s, x, y)) };
  }

  // all that is known of a part in words, a fact a line; what the search looks at
  detail(stop, id, role, note) {
    const f = this.of(stop, id);
    if (!f) return id;
    const words = this.once("detail", f, () => [`${f.kind}: ${f.title}`, f.text, ...f.names.map((n) => `let ${n}`), ...f.rows, ...f.operands.map(([n, text, type]) => `${n}: ${text} ${type}`), ...f.attrs.map(([n, value]) => `${n} = ${value}`), ...f.cost.map(([n, value]) => `${n}: ${value}`), f.type, f.span].filter(Boolean).join("\n"));
    return role ? `${words}\n${role}${note ? `: ${note}` : ""}` : words;
  }

  // groups closed in their places: a card over what is in them
  folded(scene, stop, closed) {
    const homes = new Map([["", ""]]);
    const homeOf = (group) => {
      if (!homes.has(group)) homes.set(group, homeOf(this.of(stop, group)?.group ?? "") || (closed.has(group) ? group : ""));
      return homes.get(group);
    };
    const inside = (id) => homeOf(this.of(stop, id)?.group ?? "");
    const cards = [];
    const counts = {};
    for (const f of scene.figures) if (f.kind === "node" && inside(f.id)) counts[inside(f.id)] = (counts[inside(f.id)] ?? 0) + 1;
    const figures = scene.figures.filter((f) => {
      const home = f.kind === "node" ? inside(f.id) : f.kind === "group" ? homeOf(f.id) : f.kind === "heading" ? homeOf(f.id.slice(0, -" title".length)) : "";
      if (f.kind === "group" && home === f.id && counts[home]) cards.push(this.card(f, counts[home], this.of(stop, home).kind));
      return !home && !(f.kind === "edge" && inside(f.source) && inside(f.source) === inside(f.target));
    });
    return { ...scene, figures: [...figures, ...cards], nodes: [...scene.nodes.filter(([id]) => !inside(id)), ...cards.map((c) => [c.id, this.of(stop, c.id)?.group ?? "", "", "", []])] };
  }

  card(group, count, kind) {
    const [x, y, width, height] = group.box;
    const [title] = group.label.split("\n");
    const middle = x + width / 2;
    const line = (dy, text, size, styles) => ["t", middle, y + height / 2 + dy, text, size, "middle", styles];
    const shapes = [["r", x, y, width, height, 4, `group-${kind}`, ""], line(-2, title.replace(/^\w+: /, ""), 10, "text-title b"), line(11, `${count} node${count === 1 ? "" : "s"} inside`, 8.5, "text-dim")];
    const card = { ...group, kind: "node", label: title, shapes };
    return group.role ? painted(card, group.role) : card;
  }
}
