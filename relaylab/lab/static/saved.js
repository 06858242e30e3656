// @ts-check
// The saved page: every answer is in the page, and its address says what is shown.
import { unpack } from "../../viz/static/graph.js";
import { el } from "./dom.js";
import { Explorer } from "./explorer/explorer.js";
import { speak } from "./language.js";
import { address, read } from "./saved/link.js";
import { paper } from "./saved/print.js";
import { SavedPage } from "./saved/saved_page.js";

// what an address asked for in vain, in words
function tell(root, wrong) {
  document.querySelector(".rl-note")?.remove();
  if (!wrong.length) return;
  const note = el(
    "div",
    { className: "rl-note", role: "status" },
    el("span", { textContent: `Left out of this link: ${wrong.join("; ")}.` }),
    el("button", { className: "rl-button", textContent: "×", ariaLabel: "close", onclick: () => note.remove() }),
  );
  root.before(note);
}

function start(data) {
  if (data.wording) speak(document.body, data.wording);
  const root = document.getElementById("relaylab");
  const page = new SavedPage(data);
  const listeners = {};
  const state = { ...data.chosen };
  const arrive = () => {
    const knows = (frame, id) => page.stages.home(frame ?? state.after, id) !== undefined;
    const { chosen, wrong } = read(location.hash, data.rows.rows, knows);
    tell(root, wrong);
    const { compare, pane, selected } = data.chosen; // what an address with a stage leaves out is as usual
    const wanted = chosen.after === undefined ? chosen : { compare, pane, selected, ...chosen };
    const given = Object.entries(wanted).filter(([name, value]) => state[name] !== value);
    Object.assign(state, wanted);
    for (const [name] of given) listeners[name]?.();
  };
  const keep = () => {
    if (location.protocol === "about:") return; // inside a document it has no address of its own
    const now = address(state, data.chosen);
    if (location.hash !== now) history.replaceState(null, "", now);
  };
  arrive();
  const host = {
    live: false,
    ask: async (what, args) => page.ask(what, args),
    get: (name) => (name === "rows" ? data.rows : state[name]),
    set: (name, value) => {
      if (state[name] === value) return;
      state[name] = value;
      keep();
    },
    on: (name, run) => (listeners[name] = run),
  };
  const explorer = new Explorer(root, host);
  Object.assign(window, { relaylab: explorer });
  window.addEventListener("hashchange", arrive);
  paper(() => explorer.printed());
  if (window === window.top) root.focus({ preventScroll: true }); // the keys work at once
}

const sorry = (error) =>
  document
    .getElementById("relaylab")
    .replaceChildren(
      el("p", { textContent: `This page could not be opened: ${error.message}. It needs a browser of 2023 or later.` }),
    );
unpack(document.getElementById("relaylab-data").textContent).then(start).catch(sorry);
