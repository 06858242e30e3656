// The query language of the search field, held to the table that holds the reader in Python.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { completions, query } from "../../relaylab/lab/static/explorer/query.js";

const { parts, meant, wrong, completed } = JSON.parse(readFileSync(process.env.CASES, "utf8")).queries;
const byId = new Map(parts.map((p) => [p.id, p]));
for (const part of parts) {
  part.groups = [];
  for (let at = byId.get(part.group); at; at = byId.get(at.group)) part.groups.push(at.title);
}
const select = (text) => parts.filter(query(text) ?? (() => false)).map((p) => p.id);

for (const [text, ids] of meant)
  test(`means: ${text}`, () => assert.deepEqual(select(text), ids ? ids.split(" ") : []));

for (const [text, place, word] of wrong)
  test(`wrong: ${text}`, () =>
    assert.throws(
      () => query(text),
      (e) => (e.place === place && e.message.includes(word)) || e.help.includes(word),
    ));

test("an empty query means nothing in particular", () => assert.equal(query("  "), null));

test("deep queries do not recurse", () => {
  assert.deepEqual(select("(".repeat(5000) + "op:relu" + ")".repeat(5000)), ["r"]);
  assert.deepEqual(select("!".repeat(5001) + "op:relu"), ["x", "c", "t", "f", "k"]);
});

for (const [text, from, words] of completed)
  test(`completed: ${text}`, () => {
    const found = completions(text, parts);
    assert.equal(found.from, from);
    assert.deepEqual(found.words.slice(0, words.length), words);
    for (const word of found.words) if (!/[:>]$/.test(word)) query(text.slice(0, from) + word);
  });
