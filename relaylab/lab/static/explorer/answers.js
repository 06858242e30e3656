// @ts-check
// Questions to the host; an answer is kept until the pipeline is another.

export class Answers {
  /** @param {(what: any, args: any) => Promise<any>} ask */
  constructor(ask) {
    this.put = ask;
    /** @type {Map<string, Promise<any>>} */
    this.known = new Map();
    this.slow = 0; // how long the last picture took, in ms
    /** @type {import("../types.js").Ask} */
    this.ask = (what, ...args) => {
      const key = JSON.stringify([what, ...args]);
      let found = this.known.get(key);
      if (!found) {
        this.known.set(key, (found = this.timed(what, args)));
        // what was stopped, or had no kernel, is asked again
        found.then((answer) => answer.error && this.known.get(key) === found && this.known.delete(key));
      }
      return found;
    };
  }

  async timed(what, args) {
    const start = performance.now();
    const answer = await this.put(what, args);
    if (what === "picture") this.slow = performance.now() - start;
    return answer;
  }

  clear() {
    this.known.clear();
  }
}
