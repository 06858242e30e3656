// @ts-check
// The panel at the right: the selected node, what the pass did while none is, or what a tool has to say.
import { dim, el, heading, problem } from "../dom.js";
import { failure } from "./failure_panel.js";
import { about, noteOf, words } from "./node_panel.js";

export class Detail {
  /**
   * @param {{ ask: import("../types.js").Ask, stages: import("../explorer/stages.js").Stages, selected: () => string,
   *   figure: (id: string) => import("../types.js").Figure | undefined,
   *   empty: (on: boolean, reading?: boolean) => void,
   *   code: () => void, follow: (entry: any) => void, beside: (id: string) => Node[] }} act
   */
  constructor(act) {
    this.act = act;
    this.quiet = true; // nothing but words about the stage is there
    this.reading = false; // what a tool has to say is there
    this.failing = false;
    this.turn = 0; // how often somebody wished something else to be there
    this.id = ""; // what was told of last
    this.element = el("aside", { className: "rl-panel", "aria-live": "polite" });
  }

  // nothing is selected: what the pass did, in sentences, or why it failed
  async idle() {
    const { ask, stages, selected, empty } = this.act;
    const { after, row } = stages;
    this.failing = Boolean(row?.error);
    this.quiet = true;
    if (this.failing) empty(false);
    this.element.replaceChildren(dim(after ? "…" : "")); // never the words about another pass
    /** @type {any} */
    const found = !after ? {} : await (this.failing ? ask("failure", after - 1) : ask("words", after));
    if (selected() || stages.after !== after || !this.quiet) return;
    if (found.error) this.element.replaceChildren(problem(found.error));
    else this.element.replaceChildren(...(this.failing ? [failure(found)] : words(found.sentences ?? [])));
  }

  // another stage is shown: what there is to say about it, unless a tool or a node has the word
  settle() {
    return !this.act.selected() && (this.quiet || this.act.stages.row?.error) ? this.about("") : undefined;
  }

  async about(id) {
    this.reading = false;
    if (id !== this.id) this.turn += 1;
    this.id = id;
    const { ask, stages, selected, figure, empty, code, follow, beside } = this.act;
    empty(!id);
    if (!id) return this.idle();
    this.quiet = false;
    const { shown } = stages;
    const node = await ask("node", shown, id);
    if (id !== selected() || shown !== stages.shown || this.reading) return;
    if (node.error) return this.element.replaceChildren(heading(id), problem(node.error));
    const drawn = figure(id);
    const differs = drawn?.role ? { role: drawn.role, note: node.note || noteOf(drawn) } : {};
    this.element.replaceChildren(...about({ ...node, ...differs }, { code, follow, beside: beside(id) }));
    this.element.scrollTop = 0;
  }

  // back to the node, or to the words about the stage
  close() {
    this.turn += 1;
    return this.about(this.act.selected());
  }

  /** For what a tool says later: reads, unless another node or tool was asked for by then; says whether. */
  hold() {
    let { turn } = this;
    return (...children) => {
      if (turn !== this.turn) return false;
      this.read(...children);
      ({ turn } = this);
      return true;
    };
  }

  read(...children) {
    this.turn += 1;
    this.quiet = false;
    this.reading = true;
    this.act.empty(false, true);
    this.element.replaceChildren(...children);
    this.element.scrollTop = 0;
  }

  problem(text) {
    this.read(problem(text));
  }
}
