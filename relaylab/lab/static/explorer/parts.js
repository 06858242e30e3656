// @ts-check
// The parts of the explorer, each with the few functions of the others that it needs.
import { el } from "../dom.js";
import { HeatMap } from "../tabs/heat_map.js";
import { SideBySide } from "../tabs/side_by_side.js";
import { Detail } from "../panels/detail.js";
import { Editor } from "./editor.js";
import { Folding } from "./folding.js";
import { Outline } from "../panels/outline.js";
import { figuresOf, Overlay } from "./overlay.js";
import { Rail } from "./rail.js";
import { Room } from "./room.js";
import { Saving } from "./save.js";
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
 * @param {import("./explorer.js").Explorer} explorer
 * @param {((act: any) => any) | undefined} tools  what only a kernel can do
 */
export function makeParts(explorer, tools) {
  const { root, host, stages } = explorer;
  const { ask } = explorer.answers;
  const run =
    (name) =>
    (...given) =>
      explorer[name](...given);
  const [go, choose, refresh, pick, find, renew] = ["go", "choose", "refresh", "pick", "find", "renew"].map(run);
  const [follow, jump, look, restore] = ["follow", "jump", "look", "restore"].map(run);
  const picture = () => explorer.picture;
  const arrive = (then) => (explorer.onArrival = then);
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
  const room = new Room(root);
  const detail = new Detail({
    ask,
    stages,
    selected,
    figure: (id) => stage.figure(id),
    empty: (on, reading) => room.nothing(on, reading),
    code: () => choose("pane", "code"),
    follow,
    beside: (id) => extras.beside(id),
  });
  const read = (...children) => detail.read(...children);
  const problem = (text) => detail.problem(text);
  const about = (id) => detail.about(id);

  // pictures
  const stage = new Stage({
    selected,
    select: pick,
    open: (id) => folding.open(id),
    turn: (id) => folding.turn(id),
    sign: (figure) => folding.sign(figure),
    one: () => choose("compare", "merged"),
  });
  const canvases = () => stage.canvases;
  const glow = (ids) => stage.glow(ids);
  const outline = new Outline(pick);
  const text = new TextPane({ ask, selected, pick });
  const code = new CodePane({ ask, live, glow, schedule: (name, run) => extras.schedule?.(name, run) });
  const show = (ids) => {
    const id = ids.find((i) => stage.has(i)) ?? (picture()?.whole && ids[0]);
    if (id) pick(id);
  };
  const stepper = new Stepper({ ask, show, go, open: (index, at) => extras.open?.(index, at), live });
  const partsOf = async (stage) => (await ask("parts", stage)).parts ?? [];
  const search = new Search({
    canvases,
    leave: () => root.focus(),
    brief: () => Boolean(picture()?.whole),
    has: (id) => stage.has(id),
    selected,
    pick,
    mark: (ids) => (outline.hit(ids), stage.minimap()),
    parts: () => Promise.all([stages.settled(stages.before), stages.shown].map(partsOf)),
    kept: () => undo.moving("search"),
  });
  const folding = new Folding({
    picture,
    selected,
    pick,
    refresh,
    moving: () => undo.moving("fold"),
    drawn: run("drawn"),
    closer: () => arrive(() => stage.begin()),
    direction: () => (live ? get("direction") : null),
  });
  const figures = () => figuresOf(stages.figures, get("overlays") ?? []);
  const overlay = new Overlay({ ask, stages, figures, canvases, say, problem, moving: () => undo.moving("overlay") });

  // the pipeline
  const undo = new Undo({
    get,
    set,
    say,
    refresh,
    look: () => ({ ...look(), camera: null }),
    restore: (seen) => restore("", seen),
    changed: () => toolbar.marks(undo.past.length, undo.future.length),
    edit: (what) => editor.turn(what),
    editing: () => editor.done,
  });
  const editor = new Editor({
    put,
    renew,
    read,
    problem,
    done: (how) => undo.edited(how),
    count: () => stages.rows.length,
    refused: () => rail.draw(stages.rows),
    leave: () => about(selected()),
  });
  const edit = (how, index, value) => editor.edit(how, index, value);
  const rail = new Rail({ live, after, go, edit, ask, several: () => stages.several });
  const timeline = new Timeline({ before, after, go });

  const hold = () => detail.hold();
  const act = { ask, put, stages, figures, go, arrive, pick, about, glow, find, read, hold, problem, say, edit };
  const extras = tools
    ? tools({
        ...act,
        found: () => search.found,
        light: (index, state, size) => rail.light(index, state, size),
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
  const saving = new Saving({
    ...{ root, live, ask, put, hold, say },
    canvases: () => tabs[get("pane")]?.canvases ?? (tabs[get("pane")] || get("pane") === "text" ? [] : stage.canvases),
    name: () => `${toolbar.title.textContent} ${stages.row?.name ?? "source"}`,
    shown: () => !tabs[get("pane")] && [stages.settled(stages.before), stages.shown, get("compare"), folding.key],
  });
  const toolbar = new Toolbar({
    tabs: Object.keys(tabs),
    get,
    choose,
    back: () => undo.back(),
    forward: () => undo.forward(),
    views: () => views.show(),
    help: run("help"),
    search: [search.element],
    field: search.field,
    overlay: overlay.menu,
    tools: [...extras.buttons, saving.button],
    list: () => room.list(),
    panel: () => room.panel(),
    full: () => room.full(),
    map: run("map"),
    level: (name) => folding.level(name),
    turned: live ? () => folding.turned() : null,
    focus: run("focus"),
  });
  return {
    ...{ legend, extra, said, say, detail, stage, outline, text, code, stepper, search, folding, overlay },
    ...{ undo, editor, rail, room, timeline, views, tabs, toolbar },
  };
}
