// @ts-check
// What is seen, as a file: SVG and PNG are made here, the other formats by the kernel that drew it.
// Choices: docs/choices.md, The explorer.
import { figure, svg } from "../../../viz/static/graph.js";
import { button, el, heading } from "../dom.js";

const APART = 40; // between two pictures beside each other
const [SIDE, PIXELS] = [16000, 6e7]; // what browsers draw at once

// The rules of pictures, by day, out of the sheets of the explorer.
function rules(root) {
  const home = root.getRootNode();
  const all = [...home.styleSheets, ...(home.adoptedStyleSheets ?? [])].flatMap((sheet) => {
    try {
      return [...sheet.cssRules];
    } catch {
      return []; // of another site
    }
  });
  const own = all.find((rule) => rule.selectorText === ".rl-explorer" && rule.cssRules.length);
  const heat = all.filter((rule) => rule.selectorText?.startsWith(".rl-heat "));
  return [...(own?.cssRules ?? []), ...heat].map((rule) => rule.cssText.replace(/^& /, "")).join("\n");
}

function drawing(root, canvases) {
  let [x, height] = [0, 0];
  const sides = canvases.map(({ scene, parts }) => {
    const heat = parts.filter((part) => part.kind === "heat").map((part) => figure(part.data));
    const transform = `translate(${x},0)`;
    x += scene.width + APART;
    height = Math.max(height, scene.height);
    return svg("g", { transform }, ...scene.figures.map(figure), svg("g", { class: "rl-heat" }, ...heat));
  });
  const size = { width: x - APART, height };
  const paper = svg("rect", { class: "page", ...size });
  const viewBox = `0 0 ${size.width} ${height}`;
  const whole = svg("svg", { class: "relaylab", viewBox, ...size }, svg("style", {}, rules(root)), paper, ...sides);
  // what XML cannot hold
  const text = new XMLSerializer().serializeToString(whole).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/gu, "?");
  return { ...size, blob: new Blob([text], { type: "image/svg+xml" }) };
}

async function pixels({ width, height, blob }) {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  URL.revokeObjectURL(image.src);
  const scale = Math.min(2, SIDE / width, SIDE / height, Math.sqrt(PIXELS / width / height));
  const canvas = el("canvas", { width: width * scale, height: height * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

export class Saving {
  /**
   * @param {{ root: HTMLElement, live: boolean, canvases: () => any[], name: () => string, shown: () => any,
   *   hold: () => (...parts: any[]) => boolean, ask: import("../types.js").Ask, put: import("../types.js").Ask,
   *   say: (text: string) => void }} act
   */
  constructor(act) {
    this.act = act;
    this.button = button("Save", "the picture as a file", () => this.show());
  }

  async show() {
    const { live, ask, shown } = this.act;
    const read = this.act.hold();
    const { formats } =
      live && shown()
        ? await ask("formats")
        : {
            formats: [
              ["svg", ""],
              ["png", ""],
            ],
          };
    const line = ([form, words]) =>
      el(
        "li",
        {},
        button(`.${form}`, words, () => this.save(form)),
        ` ${words}`,
      );
    read(heading("save the picture"), el("ul", { className: "rl-story" }, ...formats.map(line)));
  }

  async save(form) {
    const { root, say, name } = this.act;
    const canvases = this.act.canvases();
    if (!canvases.length) return say("there is no picture here");
    const made = await this.made(form, canvases).catch((error) => ({ error: error.message }));
    if (made.error) return say(made.error);
    const href = URL.createObjectURL(made);
    const file = `${name()}.${form}`.replace(/[^\w.() -]+/g, "_");
    el("a", { href, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(href), 9e4);
    say(`saved ${file}`);
    root.dataset.saved = file;
  }

  async made(form, canvases) {
    if (form === "svg") return drawing(this.act.root, canvases).blob;
    if (form === "png") return pixels(drawing(this.act.root, canvases));
    const shown = this.act.shown();
    if (!shown) return { error: "there is no picture here" };
    const [before, after, style, closed] = shown;
    const found = await this.act.put("picture_file", before, after, style, closed, form);
    if (found.error) return found;
    return new Blob([Uint8Array.from(atob(found.data), (c) => c.charCodeAt(0))]);
  }
}
