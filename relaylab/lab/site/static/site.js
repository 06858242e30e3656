// @ts-check
// The search of a site: all that it looks through is in the page.

const MOST = 80; // hits that are shown
const AROUND = 60; // characters before and after a hit

/** @typedef {{ kind: string, title: string, words: string, href: string, at: string }} Entry */

/** @type {Entry[]} */
const entries = JSON.parse(document.getElementById("site-data").textContent).map((e) => ({
  ...e,
  at: `${e.title}\n${e.words}\n${e.kind}`.toLowerCase(),
}));
const field = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const [found, all, count] = ["found", "all", "count"].map((id) => document.getElementById(id));

const chinese = (text) => /[\u3400-\u9fff]/.test(text);

// how good a hit is: words in the title count most, then the language of what is asked, then titles that are short
function rank(entry, words) {
  const title = entry.title.toLowerCase();
  const same = chinese(title) === chinese(words.join(""));
  return words.filter((w) => title.includes(w)).length * 1000 + (same ? 500 : 0) - title.length;
}

// the text around the first word that is found in it
function around(entry, words) {
  const text = entry.words.toLowerCase();
  const places = words.map((w) => text.indexOf(w)).filter((i) => i >= 0);
  const start = places.length ? Math.max(0, Math.min(...places) - AROUND) : 0;
  return `${start ? "…" : ""}${entry.words.slice(start, start + 3 * AROUND)}`;
}

function row(entry, words) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: entry.href, textContent: entry.title });
  const kind = Object.assign(document.createElement("small"), { textContent: entry.kind });
  const text = Object.assign(document.createElement("p"), { textContent: around(entry, words) });
  item.append(link, " ", kind, text);
  return item;
}

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length ? entries.filter((e) => words.every((w) => e.at.includes(w))) : [];
  hits.sort((a, b) => rank(b, words) - rank(a, words));
  found.replaceChildren(...hits.slice(0, MOST).map((e) => row(e, words)));
  all.hidden = words.length > 0;
  count.textContent = words.length ? `${hits.length} hit${hits.length === 1 ? "" : "s"}` : "";
}

function arrive() {
  const [, asked = ""] = /^#q=(.*)$/.exec(location.hash) ?? [];
  try {
    field.value = decodeURIComponent(asked.replace(/%(?![0-9a-f]{2})/gi, "%25"));
  } catch {
    field.value = asked; // not UTF-8
  }
  search();
}

field.hidden = false;
field.addEventListener("input", () => {
  search();
  history.replaceState(null, "", field.value ? `#q=${encodeURIComponent(field.value)}` : location.pathname);
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.target === field) return;
  field.focus();
  e.preventDefault();
});
window.addEventListener("hashchange", arrive);
arrive();
