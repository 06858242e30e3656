// @ts-check
// A self-contained page of several pictures.
import { onward, Picture, unpack } from "./graph.js";

class Page extends Picture {
  select(id, show = false) {
    this.svg.querySelectorAll(".selected, .near").forEach((e) => e.classList.remove("selected", "near"));
    this.selected = this.byId.has(id) ? id : null;
    if (this.selected !== null) {
      this.byId.get(id).element.classList.add("selected");
      for (const { data, element } of this.edges)
        if (data.source === id || data.target === id) element.classList.add("near");
      if (show) this.reveal(id);
    }
    this.on.select?.(this.selected === null ? null : this.byId.get(id).data);
  }

  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const says = (data) => `${data.id}\n${data.label}\n${data.detail}`.toLowerCase();
    this.hits = words.length
      ? [...this.byId.values()]
          .filter(({ data }) => data.kind === "node" && words.every((w) => says(data).includes(w)))
          .map(({ data }) => data.id)
      : [];
    this.mark(words.length ? new Set(this.hits) : null);
    return this.hits.length;
  }

  next(step = 1) {
    if (this.hits?.length) this.select(onward(this.hits, this.selected, step), true);
  }

  key(e) {
    if (e.key !== "n" || e.ctrlKey || e.metaKey || e.altKey) return super.key(e);
    e.preventDefault();
    this.next();
  }
}

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
    item.addEventListener("click", () => {
      state.picture.select(id, true);
      state.picture.svg.focus({ preventScroll: true }); // the link is gone
    });
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
  const search = () => {
    const count = state.picture.search(field.value);
    hits.textContent = field.value ? `${count} hit${count === 1 ? "" : "s"}` : "";
  };
  const show = (index) => {
    if (index < 0 || index >= book.pages.length || index === state.page) return;
    state.page = index;
    const chosen = state.picture?.selected;
    state.picture = new Page(view, book.pages[index], { select: about });
    [...list.children].forEach((button, i) => button.setAttribute("aria-current", String(i === index)));
    list.children[index]?.scrollIntoView({ block: "nearest" });
    search();
    if (chosen && state.picture.byId.has(chosen)) state.picture.select(chosen, true);
    else about(null);
  };
  book.pages.forEach((page, index) => {
    const button = html("button", { textContent: page.title || `page ${index + 1}` });
    button.addEventListener("click", () => show(index));
    list.append(button);
  });
  field.addEventListener("input", search);
  field.addEventListener("keydown", (e) => e.key === "Enter" && state.picture.next(e.shiftKey ? -1 : 1));
  root.addEventListener("keydown", (e) => {
    if (e.target === field || e.ctrlKey || e.metaKey || e.altKey) return;
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
