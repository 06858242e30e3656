// @ts-check
// The list of passes: what each did, in numbers; where it is edited.
import { count, dim, el, problem, signed } from "../dom.js";

const STATES = {
  true: ["✓", "keeps the numbers"],
  false: ["✗", "changes the numbers"],
  wait: ["…", "being checked"],
  broken: ["!", "stopped here: see below"],
};

function chips(row, several) {
  const list = row.ops.slice(0, 3).map(([name, n]) =>
    el("span", {
      className: n > 0 ? "rl-chip rl-more" : "rl-chip rl-less",
      textContent: `${n > 0 ? "+" : "−"}${Math.abs(n)} ${name}`,
    }),
  );
  if (row.ops.length > 3)
    list.push(
      el("span", {
        className: "rl-chip",
        textContent: `+${row.ops.length - 3} more`,
        title: row.ops.map(([n, d]) => `${d} ${n}`).join("\n"),
      }),
    );
  for (const [key, unit] of [
    ["macs", "MAC"],
    ["bytes", "B"],
  ])
    if (row[key]) list.push(el("span", { className: "rl-chip rl-figures", textContent: `${signed(row[key])}${unit}` }));
  for (const name of several ? row.functions : [])
    list.push(el("span", { className: "rl-chip rl-fn", textContent: `@${name}` }));
  if (row.steps) list.push(el("span", { className: "rl-chip", textContent: count(row.steps, "rewrite") }));
  return el("div", { className: "rl-chips" }, ...list);
}

// Whether a pass is meant by the words of the filter: part of its name, @function that it changed,
// op:operator that came or went, kind:role that it gave to nodes.
const meant = (row, roles, text) =>
  text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => {
      const [, what, value] = /^(@|op:|kind:|role:)(.*)$/.exec(word) ?? [];
      if (what === "@") return row.functions.some((f) => f.toLowerCase().startsWith(value));
      if (what === "op:") return row.ops.some(([op]) => op.toLowerCase().includes(value));
      if (what) return Object.keys(roles ?? {}).some((role) => role.startsWith(value));
      return row.name.toLowerCase().includes(word);
    });

// What may be written there, with names of this program.
function example(rows) {
  const { functions: [name] = ["main"], ops: [[op]] = [["add"]] } = rows.find((r) => r.ops.length) ?? {};
  return `@${name} op:${op} kind:added`;
}

const apartOf = (size) => (size ? size.toExponential(0) : "0");

/**
 * @param {HTMLElement} light
 * @param {HTMLElement} apart
 * @param {{ state?: any, size?: number | null }} [known]
 */
function lit(light, apart, { state, size } = {}) {
  const [sign, says] = STATES[state] ?? ["", "not checked"];
  const words = size === undefined ? "" : size === null ? "shapes" : apartOf(size);
  const more = words && ` (largest error ${words} of the largest value)`;
  Object.assign(light, { className: `rl-light rl-light-${state}`, textContent: sign, title: `${says}${more}` });
  Object.assign(apart, { textContent: words, title: size === null ? "the shapes of the results differ" : more });
}

// what may stand in the list
const listed = (properties, ...children) => el("div", { ...properties, role: "listitem" }, ...children);

export class Rail {
  /**
   * @param {{ live: boolean, after: () => number, go: (before: number, after: number) => void,
   *   edit: (how: string, index: number, value?: any) => void, ask: import("../types.js").Ask,
   *   several: () => boolean }} act
   */
  constructor(act) {
    this.act = act;
    this.rows = [];
    this.held = -1; // the pass that is dragged
    this.open = new Set(); // folds and passes that are open
    this.lights = new Map(); // what is known of the numbers of a stage
    /** @type {Record<string, number>[]} */
    this.roles = []; // how many nodes have each role, by pass
    this.list = el("div", { className: "rl-list", role: "list", "aria-label": "passes" });
    this.adder = el("input", {
      className: "rl-add",
      placeholder: "add a pass, e.g. FastMath",
      ariaLabel: "add a pass",
      onkeydown: (e) => {
        if (e.key !== "Enter" || !this.adder.value.trim()) return;
        act.edit("insert", act.after(), this.adder.value.trim());
        this.adder.value = "";
      },
    });
    this.filter = el("input", {
      className: "rl-add rl-filter",
      type: "search",
      title:
        "part of a name, @function that was changed, op:operator that came or went, kind:added, removed, changed …",
      ariaLabel: "filter the passes",
      oninput: () => this.sift(),
      onkeydown: (e) => (e.stopPropagation(), e.key === "Escape" && ((this.filter.value = ""), this.draw(this.rows))),
    });
    this.element = el("nav", { className: "rl-rail" }, this.filter, this.list, act.live ? this.adder : null);
  }

  // kinds of change are asked for when someone looks for them
  async sift() {
    const { rows } = this;
    const found = /\b(kind|role):/.test(this.filter.value) ? await this.act.ask("changes") : {};
    if (rows !== this.rows) return;
    this.roles = found.roles ?? this.roles;
    this.draw(rows);
  }

  draw(rows) {
    const other = rows !== this.rows;
    if (other) [this.rows, this.roles] = [rows, []];
    this.filter.placeholder = example(rows);
    this.slowest = Math.max(...rows.map((r) => r.ms), 0.1);
    const source = el("button", {
      className: "rl-pass rl-source",
      textContent: "source program",
      onclick: () => this.act.go(0, 0),
    });
    source.dataset.frame = "0";
    /** @type {HTMLElement[]} */
    const parts = [listed({}, source)];
    let quiet = [];
    const flush = () => {
      if (quiet.length) parts.push(...this.fold(quiet));
      quiet = [];
    };
    rows.forEach((row, index) => {
      const text = this.filter.value.trim();
      if (text ? meant(row, this.roles[index], text) : row.changed || row.error || !row.enabled)
        (flush(), parts.push(this.row(row, index)));
      else quiet.push(index);
    });
    flush();
    this.list.replaceChildren(...parts);
    this.mark();
    if (other && this.filter.value) this.sift();
  }

  fold(indices) {
    const key = indices[0];
    const open = this.open.has(key);
    const words = count(indices.length, this.filter.value.trim() ? "other pass" : "quiet pass");
    const toggle = el("button", {
      className: "rl-quiet",
      textContent: `${open ? "▾" : "▸"} ${words}`,
      "aria-expanded": String(open),
      onclick: () => this.unfold(key),
    });
    return [listed({}, toggle), ...(open ? indices.map((i) => this.row(this.rows[i], i)) : [])];
  }

  row(row, index) {
    const live = this.act.live;
    const box = el("input", {
      type: "checkbox",
      checked: row.enabled,
      disabled: !live,
      title: "run this pass",
      ariaLabel: `run ${row.name}`,
      onclick: (e) => (e.stopPropagation(), this.act.edit("toggle", index)),
    });
    const light = el("span");
    const apart = el("span", { className: "rl-apart" });
    lit(light, apart, row.error ? { state: "broken" } : this.lights.get(index));
    const name = el("span", {
      className: "rl-name",
      role: "button", // keys step through the passes; screen readers press it
      textContent: row.name,
      title: `${row.text}${row.skipped ? `\nskipped: ${row.skipped}` : ""}`,
    });
    const time = el("span", {
      className: "rl-time",
      textContent: `${row.ms < 10 ? row.ms.toFixed(1) : Math.round(row.ms)} ms`,
    });
    const bar = el("span", { className: "rl-timebar" });
    bar.style.width = `${Math.max(1, (100 * row.ms) / this.slowest)}%`;
    const head = el(
      "div",
      { className: "rl-head" },
      box,
      light,
      name,
      apart,
      el("span", { className: "rl-ends" }, time),
    );
    const item = listed(
      {
        className: "rl-pass",
        tabIndex: -1,
        onclick: () => this.act.go(index, index + 1),
        ondblclick: () => this.unfold(`n${index}`),
      },
      head,
      bar,
      row.ops.length || row.macs || row.bytes || row.steps ? chips(row, this.act.several()) : null,
    );
    if (row.error) item.append(problem(row.error.split("\n")[0]));
    item.classList.toggle("rl-failed", Boolean(row.error));
    if (row.nested.length && this.open.has(`n${index}`)) item.append(this.nested(row));
    item.dataset.frame = String(index + 1);
    item.dataset.index = String(index);
    item.classList.toggle("rl-off", !row.enabled || !row.ran);
    item.classList.toggle("rl-still", !row.changed);
    if (live) this.editable(item, head, row, index);
    return item;
  }

  unfold(key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.draw(this.rows);
  }

  nested(row) {
    return el(
      "div",
      { className: "rl-nested" },
      ...row.nested.map(({ changed, name, ms }) =>
        el("div", { textContent: `${changed ? "●" : "○"} ${name}  ${ms.toFixed(1)} ms` }),
      ),
    );
  }

  editable(item, head, row, index) {
    const tool = (text, title, run) =>
      el("button", { className: "rl-tool", textContent: text, title, onclick: (e) => (e.stopPropagation(), run()) });
    const options = async () => {
      const found = await this.act.ask("options", index);
      item.querySelector(".rl-form")?.remove();
      const form = found.options?.length ? this.form(found, index) : this.line(row, index);
      head.after(form);
      const field = /** @type {HTMLElement} */ (form.querySelector("input, select"));
      field.focus();
    };
    head.lastElementChild.append(
      tool("⚙", "options", options),
      tool("×", "remove", () => this.act.edit("remove", index)),
    );
    item.draggable = true;
    item.addEventListener("dragstart", (e) => (e.dataTransfer.setData("text/plain", row.name), (this.held = index)));
    item.addEventListener("dragend", () => (this.held = -1));
    item.addEventListener("dragover", (e) => this.held >= 0 && e.preventDefault());
    item.addEventListener("drop", (e) => {
      e.preventDefault();
      if (this.held >= 0 && this.held !== index) this.act.edit("move", this.held, index);
    });
  }

  // a pass of the user's own, whose options nobody knows: the whole of it as text
  line(row, index) {
    const field = el("input", { className: "rl-add", value: row.text, "aria-label": "the pass with its options" });
    return this.entry([field], () => this.act.edit("set", index, field.value));
  }

  form(found, index) {
    const fields = found.options.map(([name, value, standard, type, doc]) => {
      const title = `${doc ? `${doc}\n` : ""}${type} (default ${standard || "none"})`;
      const common = { className: "rl-add", title, "aria-label": name };
      const words = ["True", "False"];
      const field = words.includes(value)
        ? el("select", common, ...words.map((w) => el("option", { value: w, textContent: w })))
        : el("input", { ...common, placeholder: standard });
      field.value = value;
      return [name, field, standard, doc];
    });
    const set = () =>
      this.act.edit(
        "set",
        index,
        `${found.name}(${fields
          .filter(([, f, standard]) => f.value.trim() !== standard)
          .map(([name, f]) => `${name}=${f.value.trim()}`)
          .join(", ")})`,
      );
    return this.entry(
      fields.map(([name, field, , doc]) =>
        el("label", {}, el("span", { textContent: name }), field, doc ? dim(doc, "div") : null),
      ),
      set,
    );
  }

  entry(fields, set) {
    const form = el(
      "div",
      { className: "rl-form" },
      ...fields,
      el("button", { className: "rl-button", textContent: "set", onclick: set }),
    );
    form.addEventListener("click", (e) => e.stopPropagation());
    form.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter" && e.target instanceof HTMLInputElement) set();
      if (e.key === "Escape") this.draw(this.rows);
    });
    return form;
  }

  // `size` is how far the numbers are apart from those of the source program, relative to the largest
  light(index, state, size) {
    this.lights.set(index, { state, size });
    const row = this.list.querySelector(`[data-index="${index}"]`);
    if (row) lit(row.querySelector(".rl-light"), row.querySelector(".rl-apart"), { state, size });
  }

  /** @returns {NodeListOf<HTMLElement>} */
  get passes() {
    return this.list.querySelectorAll(".rl-pass");
  }

  mark() {
    for (const item of this.passes) {
      const current = Number(item.dataset.frame) === this.act.after();
      if (current) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
      if (current && this.list.clientHeight) {
        const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
        if (top < this.list.scrollTop) this.list.scrollTop = top - 20;
        else if (bottom > this.list.scrollTop + this.list.clientHeight)
          this.list.scrollTop = bottom - this.list.clientHeight + 20;
      }
    }
  }
}
