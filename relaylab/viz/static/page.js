// @ts-check
// A self-contained page of several pictures.
import { Picture, unpack } from "./graph.js";

function html(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// A document of several pictures: a list of pages, a search field, the picture, what is selected in words.
function mount(root, book) {
  const view = html("div", { className: "rl-view" });
  const panel = html("aside", { className: "rl-panel" });
  panel.setAttribute("aria-live", "polite");
  const list = html("nav", { className: "rl-pages" });
  const field = html("input", {
    className: "rl-search",
    type: "search",
    placeholder: "search (/)",
    ariaLabel: "search nodes",
  });
  const hits = html("span", { className: "rl-hits" });
  const help = [
    "drag or wheel: move",
    "Ctrl+wheel, + −: zoom",
    "f: fit",
    "↑ ↓: along edges",
    "u d: up and downstream",
    "n: next hit",
  ].join(" · ");
  const bar = html(
    "header",
    { className: "rl-bar" },
    html("strong", { textContent: book.title }),
    field,
    hits,
    html("span", { className: "rl-help", textContent: help }),
  );
  root.classList.add("rl-root");
  root.replaceChildren(
    bar,
    html("div", { className: "rl-body" }, ...(book.pages.length > 1 ? [list] : []), view, panel),
  );

  const state = { page: -1, picture: null };
  const link = (id) => {
    const item = html("button", { className: "rl-link", textContent: state.picture.byId.get(id).data.label || id });
    item.addEventListener("click", () => state.picture.select(id, true));
    return item;
  };
  const about = (data) => {
    if (!data)
      return panel.replaceChildren(
        html("p", { className: "rl-quiet", textContent: "Select a node to read about it." }),
      );
    const parts = [
      html("h2", { textContent: data.label.split("\n")[0] }),
      html("pre", { textContent: data.detail || data.label }),
    ];
    for (const [title, end] of [
      ["from", "target"],
      ["to", "source"],
    ]) {
      const near = [...new Set(state.picture.near(data.id, end))];
      if (near.length) parts.push(html("h3", { textContent: title }), ...near.slice(0, 60).map(link));
    }
    panel.replaceChildren(...parts);
  };
  const show = (index) => {
    if (index < 0 || index >= book.pages.length || index === state.page) return;
    state.page = index;
    const chosen = state.picture?.selected;
    state.picture = new Picture(view, book.pages[index], { select: about });
    [...list.children].forEach((button, i) => button.setAttribute("aria-current", String(i === index)));
    list.children[index]?.scrollIntoView({ block: "nearest" });
    hits.textContent = field.value ? `${state.picture.search(field.value)} hits` : "";
    if (chosen && state.picture.byId.has(chosen)) state.picture.select(chosen, true);
    else about(null);
  };
  book.pages.forEach((page, index) => {
    const button = html("button", { textContent: page.title || `page ${index + 1}` });
    button.addEventListener("click", () => show(index));
    list.append(button);
  });
  field.addEventListener("input", () => {
    const count = state.picture.search(field.value);
    hits.textContent = field.value ? `${count} hit${count === 1 ? "" : "s"}` : "";
  });
  field.addEventListener("keydown", (e) => e.key === "Enter" && state.picture.next(e.shiftKey ? -1 : 1));
  root.addEventListener("keydown", (e) => {
    if (e.target === field || e.ctrlKey || e.metaKey) return;
    if (e.key === "/") field.focus();
    else if (e.key === "ArrowRight" || e.key === "]") show(state.page + 1);
    else if (e.key === "ArrowLeft" || e.key === "[") show(state.page - 1);
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  show(0);
  return { show, state, select: (id) => state.picture.select(id, true), search: (text) => state.picture.search(text) };
}

const carrier = document.getElementById("relaylab-data");
unpack(carrier.textContent).then((book) => {
  Object.assign(window, { relaylab: mount(document.getElementById("relaylab"), book) });
});
