// @ts-check
// The widget in a notebook: questions go to the kernel as messages, choices are traits.
import { Explorer } from "./explorer/explorer.js";
import { kernelTools } from "./live/kernel_tools.js";

/** @returns {import("./types.js").Host} */
function host(model, answered) {
  const waiting = new Map();
  let [last, saving] = [0, false];
  // what is chosen together reaches the kernel together
  const save = () => {
    if (!saving) queueMicrotask(() => ((saving = false), model.save_changes()));
    saving = true;
  };
  model.on("msg:custom", (message) => {
    answered();
    waiting.get(message.id)?.(message.answer);
    waiting.delete(message.id);
  });
  return {
    live: true,
    ask: (what, args) =>
      new Promise((done) => {
        const id = `${Date.now()}-${(last += 1)}-${Math.random()}`;
        waiting.set(id, done);
        model.send({ id, what, args });
      }),
    get: (name) => model.get(name),
    set: (name, value) => {
      if (model.get(name) === value) return;
      model.set(name, value);
      save();
    },
    on: (name, run) => model.on(`change:${name}`, run),
  };
}

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    root.style.height = `${model.get("height")}px`;
    root.style.display = "none"; // a page without a kernel keeps the picture that stands before the widget
    el.append(root);
    const stills = () =>
      [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-relaylab-still]"))].filter(
        (e) => e.dataset.relaylabStill === model.get("still"),
      );
    const hide = (element) => (element.style.display = "none");
    const answered = () => {
      root.style.display = "";
      for (const still of stills()) hide(still.closest(".jp-OutputArea-child") ?? still);
    };
    const explorer = new Explorer(root, host(model, answered), kernelTools);
    Object.assign(root, { explorer });
  },
};
