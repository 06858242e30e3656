// @ts-check
// Brings a static picture to life where scripts may run: the <img> is replaced by its own SVG, with pan,
// zoom, search and a line of words about what is selected. `id` names the element around the image; a picture that is
// shown several times has it several times.
function hydrate(id) {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = document.querySelectorAll(`[id="${id}"]`);
  const places = [...elements];
  const root = places.find((e) => !e.dataset.live);
  const image = root && root.querySelector("img");
  if (!image) return;
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (c) => c.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  const svg = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
  // inlined, the picture's rules are its own only; a host that has a theme decides over the reader's system
  const sheet = svg.querySelector("style"),
    [light, dark] = sheet.textContent.split("@media(prefers-color-scheme:dark)");
  const hosted = "[data-jp-theme-light],[data-vscode-theme-kind]";
  sheet.textContent =
    `#${id}{${light}}[data-jp-theme-light="false"] #${id},[data-vscode-theme-kind*="dark"] #${id}${dark}` +
    `@media(prefers-color-scheme:dark){:root:not(:has(${hosted})):not(${hosted}) #${id}${dark}}`;
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  const height = Math.min(Math.max(160, whole[3]), 560);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  // as a style, because the style sheets of notebooks say `height: auto` for every svg
  svg.style.cssText = `width:100%;height:${height}px;cursor:grab;touch-action:none;outline-offset:-2px`;
  svg.setAttribute("tabindex", "0");
  let box = [...whole];
  const apply = () => svg.setAttribute("viewBox", box.join(" "));
  const scale = () => {
    const r = svg.getBoundingClientRect();
    return Math.max(box[2] / r.width, box[3] / r.height) || 1;
  };
  /** @returns {[x: number, y: number]} */
  const point = (e) => {
    const r = svg.getBoundingClientRect(),
      k = scale();
    return [
      box[0] + (box[2] - r.width * k) / 2 + (e.clientX - r.left) * k,
      box[1] + (box[3] - r.height * k) / 2 + (e.clientY - r.top) * k,
    ];
  };
  const zoom = (f, [x, y]) => {
    box = [x - (x - box[0]) * f, y - (y - box[1]) * f, box[2] * f, box[3] * f];
    apply();
  };
  const start = () => {
    const width = root.getBoundingClientRect().width || 800;
    box =
      whole[3] > 1.5 * height
        ? [(whole[2] - Math.max(whole[2], width)) / 2, 0, Math.max(whole[2], width), height]
        : [...whole];
    apply();
  };
  svg.addEventListener(
    "wheel",
    (e) => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== svg) return;
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY * 0.003), point(e));
      else ((box[0] += e.deltaX * scale()), (box[1] += e.deltaY * scale()), apply());
    },
    { passive: false },
  );
  svg.addEventListener("pointerdown", (down) => {
    const from = point(down);
    svg.focus({ preventScroll: true });
    const move = (e) => {
      const to = point(e);
      box[0] += from[0] - to[0];
      box[1] += from[1] - to[1];
      apply();
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => window.removeEventListener("pointermove", move), { once: true });
  });
  svg.addEventListener("keydown", (e) => {
    /** @type {[x: number, y: number]} */
    const middle = [box[0] + box[2] / 2, box[1] + box[3] / 2];
    if (e.key === "f") ((box = [...whole]), apply());
    else if (e.key === "+" || e.key === "=") zoom(0.8, middle);
    else if (e.key === "-") zoom(1.25, middle);
    else if (e.key === "Escape") svg.blur();
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  svg.addEventListener("dblclick", start);
  const words = document.createElement("pre");
  words.style.cssText =
    "white-space:pre-wrap;margin:2px 0;font:12px/1.4 Helvetica,Arial,sans-serif;max-height:9em;overflow:auto";
  svg.addEventListener("click", (e) => {
    const figure = e.target instanceof Element && e.target.closest(".node, .group");
    words.textContent = figure
      ? (figure.querySelector("desc") || figure.querySelector("title") || figure).textContent
      : "";
  });
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "search";
  field.addEventListener("keydown", (e) => e.stopPropagation());
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    /** @type {NodeListOf<SVGElement>} */
    const nodes = svg.querySelectorAll(".node");
    for (const n of nodes) n.style.opacity = !wanted || n.textContent.toLowerCase().includes(wanted) ? "" : "0.15";
  });
  image.replaceWith(svg);
  root.prepend(field);
  root.append(words);
  root.dataset.live = "1";
  start();
}
