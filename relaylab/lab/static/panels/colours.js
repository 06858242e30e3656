// @ts-check
// Code in colours; the rules of each language are those of `relaylab.text.colours`.
import { LANGUAGES } from "./languages.js";

/** @type {Record<string, RegExp>} */
const matchers = {};

// Where a comment that may hold comments ends.
function commentEnd(text, at) {
  const edge = /\/\*|\*\//g;
  edge.lastIndex = at;
  let depth = 0;
  for (let found = edge.exec(text); found; found = edge.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (!depth) return edge.lastIndex;
  }
  return text.length;
}

/**
 * The tokens of a text, kind and text; together they are the text.
 * @returns {[kind: string, text: string][]}
 */
export function codeTokens(text, language) {
  const rules = LANGUAGES[language];
  const matcher = (matchers[language] ??= new RegExp(rules.map(([, rule]) => `(${rule})`).join("|"), "gm"));
  /** @type {[string, string][]} */
  const made = [];
  let at = 0;
  const next = () => ((matcher.lastIndex = at), matcher.exec(text));
  for (let found = next(); found; found = next()) {
    if (found.index > at) made.push(["", text.slice(at, found.index)]);
    let kind = rules[found.findIndex((part, k) => k && part !== undefined) - 1][0];
    at = matcher.lastIndex;
    if (kind === "nested") [kind, at] = ["comment", commentEnd(text, found.index)];
    made.push([kind, text.slice(found.index, at)]);
  }
  if (at < text.length) made.push(["", text.slice(at)]);
  return made;
}

function piece(kind, text, differs) {
  if (differs) return Object.assign(document.createElement("mark"), { textContent: text });
  return kind ? Object.assign(document.createElement("span"), { className: `rl-t-${kind}`, textContent: text }) : text;
}

/**
 * What an element is to hold for a text in a language; without one the text as it is.
 * @param {string} text
 * @param {string} [language]
 * @param {number[]} [words]  beginnings and ends of words that are marked, and have no other colour
 */
export function coloured(text, language, words = []) {
  const made = [];
  const edges = words.map((n) => [...text].slice(0, n).join("").length); // characters may be two units long
  let [at, edge] = [0, 0];
  for (const [kind, part] of language ? codeTokens(text, language) : [["", text]])
    for (const end = at + part.length; at < end;) {
      while (edges[edge] <= at) edge += 1;
      const next = Math.min(end, edges[edge] ?? end);
      made.push(piece(kind, text.slice(at, next), edge % 2));
      at = next;
    }
  return made;
}
