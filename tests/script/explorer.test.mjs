// What is folded, what is known, what keys do, where paper is cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { count, short, signed } from "../../relaylab/lab/static/dom.js";
import { Answers } from "../../relaylab/lab/static/explorer/answers.js";
import { Folding, groupOf } from "../../relaylab/lab/static/explorer/folding.js";
import { keyOf } from "../../relaylab/lab/static/explorer/keys.js";
import { prefetch } from "../../relaylab/lab/static/explorer/prefetch.js";
import { Stages } from "../../relaylab/lab/static/explorer/stages.js";
import { cuts } from "../../relaylab/lab/static/saved/print.js";

const PICTURE = {
  groups: [
    ["f", "fused", "primitive", ""],
    ["g", "let", "let", ""],
    ["k", "closure", "function", "g"],
  ],
  scenes: [{ nodes: [["n", "f"]] }],
};

function folding(selected = "") {
  const done = [];
  const act = {
    picture: () => PICTURE,
    selected: () => selected,
    pick: (id) => done.push(id),
    refresh: () => done.push("!"),
  };
  const folded = new Folding(act);
  const first = folded.key;
  folded.closed.clear(); // whole pictures
  return { folded, done, first };
}

test("at first only what changed is shown, and what is selected", () => {
  assert.equal(folding().first, "Δ");
  assert.equal(folding("n").first, "+n\nΔ");
  assert.equal(folding("stretch:1").first, "Δ"); // no part of the program
});

test("the group of a node is folded and selected", () => {
  const { folded, done } = folding("n");
  folded.collapse();
  assert.deepEqual([folded.key, folded.words, done], ["f", "1 group", ["f", "!"]]);
  assert.equal(groupOf(PICTURE, "g"), "g");
  assert.equal(groupOf(PICTURE, "other"), "");
});

test("all kernels, the repeated blocks, and back", () => {
  const { folded } = folding();
  folded.collapseAll();
  folded.repeats();
  assert.deepEqual([folded.key, folded.words, folded.repeated], ["f\n×", "1 group, repeated blocks", true]);
  folded.repeats();
  assert.equal(folded.key, "f");
  folded.expand();
  assert.equal(folded.words, "");
});

test("levels fold functions, or what is in them, and keep the direction", () => {
  const { folded } = folding();
  folded.turned();
  folded.level("model");
  const model = folded.key;
  folded.level("function");
  assert.deepEqual([model, folded.key], ["f\ng\n→", "k\n→"]);
  folded.level("operator");
  assert.deepEqual([folded.key, folded.words], ["→", ""]);
  const sideways = new Folding({ ...folded.act, direction: () => "LR" });
  assert.ok(sideways.closed.has("→") && !new Folding({ ...folded.act, direction: () => "TB" }).closed.has("→"));
});

test("only what changed, with the cards that were opened, or everything", () => {
  const { folded } = folding("n");
  folded.changes();
  assert.deepEqual([folded.open("n"), folded.open("stretch:1"), folded.key], [false, true, "+n\n+stretch:1\nΔ"]);
  folded.forget();
  assert.equal(folded.key, "+n\nΔ");
  folded.changes();
  assert.deepEqual([folded.brief, folded.key], [false, ""]);
});

test("a question is asked once, until the pipeline is another", async () => {
  let asked = 0;
  const answers = new Answers(async (what, args) => ((asked += 1), [what, ...args]));
  assert.deepEqual(await answers.ask("node", 1, "x"), ["node", 1, "x"]);
  await answers.ask("node", 1, "x");
  assert.equal(asked, 1);
  await answers.ask("node", 2, "x");
  answers.clear();
  await answers.ask("node", 1, "x");
  assert.equal(asked, 3);
});

test("the steps to both sides are asked for ahead, until something else is shown", async () => {
  globalThis.window = {};
  const stages = new Stages((name) => ({ before: 0, after: 1 })[name]);
  const row = (steps) => ({ name: "", changed: true, error: "", steps });
  stages.load({ title: "", rows: [row(0), row(2)], frames: 3 });
  const asked = [];
  const answers = new Answers(async (what, args) => asked.push([what, ...args]));
  const picture = (a, b) => ["picture", a, b];
  assert.equal(await prefetch(stages, answers, picture, () => asked.length < 4), true);
  assert.deepEqual(asked, [
    ["picture", 1, 2],
    ["words", 2],
    ["steps", 1],
    ["picture", 0, 0],
  ]);
  answers.clear();
  assert.equal(await prefetch(stages, answers, picture, () => asked.length < 6), false);
  assert.equal(asked.length, 6);
});

test("keys that are not the explorer's do nothing", () => {
  const done = [];
  const act = { turn: (...args) => done.push(args), movePass: (by) => done.push(by) };
  keyOf(act, { key: "ArrowRight", shiftKey: true, altKey: false })();
  keyOf(act, { key: "ArrowDown", altKey: true })();
  assert.deepEqual(done, [[1, true], 1]);
  assert.equal(keyOf(act, { key: "q", altKey: false }), undefined);
  assert.equal(keyOf({}, { key: "ArrowDown", altKey: true }), undefined);
});

test("paper is cut between boxes where that is possible", () => {
  const box = (y, h) => [0, y, 10, h];
  assert.deepEqual(cuts([], 250, 100), [0, 100, 200, 250]);
  assert.deepEqual(cuts([box(0, 40), box(90, 40)], 150, 100), [0, 84, 150]);
  assert.deepEqual(cuts([box(0, 300)], 150, 100), [0, 100, 150], "no cut in the upper half: through the box");
});

test("numbers in few words", () => {
  assert.deepEqual([0, 12.345, 999, 1234, 5.6e6, 7e9].map(short), ["0", "12.35", "999", "1.23k", "5.60M", "7.00G"]);
  assert.deepEqual([0.004123, -0.05, 2e-7].map(short), ["0.00412", "-0.05", "2e-7"]); // a small weight is not 0
  assert.deepEqual([signed(2000), signed(-3)], ["+2.00k", "−3"]);
  assert.deepEqual(
    [count(1, "node"), count(2, "node"), count(1, "pass"), count(3, "pass")],
    ["1 node", "2 nodes", "1 pass", "3 passes"],
  );
});
