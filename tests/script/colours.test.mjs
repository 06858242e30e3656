// The tokens of code, held to those that Python finds with the same table.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { coloured, codeTokens } from "../../relaylab/lab/static/panels/colours.js";

for (const [language, text, expected] of JSON.parse(readFileSync(process.env.CASES, "utf8")).coloured)
  test(`${language}: ${text.slice(0, 20)}`, () => assert.deepEqual(codeTokens(text, language), expected));

test("places in a text are counted in characters", () => {
  Object.assign(globalThis, { document: { createElement: () => ({}) } });
  assert.deepEqual(coloured("😀 a b", "", [2, 3]), ["😀 ", { textContent: "a" }, " b"]);
});
