// @ts-check
// A question about a picture: operators are chosen by clicking, or with the keyboard; the kernel judges.
import { button, el } from "./dom.js";
import { speak } from "./language.js";
import { Picture } from "../../viz/static/graph.js";

const TALLEST = 1000;
const UNIT = 1.3; // so many pixels, and the smallest words are above 9 px

// Several may be chosen; clicking again takes back. The wheel scrolls the notebook.
class Choices extends Picture {
  /** @param {string | null} id */
  select(id) {
    if (id !== null) this.on.select?.(id);
  }

  wheel(e) {
    if (e.ctrlKey || e.metaKey) super.wheel(e);
  }

  /**
   * Let these be chosen: they are boxes to tick for the keyboard and for screen readers.
   * @param {string[]} names
   */
  offer(names) {
    for (const name of names) {
      const box = this.byId.get(`main/${name}`)?.element;
      box?.setAttribute("role", "checkbox");
      box?.setAttribute("tabindex", "0");
      box?.setAttribute("aria-label", name);
      box?.addEventListener("keydown", (e) => {
        if (e.key !== " " && e.key !== "Enter") return;
        e.preventDefault();
        e.stopPropagation();
        this.select(`main/${name}`);
      });
    }
  }

  /**
   * @param {string[]} names
   * @param {string[]} chosen
   */
  tick(names, chosen) {
    for (const name of names) {
      const box = this.byId.get(`main/${name}`)?.element;
      box?.classList.toggle("selected", chosen.includes(name));
      box?.setAttribute("aria-checked", String(chosen.includes(name)));
    }
  }
}

export default {
  render({ model, el: place }) {
    const names = model.get("names");
    const scene = model.get("scene");
    const view = el("div", { className: "rl-predict-view" });
    view.style.height = `${Math.max(180, Math.min(TALLEST, scene.height * UNIT))}px`;
    const said = el("p", { className: "rl-predict-said", role: "status", translate: false });
    const list = el("span", { className: "rl-dim" });
    const choose = (chosen) => {
      model.set("chosen", chosen);
      model.set("verdict", {}); // which was about another answer
      model.save_changes();
    };
    const toggle = (id) => {
      const name = id.replace(/^main\//, "");
      const before = model.get("chosen");
      if (!names.includes(name)) return;
      choose(
        before.includes(name) ? before.filter((n) => n !== name) : names.filter((n) => [...before, name].includes(n)),
      );
    };
    // with what is chosen: choices may be on their way still, and would come after the question
    const ask = (what) => model.send({ what, chosen: model.get("chosen") });
    const bar = el(
      "div",
      { className: "rl-predict-bar" },
      button("Check", "is this what the compiler does?", () => ask("check")),
      button("Hint", "the next hint", () => ask("hint")),
      button("Clear", "choose nothing", () => choose([])),
      list,
    );
    const root = el("div", { className: "rl-explorer rl-predict" }, view, bar, said);
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    place.append(root);
    const picture = new Choices(view, scene, { select: toggle });
    picture.svg.style.minWidth = `${scene.width * UNIT}px`;
    picture.offer(names);
    const show = () => {
      const { right, words } = model.get("verdict");
      const chosen = model.get("chosen");
      picture.tick(names, chosen);
      list.textContent = chosen.length ? `chosen: ${chosen.join(", ")}` : "click the operators in the picture";
      said.textContent = words ? `${right ? "✓ " : ""}${words}` : "";
      root.dataset.verdict = words ? String(right) : "";
    };
    model.on("change:chosen", show);
    model.on("change:verdict", show);
    model.on("change:words", () => speak(root, model.get("words")));
    const language = model.get("language") || document.documentElement.lang.slice(0, 2);
    if (language && language !== "en") ask(language);
    const room = new ResizeObserver(() => picture.fit());
    room.observe(view);
    show();
    return () => room.disconnect();
  },
};
