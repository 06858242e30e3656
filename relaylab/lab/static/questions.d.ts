// Made from the table of questions by `python -m relaylab.lab.declarations`:
// what the explorer can be asked, and the answers.
// prettier-ignore-start

/** The names of all branches, and of each its stages that differ from the one before, as frame and pass. */
export interface BranchList {
  names: string[];
  stages: Record<string, [number, string][]>;
}

/** The figures of two branches beside each other, and the operators whose number differs. */
export interface Compared {
  names: string[];
  rows: [string, string, number | null, number | null, number | null, ([number, number] | null)[]][];
  operators: [string, string, number | null, number | null, number | null, ([number, number] | null)[]][];
}

/** The shapes of one node, edge or group, as plain data. */
export interface ElementData {
  id: string;
  kind: string;
  label: string;
  detail: string;
  role: string;
  source: string;
  target: string;
  box: [number, number, number, number];
  shapes: (string | number)[][];
}

/** The picture of a program with its nodes as data. */
export interface GraphScene {
  title: string;
  width: number;
  height: number;
  figures: ElementData[];
  nodes: [string, string, string, string, string[]][];
}

/** The merged picture of two stages, how many parts have each role, and the text difference. */
export interface Versus {
  scenes: GraphScene[];
  roles: Record<string, number>;
  rows: [string, string | number, string][];
}

/** The nodes of a path, and how long it is, in words. */
export interface NodePath {
  ids: string[];
  text: string;
  nodes: [string, string, string][];
}

/** A part of a program: the name that it got, its Relay text (empty if too long), code that makes it, its inputs. */
export interface ExtractedPart {
  name: string;
  text: string;
  code: string;
  inputs: string[];
}

/** A figure by node and group; those that have none, or zero, are left out. */
export interface Overlay {
  name: string;
  unit: string;
  values: Record<string, number>;
}

/** The nodes of a path with their share of the whole, in words. */
export interface Critical {
  ids: string[];
  frame: number;
  text: string;
  nodes: [string, string, string][];
}

/** Operators as name, calls, MACs, bytes, microseconds. */
export interface Operators {
  frame: number;
  rows: [string, number, number, number, number | null][];
}

/** A kernel at each level. `parts`: title and id of nodes that lines belong to; a line is text and part or -1. */
export interface KernelLevels {
  name: string;
  relay: string;
  loops: string;
  parts: [string, string][];
  llvm: [string, number][];
  asm: [string, number][];
  coverage: string;
  why: string;
}

/** Passes as name, milliseconds, whether they changed the kernel, words, and the difference of the text. */
export interface LLVMSteps {
  steps: [string, number, boolean, string, string][];
}

/** What holds a part of the arena, in bytes, from which step to which. */
export interface MemoryBar {
  offset: number;
  bytes: number;
  first: number;
  last: number;
  kind: string;
}

/** The bytes of the arena and of the scratch beside it, the kernels in order, and what holds which bytes when. */
export interface MemoryPlan {
  arena: number;
  scratch: number;
  steps: string[];
  bars: MemoryBar[];
}

/** What is known of a constant; the statistics of one that has no finite number are left out. */
export interface Preview {
  name?: string;
  shape: number[];
  dtype: string;
  head: string[];
  min?: number;
  max?: number;
  mean?: number;
  std?: number;
  bins?: number[];
  edges?: number[];
  grid?: number[][];
}

export interface Chapter {
  frame: number;
  pass: string;
  what: string;
  ids: string[];
}

/** All about a node or group: where it was found last, what happened to it, whether it became part of a kernel. */
export interface NodeAnswer {
  id: string;
  title: string;
  kind: string;
  operator: string;
  type: string;
  text: string;
  names: string[];
  span: string;
  role: string;
  note: string;
  group: string;
  rows: string[];
  attrs: [string, string, boolean][];
  operands: [string, string, string][];
  cost: [string, number][];
  doc: string;
  values: Preview[];
  frame: number;
  story: Chapter[];
  kernel: boolean;
}

/** Ids by frame (as text: JSON has no other keys). */
export interface Counterparts {
  ids: Record<string, string[]>;
}

export interface Why {
  passes: [number, string][];
  pass: string;
  index: number;
  reasons?: [string, string, boolean, number, string, string][];
  error_here?: string;
}

/** How far the outputs after a pass are from those before all passes; no size where their shapes differ. */
export interface CheckAnswer {
  index: number;
  error_size: number | null;
  ok: boolean;
}

/** A picture as plain data, as `static/graph.js` reads it. */
export interface SceneData {
  title: string;
  width: number;
  height: number;
  figures: ElementData[];
}

/** The pass that first changed the numbers, a program that shows it, and a picture of the values. */
export interface Bisected {
  found: boolean;
  text: string;
  index?: number;
  reproducer?: string;
  scene?: SceneData;
}

/** A pass that another one ran or required. */
export interface NestedPass {
  name: string;
  ms: number;
  changed: boolean;
}

/** What one pass did: operators that came and went, work and traffic more or less, functions that it changed. */
export interface PassRow {
  name: string;
  text: string;
  enabled: boolean;
  ran: boolean;
  changed: boolean;
  skipped: string;
  ms: number;
  ops: [string, number][];
  macs: number;
  bytes: number;
  functions: string[];
  steps: number;
  error: string;
  nested: NestedPass[];
}

/** A figure that nodes can be coloured by; a ratio has no sum, a measured one needs compiled code. */
export interface FigureData {
  name: string;
  unit: string;
  ratio: boolean;
  measured: boolean;
}

/** All passes; `start` are the operators of the program before them, `edits` how many passes were run so far. */
export interface Rows {
  title: string;
  level: number;
  frames: number;
  start: Record<string, number>;
  rows: PassRow[];
  edits: number;
  figures: FigureData[];
}

/** One rewrite: the rule, the line of its source, the ids and texts of what was replaced by what. */
export interface Rewrite {
  rule: string;
  at: string;
  note: string;
  us: number;
  ids: string[];
  before: string;
  after: string;
}

/** The rewrites of a pass, in order. */
export interface Steps {
  steps: Rewrite[];
}

/** Sentences, the most important first. */
export interface Words {
  sentences: string[];
}

/** The options of a pass as name, value, default (empty if it must be given) and type, all as text. */
export interface PassOptions {
  name: string;
  options: [string, string, string, string][];
}

/** The pipeline as text that makes it again. */
export interface Copy {
  python: string;
  command: string;
}

/** A pass that would change the program, and the operators that would come and go. */
export interface Suggested {
  name: string;
  summary: string;
  ops: [string, number][];
  ms: number;
}

/** The passes that would change the program, in the order of their table. */
export interface SuggestedPasses {
  suggestions: Suggested[];
}

/** One scene, or two beside each other; how many parts have each role; groups as id, title, kind, parent. */
export interface PictureScenes {
  scenes: GraphScene[];
  roles: Record<string, number>;
  edges: number;
  groups: [string, string, string, string][];
  note?: string;
}

/** Lines as mark, text and node; the mark ⋮ stands for that many equal lines. */
export interface TextRows {
  rows: [string, string | number, string][];
}

/** A picture whose cells have the id `frame:row`. */
export interface HeatMap {
  scene: SceneData;
}

/** Every question: its arguments in order, and its answer. */
export interface Questions {
  /** Keep the current pipeline under a name, use a kept one as the current pipeline, or drop it; gives all names. */
  branch: { args: [how: "keep" | "use" | "drop" | "list", name: string]; answer: BranchList };
  /** The figures of both ends, the operators whose number differs, and if asked the measured time. */
  compare: { args: [a: string, b: string, measured?: boolean]; answer: Compared };
  /** A stage of one branch against a stage of another: the merged picture, the roles, the text difference. */
  versus: { args: [a: string, at_a: number, b: string, at_b: number]; answer: Versus };
  /** The nodes of a shortest path between two nodes, in the direction in which there is one. */
  path: { args: [frame: number, a: string, b: string]; answer: NodePath };
  /** Nodes (or all of a group) as a module of their own: its text, the code that makes it, the name that it got. */
  extract: { args: [frame: number, ids: string[], name?: string]; answer: ExtractedPart };
  /** A declared figure, or one of the user's own, for every node and group of a frame; of groups the sum. */
  overlay: { args: [name: string, frame: number]; answer: Overlay };
  /** The path with the largest sum of a figure; measured ones are of the last frame, the compiled one. */
  critical: { args: [frame: number, name: string]; answer: Critical };
  /** The table of operators of a frame, as rows; with measured times it is that of the last frame. */
  operators: { args: [frame: number, measured?: boolean]; answer: Operators };
  /** The kernel that a node became part of: Relay, loops, LLVM IR and assembly with linked lines. */
  kernel: { args: [frame: number, name: string]; answer: KernelLevels };
  /** What LLVM's own passes would do to the kernel of a node, pass by pass: name, ms, words, difference. */
  llvm: { args: [frame: number, name: string]; answer: LLVMSteps };
  /** The memory plan of the compiled program. */
  memory: { args: []; answer: MemoryPlan };
  /** All about a node or group, and its life story. */
  node: { args: [frame: number, name: string]; answer: NodeAnswer };
  /** What stands for a node (or what it was made from) in other frames, by frame; none is an empty list. */
  counterparts: { args: [frame: number, name: string, others: number[]]; answer: Counterparts };
  /** Why the pass at `index` (default: the one after or at the frame that can say) did nothing to a node. */
  why: { args: [frame: number, name: string, index?: number]; answer: Why };
  /** Whether a pass keeps the numbers: the interpreter on seeded input, against the program before all passes. */
  check: { args: [index: number]; answer: CheckAnswer };
  /** The pass and the rewrite that first changed the numbers. */
  bisect: { args: []; answer: Bisected };
  /** The passes with what each did in numbers, the error that stopped them, the frames; the figures of the menu. */
  rows: { args: []; answer: Rows };
  /** The single rewrites of a pass: rule, source line, what was replaced by what. */
  steps: { args: [index: number]; answer: Steps };
  /** What the pass before a frame did, in sentences. */
  words: { args: [frame: number]; answer: Words };
  /** The options of the pass at an index, each with value, default and type as text. */
  options: { args: [index: number]; answer: PassOptions };
  /** The pipeline as Python and as a command. */
  copy: { args: []; answer: Copy };
  /** Toggle, set, move, remove, insert a pass; undo or redo an edit. The new rows; what follows the edit runs. */
  edit: { args: [how: "toggle" | "set" | "move" | "remove" | "insert" | "undo" | "redo", index: number, value?: string | number | null]; answer: Rows };
  /** Which passes would change the program at a frame now. */
  suggest: { args: [frame: number]; answer: SuggestedPasses };
  /** The picture of a frame, or the difference of two; `closed` names folded groups, one a line; "×": all repeats. */
  picture: { args: [before: number, after: number, style?: "merged" | "both", closed?: string]; answer: PictureScenes };
  /** The difference of two frames as text, line by line; of a frame with itself all its lines. */
  text: { args: [before: number, after: number]; answer: TextRows };
  /** The heat map of the whole pipeline: how many nodes of each row each pass changed. */
  heat: { args: [by?: "function" | "operator"]; answer: HeatMap };
}

/** Questions whose answers a saved page unfolds from the stages that it holds. */
export type Held = "kernel" | "node" | "counterparts" | "picture" | "text";

/** Questions that were asked when a page was saved. */
export type Saved = "overlay" | "steps" | "words" | "heat";

/** The name of a question. */
export type Name = keyof Questions;

/** The answer to a question; where there is none, `error` says in words why, and nothing else is there. */
export type Answer<Q extends Name> = Questions[Q]["answer"] & { error?: string };

/** How a host is asked: a kernel answers, or what a saved page holds. */
export type Ask = <Q extends Name>(what: Q, args: Questions[Q]["args"]) => Promise<Answer<Q>>;
// prettier-ignore-end
