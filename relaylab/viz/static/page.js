// The start of a self-contained page (after graph.js in the same module).
const carrier = document.getElementById("relaylab-data");
unpack(carrier.textContent).then((book) => {
  window.relaylab = mount(document.getElementById("relaylab"), book);
});
