// @ts-check
// The address of what is shown: `#stage=7&from=5&node=main/nn.dense&compare=both&view=text`, read when
// the page opens and when it changes, written with every step. What makes no sense is left out, and said in words.

const VIEWS = ["graph", "text", "both", "code", "several", "heat"];
const strict = (text) =>
  encodeURIComponent(text)
    .replaceAll("%2F", "/")
    .replace(/[()'!*~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);

function pairsOf(hash) {
  return hash
    .replace(/^#/, "")
    .split("&")
    .filter(Boolean)
    .map((part) => {
      const [name, ...value] = part.split("=");
      try {
        return [name, decodeURIComponent(value.join("="))];
      } catch {
        return [name, value.join("=")];
      }
    });
}

// What an address chooses, and what is wrong with it; `knows(frame, id)` says whether a stage has a node.
export function read(hash, rows, knows) {
  /** @type {Record<string, any>} */
  const chosen = {};
  const wrong = [];
  const given = new Map(pairsOf(hash));
  const frame = (text) => {
    const named = rows.findLastIndex(
      (row) => row.name === text && (row.changed || !rows.some((r) => r.name === text && r.changed)),
    );
    const number = /^\d{1,6}$/.test(text) ? Number(text) : named + 1;
    return (number || text === "0") && number <= rows.length ? number : null;
  };
  const stage = (name, key) => {
    if (!given.has(name)) return;
    const number = frame(given.get(name));
    if (number === null) wrong.push(`there is no stage ${given.get(name)}`);
    else chosen[key] = number;
  };
  const word = (name, key, words) => {
    if (!given.has(name)) return;
    if (words.includes(given.get(name))) chosen[key] = given.get(name);
    else wrong.push(`${name} is ${words.join(" or ")}, not ${given.get(name)}`);
  };
  stage("stage", "after");
  stage("from", "before");
  if (chosen.after !== undefined)
    chosen.before = Math.min(chosen.before ?? Math.max(0, chosen.after - 1), chosen.after);
  else delete chosen.before;
  word("compare", "compare", ["merged", "both"]);
  word("view", "pane", VIEWS);
  const node = given.get("node");
  if (node === "" || (node && knows(chosen.after, node))) chosen.selected = node;
  else if (node) wrong.push(`there is no node ${node} at this stage`);
  for (const name of given.keys())
    if (!["stage", "from", "compare", "view", "node"].includes(name)) wrong.push(`${name} means nothing here`);
  return { chosen, wrong };
}

// The address of a choice, without what is as usual in a page.
export function address({ before, after, selected, compare, pane }, usual) {
  const other = (name, value) => (value === usual[name] ? null : value);
  const found = [
    ["stage", after],
    ["from", before === Math.max(0, after - 1) ? null : before],
    ["node", other("selected", selected)],
    ["compare", other("compare", compare)],
    ["view", other("pane", pane)],
  ];
  return `#${found
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${strict(String(value))}`)
    .join("&")}`;
}
