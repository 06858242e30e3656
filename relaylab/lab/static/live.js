// @ts-check
// The widget in a notebook: questions go to the kernel as messages, choices are traits.
import { Explorer } from "./explorer/explorer.js";
import { speak } from "./language.js";
import { GONE, Kernel } from "./live/kernel.js";
import { kernelTools } from "./live/kernel_tools.js";

/**
 * @param {any} model
 * @param {() => void} answered
 * @param {(rows: any) => void} renew
 * @returns {{ host: import("./types.js").Host, kernel: Kernel }}
 */
function connect(model, answered, renew) {
  const waiting = new Map();
  let [last, saving] = [0, false];
  // what is chosen together reaches the kernel together
  const save = () => {
    if (!saving) queueMicrotask(() => ((saving = false), model.save_changes()));
    saving = true;
  };
  model.on("msg:custom", (message) => {
    if (message.doing) return void (kernel.doing = message.doing);
    answered();
    waiting.get(message.id)?.(message.answer);
    waiting.delete(message.id);
    kernel.answered();
  });
  const ask = (what, args) =>
    new Promise((done) => {
      if (kernel.gone) return done({ error: GONE });
      const id = `${Date.now()}-${(last += 1)}-${Math.random()}`;
      waiting.set(id, done);
      try {
        model.send({ id, what, args });
        kernel.asked();
      } catch {
        kernel.lost(); // its end of the line is closed
      }
    });
  const again = async () => {
    const rows = await ask("rows", []);
    if (!rows.error) renew(rows);
    return rows;
  };
  const kernel = new Kernel({ model, waiting, ask: again });
  const host = {
    live: true,
    ask,
    get: (name) => model.get(name),
    set: (name, value) => {
      if (model.get(name) === value) return;
      model.set(name, value);
      save();
    },
    on: (name, run) => model.on(`change:${name}`, run),
  };
  return { host, kernel };
}

// the words of the widget: as it was told, or else in the language of the notebook around it
async function translate(element, model, host) {
  const language = model.get("language") || document.documentElement.lang.slice(0, 2) || "en";
  if (language === "en") return;
  const { table } = await host.ask("wording", [language]);
  if (table && Object.keys(table).length) speak(element, table);
}

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    root.style.height = `${model.get("height")}px`;
    root.style.display = "none"; // a page without a kernel keeps the picture that stands before the widget
    const stills = () =>
      [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-relaylab-still]"))].filter(
        (e) => e.dataset.relaylabStill === model.get("still"),
      );
    const hide = (element) => (element.style.display = "none");
    const answered = () => {
      root.style.display = "";
      for (const still of stills()) hide(still.closest(".jp-OutputArea-child") ?? still);
    };
    const { host, kernel } = connect(model, answered, (rows) => explorer.renew(rows));
    el.append(kernel.element, root);
    const explorer = new Explorer(root, host, kernelTools);
    Object.assign(root, { explorer });
    translate(el, model, host);
    return () => kernel.lost(); // nobody hears its answers any more
  },
};
