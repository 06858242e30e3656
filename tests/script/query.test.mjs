// The query language of the search field.
import assert from "node:assert/strict";
import { test } from "node:test";
import { query } from "../../relaylab/lab/static/explorer/query.js";

const node = (id, extra = {}) => ({ id, kind: "node", label: id, detail: "", role: "", ...extra });
const SCENE = {
  figures: [
    node("main/x", { label: "%x", detail: "input of two" }),
    node("main/conv", { label: "Conv2D", role: "added" }),
    node("main/dense", { label: "dense", role: "removed" }),
    { id: "main", kind: "group", label: "conv group", detail: "", role: "" },
  ],
  nodes: [
    ["main/conv", "main", "nn.conv2d", "Tensor[(1, 8, 4, 4), float16]", ["strides=[2, 2]", "groups=1"]],
    ["main/dense", "fused", "nn.dense", "Tensor[(8, 4), float32]", []],
  ],
};

const CASES = [
  ["conv", ["main/conv"]], // words look at id, label and detail, in any case; groups are no nodes
  ["INPUT two", ["main/x"]],
  ["input three", []],
  ["op:conv", ["main/conv"]],
  ["OP:Dense", ["main/dense"]],
  ["op:/^nn\\./", ["main/conv", "main/dense"]],
  ["op:/^dense$/", []],
  ["attr:strides=[2", ["main/conv"]],
  ["dtype:float16", ["main/conv"]],
  ["type:(8,", ["main/dense"]],
  ["role:added", ["main/conv"]],
  ["in:fused", ["main/dense"]],
  ["op:nn role:removed", ["main/dense"]],
  ["/^main.x$/", []], // the id is a line of what is looked at, not all of it
  ["/%x/", ["main/x"]],
  ["op:", ["main/x", "main/conv", "main/dense"]],
];

for (const [text, expected] of CASES) test(text, () => assert.deepEqual(query(text, SCENE), expected));

test("an empty query finds nothing in particular", () => {
  assert.equal(query("", SCENE), null);
  assert.equal(query("  ", SCENE), null);
});

test("an expression that is not finished yet is left out", () => {
  assert.equal(query("op:/(/", SCENE), null);
  assert.deepEqual(query("/[/ dense", SCENE), ["main/dense"]);
});
