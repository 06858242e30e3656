// @ts-check
// Questions asked while nobody waits for an answer, so that the next step finds it there.

const PATIENCE = 1500; // ms that a picture may take to be asked for ahead

/** A moment in which the page has nothing else to do. */
export const idle = () =>
  new Promise((done) =>
    window.requestIdleCallback ? requestIdleCallback(done, { timeout: 400 }) : setTimeout(done, 100),
  );

/**
 * What the next step in either direction will ask, one question at a time, while `current()`. The kernel answers
 * between cells, so that a cell waits for one answer at most; where pictures take long none is asked for.
 * @param {import("./stages.js").Stages} stages
 * @param {import("./answers.js").Answers} answers
 * @param {(before: number, after: number) => any[]} picture  the question for a picture
 * @param {() => boolean} current
 */
export async function prefetch(stages, answers, picture, current) {
  for (const stage of [stages.next(1), stages.next(-1)]) {
    if (stage === undefined) continue;
    const questions = [picture(Math.max(0, stage - 1), stage)];
    if (stage) questions.push(["words", stage]);
    if (stages.rows[stage - 1]?.steps) questions.push(["steps", stage - 1]);
    for (const [what, ...args] of questions) {
      await idle();
      if (!current() || answers.slow > PATIENCE) return false;
      await answers.ask(what, ...args);
    }
  }
  return true;
}
