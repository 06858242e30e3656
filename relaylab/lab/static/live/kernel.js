// @ts-check
// The kernel behind a widget: whether it is there, what it is busy with. Where a notebook does not
// show its kernel to widgets (only Jupyter's own do), nothing but time tells.
import { button, el } from "../dom.js";

export const GONE = "The kernel that made this explorer is gone: run the cell again.";
const UNSAID = 1000; // ms of waiting before anything is said
const DEAD = ["dead", "restarting", "autorestarting", "terminating"];

export class Kernel {
  /** @param {{ model: any, waiting: Map<string, (answer: any) => void>, ask: () => Promise<any> }} act */
  constructor({ model, waiting, ask }) {
    this.model = model;
    this.waiting = waiting;
    this.ask = ask;
    this.gone = false;
    this.doing = ""; // how far it is
    this.stopping = false;
    this.running = ""; // the kind of message that the kernel is busy with
    this.since = 0; // when the first of those who wait began to
    this.words = el("span", { role: "status" });
    this.button = button("", "", () => (this.gone ? this.reconnect() : this.stop()));
    this.element = el("div", { className: "rl-wait", hidden: true }, this.words, " ", this.button);
    this.connection = model.widget_manager?.kernel ?? null;
    this.connection?.statusChanged?.connect?.((_, status) => DEAD.includes(status) && this.lost());
    this.connection?.iopubMessage?.connect?.((_, { header, content, parent_header: parent }) => {
      if (header.msg_type === "status") this.running = content.execution_state === "busy" ? parent.msg_type : "";
    });
  }

  // a question is on its way
  asked() {
    if (this.waiting.size === 1) this.since = performance.now();
    this.timer ??= setInterval(() => this.look(), 250);
  }

  look() {
    if (!this.waiting.size) return this.rest();
    if (this.gone || performance.now() - this.since < UNSAID) return;
    const seconds = Math.round((performance.now() - this.since) / 1000);
    const ours = this.running === "comm_msg";
    const what = ours
      ? `computing${this.doing && ` (${this.doing})`}`
      : this.running
        ? "waiting for another cell"
        : "waiting for the kernel";
    const stop = ours && this.connection?.interrupt && !this.stopping;
    this.say(`${what} … ${seconds} s`, stop ? "Stop" : "", "what is known stays");
  }

  answered() {
    this.since = performance.now();
    this.doing = "";
    this.stopping = false;
    if (!this.waiting.size) this.rest();
  }

  // messages wait while the kernel computes, an interrupt does not
  stop() {
    this.stopping = true;
    this.doing = "stopping";
    // newer kernels answer widgets beside cells, in a thread that no interrupt reaches
    const code = `from relaylab.explorer.stopping import stop; stop("${this.model.get("work")}")`;
    if (this.connection.supportsSubshells) this.connection.requestExecute({ code, silent: true, store_history: false });
    else this.connection.interrupt();
    this.look();
  }

  rest() {
    clearInterval(this.timer);
    this.timer = undefined;
    if (!this.gone) this.element.hidden = true;
  }

  say(text, offer = "", title = "") {
    this.words.textContent = text;
    Object.assign(this.button, { textContent: offer, title, hidden: !offer });
    this.element.hidden = false;
  }

  refuse(error) {
    for (const done of this.waiting.values()) done({ error });
    this.waiting.clear();
    this.rest();
  }

  lost() {
    this.gone = true;
    this.refuse(GONE);
    this.say(GONE, "Reconnect", "ask whether it is there again");
  }

  // a connection that was lost for a while is taken up again; a new kernel knows nothing of this explorer
  async reconnect() {
    this.gone = false;
    this.say("asking the kernel …");
    const late = new Promise((done) => setTimeout(() => done({ error: GONE }), 4 * UNSAID));
    const found = await Promise.race([this.ask(), late]);
    if (found.error) this.lost();
    else this.element.hidden = true;
  }
}
