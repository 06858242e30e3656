// Small helpers. Text from programs only ever becomes a text node or an attribute value.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria") || name === "role" || name.startsWith("data-")) element.setAttribute(name === "ariaLabel" ? "aria-label" : name, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element[name] = value;
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

export function short(number) {
  const size = Math.abs(number);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return `${(number / unit).toPrecision(3)}${name}`;
  return `${Math.round(number * 100) / 100}`;
}

export const signed = (number) => `${number > 0 ? "+" : "−"}${short(Math.abs(number))}`;
export const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// A row of buttons of which one is chosen.
export function choice(label, options, chosen, pick) {
  const group = el("span", { className: "rl-choice", role: "group", "aria-label": label });
  const mark = (value) => [...group.children].forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
  for (const [value, text, hint] of options) {
    const button = el("button", { textContent: text, title: hint ?? "", onclick: () => pick(value) });
    button.dataset.value = value;
    group.append(button);
  }
  mark(chosen);
  return { group, mark };
}
