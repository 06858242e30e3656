// The saved page: every answer is in the page.
import { unpack } from "./graph.js";
import { Explorer } from "./explorer.js";

function host(book) {
  const chosen = { ...book.chosen };
  const missing = { error: "This comparison is not in the saved page; open the explorer in a notebook to see it." };
  return {
    live: false,
    ask: async (what, args) => book.answers[[what, ...args].join("\u0001")] ?? missing,
    get: (name) => (name === "rows" ? book.rows : chosen[name]),
    set: (name, value) => (chosen[name] = value),
    on: () => {},
  };
}

unpack(document.getElementById("relaylab-data").textContent).then((book) => {
  const root = document.getElementById("relaylab");
  window.relaylab = new Explorer(root, host(book));
});
