// @ts-check
// The query language of pictures, read as `viz.selection.query` reads it: one table of cases holds both.

/** @typedef {(part: any) => boolean} Test */

const QUERY_HEAD = /([A-Za-z_]\w*)(:|>=|<=|==|>|<|=)/y;
const BINDING = { "|": 1, "&": 2, "!": 3 };
const LONE = /^(>=|<=|==|>|<|=)[\d.]*$/;
const COMPARE = {
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  "=": (a, b) => a === b,
  "==": (a, b) => a === b,
};
// of which some pictures have none
const FIGURES = "MACs bytes intensity users inputs cost bytes_read bytes_written time".split(" ");
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

// the fields: the texts of a part, and whether a value must be the whole of one
const FIELDS = {
  op: [(p) => (p.operator ? [p.operator, p.operator.split(".").at(-1)] : []), true],
  dtype: [(p) => p.type.match(/\b(?:u?int|b?float|bool)\d*\b/g) ?? [], true],
  type: [(p) => [p.type], false],
  name: [(p) => [p.title, p.id, ...p.names], false],
  kind: [(p) => [p.kind], true],
  role: [(p) => [p.role], true],
  attr: [(p) => p.attrs.flatMap(([name, value]) => [name, `${name}=${value}`]), true],
  text: [(p) => [p.text], false],
  group: [(p) => p.groups, false],
  family: [(p) => [p.family], true],
  span: [(p) => [p.span], false],
  note: [(p) => [p.note], false],
  id: [(p) => [p.id], true],
};

// A query that cannot be understood: what is wrong, where, and what helps.
export class QueryError extends Error {
  constructor(message, place, help = "") {
    super(message);
    this.place = place;
    this.help = help;
  }
}

const everything = (p) =>
  [
    ...[p.title, p.id, p.type, p.text, p.span, p.note, p.role, p.kind, ...p.rows],
    ...p.attrs.map(([name, value]) => `${name}=${value}`),
    ...[p.operator, ...p.names],
    ...p.operands.map(([name, text, type]) => `${name} ${text} ${type}`),
  ].filter(Boolean);

// What people write alike is alike: capitals, blanks, brackets.
const alike = (text) => text.toLowerCase().replaceAll(" ", "").replaceAll("[", "(").replaceAll("]", ")");

function headOf(text, at) {
  QUERY_HEAD.lastIndex = at;
  return QUERY_HEAD.exec(text);
}

// ---- reading

function* wordsOf(query) {
  for (let at = 0; at < query.length;) {
    const char = query[at];
    if ("&|!()".includes(char)) yield { kind: char, place: at++, text: "" };
    else if (" \t\n,".includes(char)) at++;
    else {
      const end = termEnd(query, at);
      yield { kind: "term", place: at, text: query.slice(at, end) };
      at = end;
    }
  }
}

// The end of a word: at a blank or an operator that is in no bracket, quote or regular expression.
function termEnd(query, start) {
  let at = start + (headOf(query, start)?.[0].length ?? 0);
  if (at < query.length && "/\"'".includes(query[at])) return closing(query, at);
  let depth = 0;
  for (; at < query.length; at++) {
    const char = query[at];
    if ("\"'".includes(char) && depth) at = closing(query, at) - 1;
    depth += Number("([{".includes(char)) - Number(")]}".includes(char));
    if (depth < 0 || (depth === 0 && " \t\n,&|!".includes(char))) break;
  }
  if (depth > 0 || at === start) throw new QueryError("a bracket stands alone", start);
  return at;
}

function closing(query, start) {
  let at = start + 1;
  while (at < query.length && query[at] !== query[start]) at += query[at] === "\\" ? 2 : 1;
  if (at < query.length) return at + 1;
  throw new QueryError(`this ${query[start] === "/" ? "regular expression" : "quotation"} is never closed`, start);
}

// The tokens, with `&` between words that stand side by side.
function* joined(query) {
  let ended = false;
  for (const token of wordsOf(query)) {
    if (ended && "term!(".includes(token.kind)) yield { kind: "&", place: token.place, text: "" };
    yield token;
    ended = token.kind === "term" || token.kind === ")";
  }
}

// Tests and operators in the order of evaluation (Dijkstra's shunting yard).
function postfix(query, more) {
  const [program, waiting] = [[], []];
  let operand = true; // what may come next
  for (const token of joined(query)) {
    const begins = ["term", "!", "("].includes(token.kind);
    if (operand !== begins)
      throw new QueryError(operand ? "a word is missing before this" : "an operator is missing", token.place);
    if (token.kind === "term") program.push(testOf(token, more));
    else if (token.kind === ")") {
      while (waiting.length && waiting.at(-1).kind !== "(") program.push(waiting.pop().kind);
      if (!waiting.pop()) throw new QueryError("this parenthesis was never opened", token.place);
    } else {
      while ("&|".includes(token.kind) && BINDING[waiting.at(-1)?.kind] >= BINDING[token.kind])
        program.push(waiting.pop().kind);
      waiting.push(token);
    }
    operand = token.kind !== "term" && token.kind !== ")";
  }
  if (operand) throw new QueryError("a word is missing here", query.length);
  for (const token of waiting.reverse()) {
    if (token.kind === "(") throw new QueryError("this parenthesis is never closed", token.place);
    program.push(token.kind);
  }
  return program;
}

// ---- words

function testOf({ text, place }, more) {
  const head = headOf(text, 0);
  if (!head && LONE.test(text)) throw new QueryError("a comparison has no spaces", place, "MACs>1e6");
  if (!head) {
    const found = matcher(text, place, false);
    return (p) => found(p, "everything", everything);
  }
  const [all, name, sign] = head;
  const [value, at] = [text.slice(all.length), place + all.length];
  if (!value) throw new QueryError(`\`${all}\` needs a value`, at);
  if (sign !== ":") return figureTest(name, sign, value, [place, at], more);
  if (!Object.hasOwn(FIELDS, name))
    throw new QueryError(`there is no field \`${name}\``, place, `there are: ${Object.keys(FIELDS).join(", ")}`);
  const [texts, whole] = FIELDS[name];
  const found = matcher(value, at, whole);
  return (p) => found(p, name, texts);
}

// Whether a text of a part is (`whole`) or holds a value; what stands between slashes is a regular expression.
function matcher(value, place, whole) {
  if (value.length > 1 && value[0] === "/" && value.at(-1) === "/") {
    let regex;
    try {
      regex = new RegExp(value.slice(1, -1));
    } catch (error) {
      throw new QueryError(`this regular expression is not valid: ${error.message.split(": ").at(-1)}`, place + 1);
    }
    return (p, field, texts) => texts(p).some((t) => regex.test(t));
  }
  const wanted = alike(value.length > 1 && "\"'".includes(value[0]) ? value.slice(1, -1) : value);
  const holds = whole ? (t) => t === wanted : (t) => t.includes(wanted);
  // a part is asked again with every key: what is compared is kept
  return (p, field, texts) => ((p.known ??= {})[field] ??= texts(p).map(alike)).some(holds);
}

function figureTest(name, sign, value, [place, at], more) {
  const plain = value.replaceAll("_", "");
  if (!NUMBER.test(plain))
    throw new QueryError(`\`${value}\` is not a number`, at, `fields of text are written ${name}:${value}`);
  const [limit, holds, key] = [Number(plain), COMPARE[sign], name.toLowerCase()];
  if (![...FIGURES, ...more].some((f) => f.toLowerCase() === key))
    throw new QueryError(`there is no figure \`${name}\``, place, `there are: ${FIGURES.join(", ")}`);
  return ({ figures }) => Object.hasOwn(figures, key) && holds(figures[key], limit);
}

/**
 * Whether a part is meant by a query; null for the empty one. Throws a `QueryError`.
 * @param {string} text
 * @param {Iterable<string>} more  the names of figures that the parts may have besides those of every picture
 * @returns {Test | null}
 */
export function query(text, more = []) {
  if (!text.trim()) return null;
  const program = postfix(text, more);
  return (part) => {
    const stack = [];
    for (const step of program) {
      if (step === "!") stack.push(!stack.pop());
      else if (typeof step === "string") {
        const [right, left] = [stack.pop(), stack.pop()];
        stack.push(step === "&" ? left && right : left || right);
      } else stack.push(step(part));
    }
    return stack[0];
  };
}

/**
 * What may stand where the cursor is: the place where the word begins, and whole words, the most frequent first.
 * @param {string} text  what stands before the cursor
 * @param {Iterable<any>} parts
 * @returns {{ from: number, words: string[] }}
 */
export function completions(text, parts) {
  const word = text.match(/[^\s,&|!()"'/]*$/)[0];
  const [, field, given] = word.match(/^(\w+):(.*)$/) ?? [null, "", word];
  const wanted = alike(given);
  const counts = new Map();
  const texts = FIELDS[field || "op"]?.[0];
  if (texts && (field || wanted))
    for (const part of parts)
      for (const t of texts(part)) if (t && alike(t).includes(wanted)) counts.set(t, (counts.get(t) ?? 0) + 1);
  // the end of an operator's name is another name for it
  const known = [...counts.keys()].filter((t) => ![...counts.keys()].some((other) => other.endsWith(`.${t}`)));
  const often = known.sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
  const quoted = (t) => (/[\s,&|!()"'/]/.test(t) && !/^[\w.]+=[([].*[)\]]$/.test(t) ? JSON.stringify(t) : t);
  const values = often.map((t) => `${field || "op"}:${quoted(t)}`);
  const keys = field ? [] : Object.keys(FIELDS).map((name) => `${name}:`);
  const figures = field || !wanted ? [] : FIGURES.map((name) => `${name}>`);
  const begins = [...keys, ...figures].filter((name) => alike(name).startsWith(wanted));
  return { from: text.length - word.length, words: [...begins, ...values].filter((w) => w !== word) };
}
