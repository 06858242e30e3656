// @ts-check
// Small helpers. Text from programs only ever becomes a text node or an attribute value.
import { coloured } from "./panels/colours.js";

/**
 * An element with properties (`on…` are listeners; aria, role and data attributes), and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [properties]
 * @param {(Node | string | null | undefined)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria") || name === "role" || name.startsWith("data-"))
      element.setAttribute(name === "ariaLabel" ? "aria-label" : name, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element[name] = value;
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

export const button = (text, title, onclick) =>
  el("button", { className: "rl-button", textContent: text, title, onclick });
export const link = (text, onclick, title = "") =>
  el("button", { className: "rl-link", textContent: text, title, onclick });
/** @param {"p" | "span" | "div"} tag */
export const dim = (text, tag = "p") => el(tag, { className: "rl-dim", textContent: text });
export const heading = (text) => el("h2", { textContent: text });
export const subheading = (text) => el("h3", { textContent: text });
/** @param {any[]} children  what opens under a title */
export const fold = (title, className, ...children) =>
  el("details", { className }, el("summary", { textContent: title }), ...children);
export const cross = (title, onclick) =>
  el("button", { className: "rl-tool rl-drop", textContent: "×", title, onclick });
export const paragraph = (text) => el("p", { textContent: text });
/** @param {string} [language]  whose colours it has */
export const code = (text, language) => el("pre", { className: "rl-code" }, ...coloured(text, language));
export const problem = (text) => el("pre", { className: "rl-error", textContent: text });

// A select with its options, (value, text) each.
export function select(label, options, chosen, pick) {
  const element = el(
    "select",
    { ariaLabel: label, onchange: () => pick(element.value) },
    ...options.map(([value, text]) => el("option", { value: String(value), textContent: text })),
  );
  element.value = String(chosen);
  return element;
}

// What people chose, remembered by the browser; where it has no storage, until the page is left.
export function recall(key) {
  try {
    return JSON.parse(localStorage.getItem(key) || "null");
  } catch {
    return null;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // it holds until the page is left
  }
}

export function short(number) {
  const size = Math.abs(number);
  for (const [unit, name] of /** @type {[number, string][]} */ ([
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]))
    if (size >= 0.9995 * unit) return `${(number / unit).toPrecision(3)}${name}`;
  return `${size < 0.1 ? Number(number.toPrecision(3)) : Math.round(number * 100) / 100}`;
}

export const signed = (number) => `${number > 0 ? "+" : "−"}${short(Math.abs(number))}`;
export const count = (n, what) => `${n} ${what}${n === 1 ? "" : /s$/.test(what) ? "es" : "s"}`;

/**
 * A row of buttons of which one is chosen.
 * @param {string} label
 * @param {string[][]} options  value, text, hint
 * @param {string} chosen
 * @param {(value: string) => void} pick
 */
export function choice(label, options, chosen, pick) {
  const group = el("span", { className: "rl-choice", role: "group", "aria-label": label });
  const buttons = options.map(([value, text, hint]) => {
    const made = el("button", { textContent: text, title: hint ?? "", onclick: () => pick(value) });
    made.dataset.value = value;
    return made;
  });
  group.append(...buttons);
  const mark = (value) => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
  mark(chosen);
  return { group, mark };
}
