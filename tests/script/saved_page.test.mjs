// A saved page answers as the session that it was written from: `CASES` names a file with a page's data, packed as the
// page has it, questions with the session's answers, a stage as Python draws it, and wires of all directions.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { arrow, curve, unpack } from "../../relaylab/viz/static/graph.js";
import { SavedPage } from "../../relaylab/lab/static/saved/saved_page.js";
import { SavedPictures } from "../../relaylab/lab/static/saved/saved_pictures.js";

const { packed, questions, counterparts, drawn, wires } = JSON.parse(readFileSync(process.env.CASES, "utf8"));
const page = new SavedPage(await unpack(packed));
const NUMBER = /-?\d+(?:\.\d+)?/g;

// Equal, with numbers, also those of paths, to a tenth of a point: the page stores tenths.
function near(found, expected, where) {
  if (typeof expected === "number")
    assert.ok(Math.abs(found - expected) <= 0.11, `${where}: ${found}, not ${expected}`);
  else if (typeof expected === "string" && /^M-?\d/.test(expected)) {
    assert.equal(found.replace(NUMBER, "#"), expected.replace(NUMBER, "#"), where);
    near(found.match(NUMBER).map(Number), expected.match(NUMBER).map(Number), where);
  } else if (expected && typeof expected === "object") {
    assert.deepEqual(Object.keys(found), Object.keys(expected), where);
    for (const key of Object.keys(expected)) near(found[key], expected[key], `${where}.${key}`);
  } else assert.equal(found, expected, where);
}

for (const { ask, answer } of questions)
  test(`${ask.join(" ")}`, () => {
    const found = page.ask(ask[0], ask.slice(1));
    assert.deepEqual(Object.fromEntries(Object.keys(answer).map((key) => [key, found[key]])), answer);
  });

// where a node has no counterpart for the session, since its function stands for it, the page may still know it
test("counterparts are what nodes were made into", () => {
  for (const [id, known] of Object.entries(counterparts)) {
    const { ids } = page.ask("counterparts", [0, id, Object.keys(known).map(Number)]);
    for (const [stage, names] of Object.entries(known))
      assert.ok(
        !names.length || names.some((n) => ids[stage].includes(n)),
        `${id} at ${stage}: ${ids[stage]}, not ${names}`,
      );
  }
  assert.ok(Object.values(counterparts).some((known) => Object.values(known).some((names) => names.length)));
});

test("a stage is drawn as Python draws it", () => {
  const [scene] = page.ask("picture", [0, 0, "merged", ""]).scenes;
  const looks = ({ kind, label, source, target, box, shapes }) => ({ kind, label, source, target, box, shapes });
  const name = ({ kind, id, source, target, label }) =>
    [kind, kind === "edge" ? "" : id, source, target, label].join("\n");
  const order = (a, b) => (name(a) < name(b) ? -1 : 1);
  assert.deepEqual([scene.width, scene.height], [drawn.width, drawn.height]);
  near(scene.figures.toSorted(order).map(looks), drawn.figures.toSorted(order).map(looks), "figures");
});

test("folded groups are cards that say how many nodes are inside", () => {
  const stops = Object.keys(page.data.stages).map(Number);
  const last = Math.max(...stops);
  const open = page.ask("picture", [last, last, "merged", ""]);
  const [id] = open.groups.find(([, , kind]) => kind === "primitive");
  const inside = open.scenes[0].nodes.filter(([, group]) => group === id);
  const { figures, nodes } = page.ask("picture", [last, last, "merged", id]).scenes[0];
  assert.ok(inside.length > 0);
  assert.equal(nodes.length, open.scenes[0].nodes.length - inside.length + 1);
  assert.deepEqual(
    figures.filter((f) => inside.some(([name]) => name === f.id)),
    [],
  );
  const card = figures.find((f) => f.id === id);
  assert.ok(card.shapes.some((s) => s[0] === "t" && s[3].startsWith(`${inside.length} node`)));
});

test("what is not in the page is said", () => {
  assert.match(page.ask("bisect", []).error, /not in the saved page/);
  assert.match(page.ask("picture", [0, 999, "merged", ""]).error, /not in the saved page/);
  assert.match(page.ask("node", [0, "nobody"]).error, /no node nobody/);
});

wires.forEach(({ corners, sideways, direction, line, head }, at) =>
  test(`wire ${at} is drawn as Python draws it`, () => {
    near(curve(corners, sideways), line, "line");
    near(arrow(corners.at(-1), direction), head, "head");
  }),
);

test("a long title of a folded kernel is as wide as its card", () => {
  const kernel = (label) => ({ id: "k", kind: "group", label, role: "", box: [0, 0, 200, 300], shapes: [] });
  const sizes = ["primitive: add", `primitive: ${"nn.dense + add + ".repeat(4)}tanh`].map((label) => {
    const [, [, , , words, size]] = SavedPictures.prototype.card(kernel(label), ["add"], "primitive").shapes;
    assert.ok(words.length * size * 0.58 <= 200);
    return size;
  });
  assert.ok(sizes[0] === 10 && sizes[1] < 10);
});
