// @ts-check
// The panel at the right: the selected node, what the pass did while none is, or what a tool has to say.
import { el, heading, problem } from "../dom.js";
import { about, noteOf, words } from "./node_panel.js";

export class Detail {
  /**
   * @param {{ ask: import("../types.js").Ask, stages: import("../explorer/stages.js").Stages, selected: () => string,
   *   figure: (id: string) => import("../types.js").Figure | undefined, empty: (on: boolean) => void,
   *   code: () => void, follow: (entry: any) => void, beside: (id: string) => Node[] }} act
   */
  constructor(act) {
    this.act = act;
    this.element = el("aside", { className: "rl-panel", "aria-live": "polite" });
  }

  // nothing is selected: what the pass did, in sentences
  async idle() {
    const { ask, stages, selected } = this.act;
    const found = stages.after ? await ask("words", stages.after) : {};
    if (!selected()) this.element.replaceChildren(...words(found.sentences ?? []));
  }

  async about(id) {
    const { ask, stages, selected, figure, empty, code, follow, beside } = this.act;
    empty(!id);
    if (!id) return this.idle();
    const node = await ask("node", stages.shown, id);
    if (id !== selected()) return;
    if (node.error) return this.element.replaceChildren(heading(id), problem(node.error));
    const drawn = figure(id);
    if (drawn?.role) Object.assign(node, { role: drawn.role, note: node.note || noteOf(drawn) });
    this.element.replaceChildren(...about(node, { code, follow, beside: beside(id) }));
    this.element.scrollTop = 0;
  }

  read(...children) {
    this.act.empty(false);
    this.element.replaceChildren(...children);
    this.element.scrollTop = 0;
  }

  problem(text) {
    this.read(problem(text));
  }
}
