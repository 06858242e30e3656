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
  const legible = 1.2; // the smallest words, 7.5 units high, have nine points of the screen
  const height = Math.min(Math.max(160, whole[3] * legible), 760);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  // as a style, because the style sheets of notebooks say `height: auto` for every svg
  svg.style.cssText =
    `display:block;width:100%;max-width:none;height:${height}px;` + "cursor:grab;touch-action:none;outline-offset:-2px";
  // a picture that is larger is whole in a frame with scroll bars, so that one sees that there is more of it
  const large = whole[3] * legible > height || whole[2] * legible > root.clientWidth;
  const frame = document.createElement("div");
  if (large) frame.style.cssText = "max-height:760px;overflow:auto";
  let size = legible;
  svg.setAttribute("tabindex", "0");
  let box = [...whole];
  const apply = () => {
    svg.setAttribute("viewBox", box.join(" "));
    if (large) Object.assign(svg.style, { height: `${whole[3] * size}px`, minWidth: `${whole[2] * size}px` });
  };
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
  /** Move what is seen by points of the screen. */
  const pan = (dx, dy) => {
    if (large) frame.scrollBy({ left: dx, top: dy, behavior: "instant" });
    else ((box[0] += dx * scale()), (box[1] += dy * scale()), apply());
  };
  /** Everything `f` times as small; what is at `e` stays there. */
  const zoom = (f, e) => {
    const [x, y] = point(e);
    if (large) size /= f;
    else box = [box[0], box[1], box[2] * f, box[3] * f];
    apply();
    const [nx, ny] = point(e),
      k = scale();
    pan((x - nx) / k, (y - ny) / k);
  };
  const start = () => {
    size = legible;
    box = [...whole];
    apply();
    frame.scrollTo({ left: (frame.scrollWidth - frame.clientWidth) / 2, top: 0, behavior: "instant" });
  };
  svg.addEventListener(
    "wheel",
    (e) => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== svg) return;
      e.preventDefault();
      if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY * 0.003), e);
      else pan(e.deltaX, e.deltaY);
    },
    { passive: false },
  );
  svg.addEventListener("pointerdown", (down) => {
    let from = down;
    svg.focus({ preventScroll: true });
    const move = (e) => {
      if (e.pointerId !== down.pointerId) return;
      pan(from.clientX - e.clientX, from.clientY - e.clientY);
      from = e;
    };
    window.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"])
      window.addEventListener(end, () => window.removeEventListener("pointermove", move), { once: true });
  });
  svg.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return; // keys of the browser
    const r = frame.getBoundingClientRect();
    const middle = { clientX: r.x + r.width / 2, clientY: r.y + r.height / 2 };
    if (e.key === "f") ((size = Math.min(height / whole[3], r.width / whole[2])), (box = [...whole]), apply());
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
  field.style.cssText =
    "margin:2px 0;padding:2px 6px;border:1px solid #8888;border-radius:3px;background:none;" +
    "color:inherit;font:12px sans-serif";
  field.addEventListener("keydown", (e) => e.stopPropagation());
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    /** @type {NodeListOf<SVGElement>} */
    const nodes = svg.querySelectorAll(".node");
    for (const n of nodes) n.style.opacity = !wanted || n.textContent.toLowerCase().includes(wanted) ? "" : "0.15";
  });
  frame.append(svg);
  image.replaceWith(frame);
  root.prepend(field);
  root.append(words);
  root.dataset.live = "1";
  start();
}
