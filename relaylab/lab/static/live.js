// The widget in a notebook: questions go to the kernel as messages, choices are traits.
import { Explorer } from "./explorer.js";

function host(model) {
  const waiting = new Map();
  let last = 0;
  model.on("msg:custom", (message) => {
    waiting.get(message.id)?.(message.answer);
    waiting.delete(message.id);
  });
  return {
    live: true,
    ask: (what, args) => new Promise((done) => {
      const id = `${Date.now()}-${(last += 1)}-${Math.random()}`;
      waiting.set(id, done);
      model.send({ id, what, args });
    }),
    get: (name) => model.get(name),
    set: (name, value) => {
      if (model.get(name) === value) return;
      model.set(name, value);
      model.save_changes();
    },
    on: (name, run) => model.on(`change:${name}`, run),
  };
}

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    root.style.height = `${model.get("height")}px`;
    el.append(root);
    root.explorer = new Explorer(root, host(model));
  },
};
