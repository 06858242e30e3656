// Questions asked while nobody waits for an answer, so that the next step finds it there.

const PATIENCE = 1500; // ms that a picture may take to be asked for ahead

// A moment in which the page has nothing else to do.
export const rest = () => new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 400 }) : setTimeout(done, 100)));

// What the next step in either direction will ask, one question at a time, until the stage changes. The kernel answers
// between cells, so that a cell waits for one answer at most; where pictures take long none is asked for.
export async function ahead(explorer, turn) {
  const { after, changing, rows } = explorer;
  const steps = [changing.find((f) => f > after), changing.filter((f) => f < after).at(-1)].filter((f) => f !== undefined);
  for (const frame of steps) {
    const questions = [explorer.question(Math.max(0, frame - 1), frame)];
    if (frame) questions.push(["words", frame]);
    if (rows[frame - 1]?.steps) questions.push(["steps", frame - 1]);
    for (const question of questions) {
      await rest();
      if (turn !== explorer.turnNumber || explorer.slow > PATIENCE) return;
      await explorer.ask(...question);
    }
  }
  explorer.root.dataset.ahead = `${explorer.before}:${after}`;
}
