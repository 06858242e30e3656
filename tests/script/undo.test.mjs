// Taking back and doing again.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Undo } from "../../relaylab/lab/static/explorer/undo.js";

function made() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["Date"], now: 1000 });
  const state = { before: 0, after: 1, pane: "graph", compare: "merged" };
  const [said, edits] = [[], []];
  const undo = new Undo({
    get: (name) => state[name],
    set: (name, value) => (state[name] = value),
    edit: (what) => edits.push(what),
    say: (text) => said.push(text),
    refresh: () => {},
    changed: () => {},
  });
  const move = (after, ms = 1000) => {
    mock.timers.tick(ms);
    undo.moving();
    state.after = after;
  };
  return { undo, state, said, edits, move };
}

test("moves are taken back one by one, and done again", () => {
  const { undo, state, move } = made();
  move(2);
  move(3);
  undo.back();
  assert.equal(state.after, 2);
  undo.back();
  assert.equal(state.after, 1);
  undo.forward();
  undo.forward();
  assert.equal(state.after, 3);
});

test("moves in quick succession are one", () => {
  const { undo, state, move } = made();
  move(2);
  move(3, 100);
  move(4, 100);
  undo.back();
  assert.equal(state.after, 1);
});

test("an edit is undone by the kernel, between moves", () => {
  const { undo, state, edits, move } = made();
  move(2);
  undo.edited("toggle");
  move(3, 10); // right after an edit, and still a move of its own
  undo.back();
  assert.equal(state.after, 2);
  undo.back();
  assert.deepEqual(edits, ["undo"]);
  undo.forward();
  assert.deepEqual(edits, ["undo", "redo"]);
});

test("a new move forgets what could be done again", () => {
  const { undo, said, move } = made();
  move(2);
  undo.back();
  move(3);
  undo.forward();
  assert.deepEqual(said, ["nothing to redo"]);
});

test("keys", () => {
  const { undo, state, move } = made();
  move(2);
  const key = (key, more = {}) => undo.key({ key, ctrlKey: false, metaKey: false, shiftKey: false, ...more });
  assert.equal(key("z"), false);
  assert.equal(key("x", { ctrlKey: true }), false);
  assert.equal(state.after, 2);
  assert.equal(key("z", { ctrlKey: true }), true);
  assert.equal(state.after, 1);
  assert.equal(key("Z", { metaKey: true, shiftKey: true }), true);
  assert.equal(state.after, 2);
});

test("what is edited just now is known before something is taken back", async () => {
  const { undo, edits } = made();
  let ready = () => {};
  let editing = new Promise((done) => (ready = done));
  undo.act.editing = () => editing;
  const back = undo.back();
  assert.deepEqual(edits, []);
  undo.edited("toggle");
  editing = null;
  ready();
  await back;
  assert.deepEqual(edits, ["undo"]);
});
