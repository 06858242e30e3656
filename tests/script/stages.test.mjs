// Which stages there are, where a step leads, which are beside each other at first.
import assert from "node:assert/strict";
import { test } from "node:test";
import { firstStages } from "../../relaylab/lab/static/tabs/side_by_side.js";
import { Stages } from "../../relaylab/lab/static/explorer/stages.js";

const pass = (name, changed, error = "") => ({ name, changed, error });
const ROWS = [pass("A", false), pass("B", true), pass("C", false), pass("D", true), pass("E", false)];

function stages(before, after, rows = ROWS) {
  const chosen = { before, after };
  const made = new Stages((name) => chosen[name]);
  made.load({ title: "", rows, frames: rows.length + 1 });
  return made;
}

test("stages between two changes are the first of them", () => {
  const found = stages(0, 0);
  assert.deepEqual(found.changing, [0, 2, 4]);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5].map((f) => found.settled(f)),
    [0, 0, 2, 2, 4, 4],
  );
});

test("a pass that failed is a stage to stop at", () => {
  assert.deepEqual(stages(0, 0, [pass("A", false, "broken"), pass("B", false)]).changing, [0, 1]);
});

test("a step leads to the next stage that differs, and no further than the ends", () => {
  assert.equal(stages(0, 0).next(1), 2);
  assert.equal(stages(1, 2).next(1), 4);
  assert.equal(stages(3, 4).next(1), undefined);
  assert.equal(stages(3, 4).next(-1), 2);
  assert.equal(stages(0, 3).next(-1), 2);
  assert.equal(stages(0, 0).next(-1), undefined);
});

test("a step over every pass", () => {
  assert.equal(stages(0, 0).next(1, true), 1);
  assert.equal(stages(0, 0).next(-1, true), undefined);
  assert.equal(stages(4, 5).next(1, true), undefined);
});

test("what is chosen beyond the end is the end", () => {
  const found = stages(9, 12);
  assert.deepEqual([found.before, found.after, found.last], [5, 5, 5]);
});

test("what is compared, in words", () => {
  assert.equal(stages(0, 0).title, "source program");
  assert.equal(stages(1, 2).title, "2 B");
  assert.equal(stages(2, 2).title, "after 2 B");
  assert.equal(stages(0, 4).title, "from the source to 4 D");
  assert.equal(stages(2, 4).title, "from 2 B to 4 D");
});

test("side by side: what is compared first, then the ends, each once", () => {
  assert.deepEqual(firstStages(stages(3, 4)), { shown: [2, 4], spare: [0] });
  assert.deepEqual(firstStages(stages(0, 0)), { shown: [0, 4], spare: [2] });
});
