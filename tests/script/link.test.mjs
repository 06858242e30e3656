// The address of what is shown in a saved page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { address, read } from "../../relaylab/lab/static/saved/link.js";

const ROWS = ["A", "B", "A"].map((name, at) => ({ name, changed: at < 2 }));
const knows = (frame, id) => id === "main/nn.dense" || id === "a b(%1)&c=d";
const USUAL = { selected: "", compare: "merged", pane: "graph" };
const chosen = (hash) => read(hash, ROWS, knows).chosen;
const wrong = (hash) => read(hash, ROWS, knows).wrong;

test("an address says what is not as usual", () => {
  const usual = { before: 1, after: 2, ...USUAL };
  assert.equal(address(usual, usual), "#stage=2");
  assert.equal(
    address({ ...usual, before: 0, compare: "both", pane: "text" }, usual),
    "#stage=2&from=0&compare=both&view=text",
  );
});

for (const state of [
  { before: 0, after: 0, selected: "", compare: "merged", pane: "graph" },
  { before: 1, after: 3, selected: "main/nn.dense", compare: "both", pane: "code" },
  { before: 2, after: 3, selected: "a b(%1)&c=d", compare: "merged", pane: "several" },
])
  test(`reading is the inverse of writing: ${address(state, USUAL)}`, () => {
    const found = read(address(state, USUAL), ROWS, knows);
    assert.deepEqual(found.wrong, []);
    assert.deepEqual({ ...USUAL, ...found.chosen }, state);
  });

test("a stage may be named by its pass: the last that changed something", () => {
  assert.deepEqual(chosen("#stage=A"), { before: 0, after: 1 });
  assert.deepEqual(chosen("#stage=B"), { before: 1, after: 2 });
});

test("the stage before is never behind the stage after", () => {
  assert.deepEqual(chosen("#stage=1&from=3"), { before: 1, after: 1 });
  assert.deepEqual(chosen("#from=1"), {});
});

test("what makes no sense is left out and said", () => {
  assert.deepEqual(chosen("#stage=9&compare=none&node=gone&color=red"), {});
  assert.deepEqual(wrong("#stage=9"), ["there is no stage 9"]);
  assert.deepEqual(wrong("#node=gone"), ["there is no node gone at this stage"]);
  assert.deepEqual(wrong("#color=red"), ["color means nothing here"]);
  assert.equal(wrong("#compare=none").length, 1);
  assert.deepEqual(wrong("#stage=%E0%A4%A"), ["there is no stage %E0%A4%A"]);
});
