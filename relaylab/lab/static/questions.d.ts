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
  nodes: [string, string][];
}

/** The merged picture of two stages, how many parts have each role, and the text difference. */
export interface Versus {
  scenes: GraphScene[];
  roles: Record<string, number>;
  rows: [string, string | number, string, number[]][];
}

/** What stopped the pipeline: the class of the error (of a pass that raised), its text, the place and line of code; the calls as place, function, code, whether they are relaylab's; a Python program that shows it. */
export interface FailureFacts {
  index: number;
  name: string;
  raised: boolean;
  kind: string;
  message: string;
  at: string;
  code: string;
  trace: [string, string, string, boolean][];
  reproducer: string;
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

/** A figure by node and group; those that have none, or zero, are left out. A note says where it comes from. */
export interface Overlay {
  name: string;
  unit: string;
  values: Record<string, number>;
  note: string;
}

/** The nodes of a path with their share of the whole, in words. */
export interface Critical {
  ids: string[];
  frame: number;
  text: string;
  nodes: [string, string, string][];
}

/** Operators as name, calls, MACs, bytes, microseconds; for which sizes they were measured if some are open. */
export interface Operators {
  frame: number;
  sizes: string;
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

/** What steps make of the loops of a kernel, line by line; the largest difference of the program's results relative to the largest; microseconds with the picked loops and with these, and for which sizes if some are open; the steps that there are, and what each does. */
export interface LoopsTried {
  rows: [string, string | number, string, number[]][];
  error_size: number;
  times: [number, number];
  sizes: string;
  known: [string, string][];
}

/** Passes as name, milliseconds, whether they changed the kernel, words, and the difference of the text. */
export interface LLVMSteps {
  steps: [string, number, boolean, string, [string, string | number, string, number[]][]][];
}

/** A picture as plain data, as `static/graph.js` reads it. */
export interface SceneData {
  title: string;
  width: number;
  height: number;
  figures: ElementData[];
}

/** The control flow of a kernel. */
export interface FlowPicture {
  scene: SceneData;
}

/** The timeline of the arena: steps to the right, bytes upward; its bars say who fills them. */
export interface MemoryPicture {
  scene: SceneData;
}

/** Words by the English ones. */
export interface Wording {
  table: Record<string, string>;
}

/** A pass that another one ran or required. */
export interface NestedPass {
  name: string;
  ms: number;
  changed: boolean;
}

/** What one pass did: operators that came and went, work and traffic more or less, functions that it changed; the error that stopped it, and the class of that error. */
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
  error_kind: string;
  nested: NestedPass[];
}

/** A figure that nodes can be coloured by; a ratio has no sum, a measured one needs compiled code. */
export interface FigureData {
  name: string;
  unit: string;
  ratio: boolean;
  measured: boolean;
}

/** All passes; `start` are the operators of the program before them, `edits` how many passes were run so far, `functions` the most functions that the program has on its way. */
export interface Rows {
  title: string;
  level: number;
  frames: number;
  functions: number;
  start: Record<string, number>;
  rows: PassRow[];
  edits: number;
  figures: FigureData[];
}

/** How many nodes and groups have each role, one table a pass. */
export interface Changes {
  roles: Record<string, number>[];
}

/** Sentences, the most important first. */
export interface Words {
  sentences: string[];
}

/** The options of a pass as name, value, default (empty if it must be given), type and what it does, all as text. */
export interface PassOptions {
  name: string;
  options: [string, string, string, string, string][];
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

/** The program that the passes run over, as text. */
export interface SourceText {
  text: string;
}

/** What is wrong in a text, from a line and column to others, all from 1; `help` says what to do. */
export interface TextFault {
  line: number;
  column: number;
  end_line: number;
  end_column: number;
  message: string;
  help: string;
}

/** What is wrong with a text; if nothing is, the merged picture of what it changed, and the number of each role. */
export interface LiveAnswer {
  faults: TextFault[];
  scenes: GraphScene[];
  roles: Record<string, number>;
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
  family: string;
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
  figures: Record<string, number>;
  cost: [string, number][];
  doc: string;
  reference: string;
  values: Preview[];
  frame: number;
  story: Chapter[];
  kernel: boolean;
}

/** What queries look at in a node or group: attributes as name, value, whether that is the default; operands as name, text and type; figures by the names that queries know. */
export interface PartWords {
  id: string;
  title: string;
  kind: string;
  operator: string;
  family: string;
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
  figures: Record<string, number>;
}

/** The nodes of a frame, then its groups, as queries see them. */
export interface FrameParts {
  parts: PartWords[];
}

/** Ids by frame (as text: JSON has no other keys). */
export interface Counterparts {
  ids: Record<string, string[]>;
}

/** How far the outputs after a pass are from those before all passes; no size where their shapes differ. */
export interface CheckAnswer {
  index: number;
  error_size: number | null;
  ok: boolean;
}

/** The pass that first changed the numbers, a program that shows it, and a picture of the values; or the pass that stopped the pipeline, which has no picture. */
export interface Bisected {
  found: boolean;
  text: string;
  index?: number;
  reproducer?: string;
  scene?: SceneData;
}

/** One scene, or two beside each other; how many parts have each role; groups as id, title, kind, parent. `whole` is how many nodes there are where only what changed is shown. */
export interface PictureScenes {
  scenes: GraphScene[];
  roles: Record<string, number>;
  edges: number;
  groups: [string, string, string, string][];
  note?: string;
  whole?: number;
}

/** The suffixes of the files that a picture can be, each with what it is. */
export interface PictureFormats {
  formats: [string, string][];
}

/** The bytes of a file in base64. */
export interface PictureFile {
  data: string;
}

/** Lines as mark, text and node; the mark ⋮ stands for that many equal lines. */
export interface TextRows {
  rows: [string, string | number, string, number[]][];
}

/** A picture whose cells have the id `frame:row`. */
export interface HeatMap {
  scene: SceneData;
}

/** One rewrite: the rule (or what a pass without rules did), the line of its source, the ids of what was replaced by what, and the number of the next rewrite of the pass at the same node, or -1. */
export interface RewriteRow {
  rule: string;
  at: string;
  note: string;
  us: number;
  ids: string[];
  next: number;
}

/** The rewrites of a pass, in order. */
export interface Steps {
  steps: RewriteRow[];
}

/** One rewrite told whole: the pair of pictures, the names of the pattern as name, words and node, the changed lines, the Python of the rule or pass. */
export interface RewriteAnswer {
  before: SceneData;
  after: SceneData;
  bindings: [string, string, string][];
  rows: [string, string | number, string, number[]][];
  code: string;
}

/** Where code stands: the names of its file (whole, and from the home folder), or its cell; the first line. */
export interface Place {
  files: string[];
  cell: string;
  line: number;
}

/** A pass and one of its rewrites; -1 if there is none. */
export interface NextRewrite {
  index: number;
  at: number;
}

export interface NearMiss {
  pass: string;
  index: number;
  rule: string;
  words: string;
  fires: boolean;
  near: number;
  place: string;
  id: string;
  steps: [string, boolean, string][];
}

export interface Why {
  passes: [number, string][];
  pass: string;
  index: number;
  reasons: NearMiss[];
  others: NearMiss[];
  note?: string;
}

/** Every question: its arguments in order, and its answer. */
export interface Questions {
  /** Keep the current pipeline under a name, use a kept one as the current pipeline, or drop it; gives all names. */
  branch: { args: [how: "keep" | "use" | "drop" | "list", name: string]; answer: BranchList };
  /** The figures of both ends, the operators whose number differs, and if asked the measured time. */
  compare: { args: [a: string, b: string, measured?: boolean]; answer: Compared };
  /** A stage of one branch against a stage of another: the merged picture, the roles, the text difference. */
  versus: { args: [a: string, at_a: number, b: string, at_b: number]; answer: Versus };
  /** Why the pipeline stopped at a pass. */
  failure: { args: [index: number]; answer: FailureFacts };
  /** The nodes of a shortest path between two nodes, in the direction in which there is one. */
  path: { args: [frame: number, a: string, b: string]; answer: NodePath };
  /** Nodes (or all of a group) as a module of their own: its text, the code that makes it, the name that it got. */
  extract: { args: [frame: number, ids: string[], name?: string]; answer: ExtractedPart };
  /** A declared figure, or one of the user's own, for every node and group of a frame; of groups the sum. Times are those of the compiled kernels: at stages before the last they are carried back to the nodes. */
  overlay: { args: [name: string, frame: number]; answer: Overlay };
  /** The path with the largest sum of a figure; measured ones are of the last frame, the compiled one. */
  critical: { args: [frame: number, name: string]; answer: Critical };
  /** The table of operators of a frame, as rows; with measured times it is that of the last frame. */
  operators: { args: [frame: number, measured?: boolean]; answer: Operators };
  /** The kernel that a node became part of: Relay, loops, LLVM IR and assembly with linked lines. */
  kernel: { args: [frame: number, name: string]; answer: KernelLevels };
  /** The loops of the kernel of a node under a schedule, a step a line: what changes, the numbers, the time. */
  loops: { args: [frame: number, name: string, steps: string]; answer: LoopsTried };
  /** What LLVM's own passes would do to the kernel of a node, pass by pass: name, ms, words, difference. */
  llvm: { args: [frame: number, name: string]; answer: LLVMSteps };
  /** The blocks and loops of the kernel of a node, with their instructions. */
  flow: { args: [frame: number, name: string]; answer: FlowPicture };
  /** The memory plan of the compiled program. */
  memory: { args: []; answer: MemoryPicture };
  /** The words of the explorer in a language; none if it is only spoken English. */
  wording: { args: [language: string]; answer: Wording };
  /** The passes with what each did in numbers, the error that stopped them, the frames; the figures of the menu. */
  rows: { args: []; answer: Rows };
  /** What each pass did to nodes and groups: how many it added, removed, changed, moved, merged. */
  changes: { args: []; answer: Changes };
  /** What the pass before a frame did, in sentences. */
  words: { args: [frame: number]; answer: Words };
  /** The options of the pass at an index, each with value, default, type and what it does as text. */
  options: { args: [index: number]; answer: PassOptions };
  /** The pipeline as Python and as a command. */
  copy: { args: []; answer: Copy };
  /** Toggle, set, move, remove, insert a pass; undo or redo an edit. The new rows; what follows the edit runs. */
  edit: { args: [how: "toggle" | "set" | "move" | "remove" | "insert" | "undo" | "redo", index: number, value?: string | number | null]; answer: Rows };
  /** Which passes would change the program at a frame now. */
  suggest: { args: [frame: number]; answer: SuggestedPasses };
  /** The text of the program before all passes, to type in. */
  source: { args: []; answer: SourceText };
  /** What is wrong with a text, or what it changed since the good text before it, or since the program as it is. */
  live: { args: [text: string, since?: "before" | "program"]; answer: LiveAnswer };
  /** Run the passes over the program of a text; an edit that can be undone. The new rows. */
  begin_with: { args: [text: string]; answer: Rows };
  /** All about a node or group, and its life story. */
  node: { args: [frame: number, name: string]; answer: NodeAnswer };
  /** What the search looks at: the explorer's script evaluates queries itself, so that typing waits for no kernel. */
  parts: { args: [frame: number]; answer: FrameParts };
  /** What stands for a node (or what it was made from) in other frames, by frame; none is an empty list. */
  counterparts: { args: [frame: number, name: string, others: number[]]; answer: Counterparts };
  /** Whether a pass keeps the numbers: the interpreter on seeded input, against the program before all passes. */
  check: { args: [index: number]; answer: CheckAnswer };
  /** The pass and the rewrite that first changed the numbers, or the pass that raised. */
  bisect: { args: []; answer: Bisected };
  /** The picture of a frame, or the difference of two; `closed` names folded groups, one a line. Among them "×" means all repeats, "Δ" all that is far from every change (not beside each other), "+" before an id that it is shown, "→" that the picture runs from left to right. */
  picture: { args: [before: number, after: number, style?: "merged" | "both", closed?: string]; answer: PictureScenes };
  /** What the picture of a stage can be saved as. */
  formats: { args: []; answer: PictureFormats };
  /** What `picture` shows as a file of a format; both sides are two pages where it has pages, else one picture. */
  picture_file: { args: [before: number, after: number, style: "merged" | "both", closed: string, form: string]; answer: PictureFile };
  /** The difference of two frames as text, line by line; of a frame with itself all its lines. */
  text: { args: [before: number, after: number]; answer: TextRows };
  /** The heat map of the whole pipeline: how many nodes of each row each pass changed. */
  heat: { args: [by?: "function" | "operator"]; answer: HeatMap };
  /** The single rewrites of a pass, or what a pass without rules touched, in order. */
  steps: { args: [index: number]; answer: Steps };
  /** Pattern and result of a rewrite as pictures, what the names stand for, the changed lines, the rule's Python. */
  rewrite: { args: [index: number, at: number]; answer: RewriteAnswer };
  /** The file or cell that the rule of a rewrite stands in. */
  code_place: { args: [index: number, at: number]; answer: Place };
  /** The next rewrite, of this pass or a later one, that touched what a rewrite left. */
  next_rewrite: { args: [index: number, at: number]; answer: NextRewrite };
  /** Why the pass at `index` did nothing to a node; without it the pass of the frame, then the others by nearness. */
  why: { args: [frame: number, name: string, index?: number]; answer: Why };
}

/** Questions whose answers a saved page unfolds from the stages that it holds. */
export type Held = "kernel" | "node" | "parts" | "counterparts" | "picture" | "text";

/** Questions that were asked when a page was saved. */
export type Saved = "failure" | "overlay" | "changes" | "words" | "heat" | "steps" | "rewrite";

/** The name of a question. */
export type Name = keyof Questions;

/** The answer to a question; where there is none, `error` says in words why, and nothing else is there. */
export type Answer<Q extends Name> = Questions[Q]["answer"] & { error?: string };

/** How a host is asked: a kernel answers, or what a saved page holds. */
export type Ask = <Q extends Name>(what: Q, args: Questions[Q]["args"]) => Promise<Answer<Q>>;
// prettier-ignore-end
