// @ts-check
// The stages of a saved page and what is known of their parts, unfolded from numbers when asked for.

/**
 * A list in pieces of a size.
 * @param {any[]} list
 * @param {number} size
 * @returns {Generator<any>}
 */
export function* chunks(list, size) {
  for (let i = 0; i < list.length; i += size) yield list.slice(i, i + size);
}

export class SavedStages {
  constructor(data) {
    this.data = data;
    this.stops = Object.keys(data.stages)
      .map(Number)
      .sort((a, b) => a - b);
    /** @type {Record<string, Map<any, any>>} */
    this.known = {};
  }

  once(table, key, make) {
    const known = (this.known[table] ??= new Map());
    if (!known.has(key)) known.set(key, make());
    return known.get(key);
  }

  // the parts of a stage by id: numbers of facts and story; groups come last
  stage(stop) {
    const { ids, stages } = this.data;
    /** @returns {[string, any]} */
    const part = ([id, facts, story]) => [ids[id], { facts, story }];
    return this.once("stage", stop, () => new Map([...chunks(stages[stop].parts, 3)].map(part)));
  }

  facts(number) {
    const { fields, facts, values } = this.data;
    return this.once("facts", number, () =>
      Object.fromEntries(facts[number].map((value, i) => [fields[i], values[value]])),
    );
  }

  // the stage at or before one that has a part of that id
  home(stop, id) {
    return this.stops.filter((s) => s <= stop).findLast((s) => this.stage(s).has(id));
  }

  of(stop, id) {
    const home = this.home(stop, id);
    return home === undefined ? null : this.facts(this.stage(home).get(id).facts);
  }
}
