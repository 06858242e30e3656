// Edits of the list of passes that come before the answer to the edit before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Editor } from "../../relaylab/lab/static/explorer/editor.js";

// a kernel with a list of passes that answers late, and edits as `study.pipeline` does
function made() {
  const list = ["a", "b", "c", "d"];
  const edits = {
    remove: (index) => list.splice(index, 1),
    insert: (index, value) => list.splice(index, 0, value),
    move: (index, value) => list.splice(value, 0, ...list.splice(index, 1)),
    toggle: (index) => (list[index] = list[index].toUpperCase()),
  };
  const put = async (what, how, index, value) => {
    await new Promise((done) => setTimeout(done, 5));
    edits[how]?.(index, value);
    return { rows: [...list] };
  };
  const nothing = () => {};
  const act = { done: nothing, renew: nothing, read: nothing, problem: nothing, refused: nothing, leave: nothing };
  return { list, editor: new Editor({ ...act, put, count: () => list.length }) };
}

async function after(...edits) {
  const { list, editor } = made();
  const done = await Promise.all(edits.map((edit) => editor.edit(...edit)));
  assert.equal(editor.done, null);
  return [list.join(""), done.map(Boolean)];
}

test("each edit is meant for the list that was shown", async () => {
  assert.deepEqual(await after(["remove", 0], ["remove", 2]), ["bd", [true, true]]);
  assert.deepEqual(await after(["remove", 1], ["toggle", 3]), ["acD", [true, true]]);
  assert.deepEqual(await after(["insert", 1, "x"], ["toggle", 1]), ["axBcd", [true, true]]);
  assert.deepEqual(await after(["move", 0, 2], ["toggle", 0], ["toggle", 1]), ["BcAd", [true, true, true]]);
  assert.deepEqual(await after(["move", 3, 0], ["insert", 2, "x"]), ["dabxc", [true, true]]);
  assert.deepEqual(await after(["remove", 1], ["insert", 2, "x"]), ["axcd", [true, true]]);
});

test("a pass that is gone is not edited again, and a key pressed twice moves it twice", async () => {
  assert.deepEqual(await after(["remove", 1], ["remove", 1]), ["acd", [true, false]]);
  assert.deepEqual(await after(["move", 0, 1], ["move", 0, 1]), ["bcad", [true, true]]);
  assert.deepEqual(await after(["move", 2, 1], ["move", 2, 1], ["move", 2, 1]), ["cabd", [true, true, false]]);
  assert.deepEqual(await after(["move", 2, 3], ["move", 2, 3]), ["abdc", [true, false]]);
});
