// @ts-check
// The parts of the explorer, each with the few functions of the others that it needs.
import { el } from "../dom.js";
import { HeatMap } from "../tabs/heat_map.js";
import { SideBySide } from "../tabs/side_by_side.js";
import { Detail } from "../panels/detail.js";
import { Editor } from "./editor.js";
import { Folding } from "./folding.js";
import { help } from "./keys.js";
import { Outline } from "../panels/outline.js";
import { figuresOf, Overlay } from "./overlay.js";
import { Rail } from "./rail.js";
import { CodePane, TextPane } from "../panels/reading_panes.js";
import { Search } from "./search.js";
import { Stage } from "./stage.js";
import { Stepper } from "./stepper.js";
import { Timeline } from "./timeline.js";
import { Toolbar } from "./toolbar.js";
import { Undo } from "./undo.js";
import { Views } from "./views.js";

const NO_KERNEL = { buttons: [], tabs: {}, beside: () => [], more: () => [] };

/**
 * How parts steer the explorer.
 * @typedef {object} Steering
 * @property {(before: number, after: number) => void} go
 * @property {(name: string, value: string) => void} choose
 * @property {() => void} refresh
 * @property {(id: string, from?: number) => void} pick
 * @property {(run: () => void) => void} arrive
 * @property {(text: string) => void} find
 * @property {(rows: any) => void} renew
 * @property {(entry: any) => void} follow
 * @property {(stage: number, row: string, operator: boolean) => void} jump
 * @property {() => object} look
 * @property {(name: string, view: any) => void} restore
 * @property {() => any} picture
 */

/**
 * @param {HTMLElement} root
 * @param {import("../types.js").Host} host
 * @param {import("./stages.js").Stages} stages
 * @param {import("../types.js").Ask} ask
 * @param {Steering} steer
 * @param {((act: any) => any) | undefined} tools  what only a kernel can do
 */
export function makeParts(root, host, stages, ask, steer, tools) {
  const { go, choose, refresh, pick, arrive, find, renew, follow, jump, look, restore, picture } = steer;
  const { live } = host;
  const put = (what, ...args) => host.ask(what, args);
  const get = (name) => host.get(name);
  const set = (name, value) => host.set(name, value);
  const [before, after, selected] = [() => stages.before, () => stages.after, () => get("selected")];

  // what is read
  const legend = el("div", { className: "rl-legend" });
  const extra = el("div", { className: "rl-extra" }); // the place of tabs
  const said = el("div", { className: "rl-said", role: "status", "aria-live": "polite" });
  const say = (text) => (said.textContent = text);
  const detail = new Detail({
    ask,
    stages,
    selected,
    figure: (id) => stage.figure(id),
    empty: (on) => root.classList.toggle("rl-nothing", on),
    code: () => choose("pane", "code"),
    follow,
    beside: (id) => extras.beside(id),
  });
  const read = (...children) => detail.read(...children);
  const problem = (text) => detail.problem(text);
  const about = (id) => detail.about(id);

  // pictures
  const stage = new Stage({ selected, select: pick });
  const canvases = () => stage.canvases;
  const glow = (ids) => stage.glow(ids);
  const outline = new Outline(pick);
  const text = new TextPane({ ask, selected, pick });
  const code = new CodePane({ ask, live, glow });
  const show = (ids) => {
    const id = ids.find((i) => stage.has(i));
    if (id) pick(id);
  };
  const stepper = new Stepper({ ask, show });
  const search = new Search({ canvases, leave: () => root.focus() });
  const folding = new Folding({ picture, selected, pick, refresh });
  const figures = () => figuresOf(stages.figures, get("overlays") ?? []);
  const overlay = new Overlay({ ask, stages, figures, canvases, say, problem });

  // the pipeline
  const undo = new Undo({
    get,
    set,
    say,
    refresh,
    changed: () => toolbar.marks(undo.past.length, undo.future.length),
    edit: (what) => editor.turn(what),
  });
  const editor = new Editor({
    put,
    renew,
    read,
    problem,
    done: (how) => undo.edited(how),
    refused: () => rail.draw(stages.rows),
    leave: () => about(selected()),
  });
  const edit = (how, index, value) => editor.edit(how, index, value);
  const rail = new Rail({ live, after, go, edit, ask });
  const timeline = new Timeline({ before, after, go });

  const act = { ask, put, stages, figures, go, arrive, pick, about, glow, find, read, problem, say, edit };
  const extras = tools
    ? tools({
        ...act,
        found: () => search.found,
        light: (index, state) => rail.light(index, state),
        edited: (rows, how) => editor.edited(rows, how),
        done: (what, value) => (root.dataset[what] = value),
      })
    : NO_KERNEL;
  const moving = () => undo.moving();
  const views = new Views({ get, set, look, restore, moving, read, more: () => extras.more() });
  const tabs = {
    several: new SideBySide({ ask, stages, selected, pick }),
    heat: new HeatMap({ ask, jump }),
    ...extras.tabs,
  };
  const toolbar = new Toolbar({
    tabs: Object.keys(tabs),
    get,
    choose,
    back: () => undo.back(),
    forward: () => undo.forward(),
    views: () => views.show(),
    help: () => read(...help()),
    search: [search.field, search.hits],
    overlay: overlay.menu,
    tools: extras.buttons,
  });
  return {
    ...{ legend, extra, said, say, detail, stage, outline, text, code, stepper, search, folding, overlay },
    ...{ undo, editor, rail, timeline, views, tabs, toolbar },
  };
}
