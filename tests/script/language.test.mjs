// Words in another language: whole texts, texts with places, and what is made of several.
import assert from "node:assert/strict";
import { test } from "node:test";
import { translator } from "../../relaylab/lab/static/language.js";

const say = translator({
  added: "新增",
  removed: "移除",
  changed: "改变",
  "{n} added": "{n} 新增",
  "{n} removed": "{n} 移除",
  "{n} hits": "{n} 处",
  "1 group": "1 个组",
  "{words} folded: expand": "已折叠 {words}：展开",
  "type was {old}": "类型原为 {old}",
  "{name} was {old}": "{name} 原为 {old}",
  "from {nodes}": "来自 {nodes}",
  "a word is missing": "缺少一个词",
  "{a} edges from {b}": "从 {b} 起 {a} 条边",
});

test("a text, and a text like one of the table", () => {
  assert.equal(say("added"), "新增");
  assert.equal(say(" added "), " 新增 ");
  assert.equal(say("12 hits"), "12 处");
  assert.equal(say("3 edges from %1"), "从 %1 起 3 条边"); // the one that says more
  assert.equal(say("1 group folded: expand"), "已折叠 1 个组：展开");
});

test("what is not there stays as it is", () => {
  for (const text of ["", "12", "nn.conv2d", "%0 = add(%x, %y)", "data, added by hand", "新增"])
    assert.equal(say(text), undefined);
});

test("parts of a text", () => {
  assert.equal(
    say("changed: axis was 1; type was Tensor[(1, 3), float32]"),
    "改变：axis 原为 1；类型原为 Tensor[(1, 3), float32]",
  );
  assert.equal(say("FoldConstant: 3 removed, 1 added"), "FoldConstant：3 移除，1 新增");
  assert.equal(say("op:\n   ^ a word is missing"), "op:\n   ^ 缺少一个词");
  assert.equal(say(", added"), "，新增");
});

test("what a program puts in is no pattern", () => {
  assert.equal(say("from $& {nodes} $1"), "来自 $& {nodes} $1");
});
