// What the modules of the explorer share; questions and their answers are declared in `questions.d.ts`.
import type {
  Answer,
  Ask as HostAsk,
  ElementData,
  FigureData,
  Name,
  PassRow,
  Questions,
  Rows,
  SceneData,
} from "./questions.js";

export type { FigureData, PassRow, Rows };

/** What belongs to one node, edge or group of a picture; `shapes` are kind (r, p, t), place and styles. */
export type Figure = Omit<ElementData, "shapes"> & { port?: string; shapes: any[][] };

/** A picture; `nodes` are id and group. */
export type Scene = Omit<SceneData, "figures"> & {
  figures: Figure[];
  nodes?: [id: string, group: string][];
};

/** Who answers questions and keeps what is chosen: the kernel of a notebook, or a saved page. */
export interface Host {
  live: boolean;
  ask: HostAsk;
  get(name: string): any;
  set(name: string, value: unknown): void;
  on(name: string, run: () => void): void;
}

/** Asks a question with its arguments. */
export type Ask = <Q extends Name>(what: Q, ...args: Questions[Q]["args"]) => Promise<Answer<Q>>;
