// @ts-check
// The explorer in another language. All parts speak English; their words are translated where they stand, by a table
// that comes with the widget or the page. What comes from programs stands where nothing is translated.

const OWN_WORDS = "script,style,.rl-code,.rl-ins,.rl-doc,.rl-operators td,.rl-line:not(.rl-gap),[translate=no]";
const SAYING = ["title", "placeholder", "aria-label", "aria-valuetext"];
const HOLE = /\{\w+\}/g;
// between the parts of a text, the wider first
const BETWEEN = ["\n", "; ", "^ ", ": ", "▸ ", "▾ ", "✓ ", "✗ ", ", "];
const FULL_WIDTH = { "; ": "；", ": ": "：", ", ": "，" };

const exactly = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const hole = (place) => (place.startsWith("{name") ? "([^\\s,:;]+?)" : place === "{n}" ? "([^,:;]*?)" : "([^]*?)");

// Entries with places, `{n} hits`: what they match, and how they are put together; those that say most come first.
function sentences(table) {
  const said = (key) => key.replace(HOLE, "").length;
  const keys = Object.keys(table).filter((key) => key.match(HOLE));
  return keys
    .sort((a, b) => said(b) - said(a))
    .map((key) => {
      const places = /** @type {string[]} */ (key.match(HOLE));
      const [first, ...parts] = key.split(HOLE).map(exactly);
      return {
        places,
        text: table[key],
        shape: RegExp(`^${first}${parts.map((p, i) => hole(places[i]) + p).join("")}$`),
      };
    });
}

/**
 * What says a text in another language; undefined if nothing does. Texts of the table that have places stand for all
 * texts like them: a place called `name…` holds one word, `n` a number, and what is in one called `words…` is
 * translated too. Of a text that is not there the parts may be: lines, what stands around a colon, all of a list.
 * @param {Record<string, string>} table
 * @returns {(text: string) => string | undefined}
 */
export function translator(table) {
  const known = new Map(Object.entries(table));
  const templates = sentences(table);
  const filled = (all) => {
    for (const { places, text, shape } of templates) {
      const [, ...inside] = shape.exec(all) ?? [];
      const put = (place) => {
        const held = inside[places.indexOf(place)];
        return (place.startsWith("{words") && say(held)) || held;
      };
      if (inside.length) return text.replace(HOLE, put);
    }
  };
  const pieces = (text) => {
    for (const between of BETWEEN) {
      const parts = text.split(between);
      if (parts.length < 2) continue;
      const told = parts.map((part) => part && say(part));
      const list = between === ", ";
      if (told.some(Boolean) && !(list && told.includes(undefined)))
        return parts.map((part, k) => told[k] ?? part).join(FULL_WIDTH[between] ?? between);
    }
  };
  const say = (text) => {
    if (!/[a-z]/i.test(text)) return;
    if (!known.has(text)) {
      const words = text.trim();
      const told = known.get(words) ?? filled(words) ?? pieces(words);
      known.set(text, told && text.replace(words, () => told));
    }
    return known.get(text);
  };
  return say;
}

/**
 * Translates what stands in an element, now and from now on.
 * @param {HTMLElement} root
 * @param {Record<string, string>} table
 */
export function speak(root, table) {
  const say = translator(table);
  const kept = (node) => (node.closest ? node : node.parentElement)?.closest(OWN_WORDS);
  // a single word in a picture is a name
  const text = (node) => {
    const told = node.data.includes(" ") || !node.parentElement?.closest("svg") ? say(node.data) : undefined;
    if (told) node.data = told;
  };
  const attribute = (element, name) => {
    const told = say(element.getAttribute(name) ?? "");
    if (told) element.setAttribute(name, told);
  };
  const whole = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return text(node);
    if (!node.matches || node.matches(OWN_WORDS)) return;
    for (const name of SAYING) attribute(node, name);
    node.childNodes.forEach(whole);
  };
  const watch = new MutationObserver((changes) => {
    for (const { type, target, attributeName, addedNodes } of changes)
      if (kept(target)) continue;
      else if (type === "childList") addedNodes.forEach(whole);
      else if (type === "attributes") attribute(target, attributeName);
      else text(target);
    watch.takeRecords(); // of what was translated now
  });
  whole(root);
  watch.observe(root, { subtree: true, childList: true, characterData: true, attributeFilter: SAYING });
}
