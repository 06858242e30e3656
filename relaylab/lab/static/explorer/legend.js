// @ts-check
// The line above the picture: what is compared, how many parts have each role, what is folded.
import { count, el, dim, link } from "../dom.js";

export const SIGNS = { added: "+", removed: "–", changed: "±", moved: "»", merged: "&" };
const SMALL = 24; // boxes up to which pictures are whole
const MANY = 100; // boxes from which on folding is offered

export const roleClass = (role) => `rl-role rl-role-${role}`;

// How many parts have each role, as `make(properties of an element)`.
export const roles = (counts, make) =>
  Object.entries(counts).map(([role, n]) =>
    make({ className: roleClass(role), textContent: `${SIGNS[role]} ${n} ${role}` }, role),
  );

/**
 * @param {{ roles: Record<string, number>, note?: string, whole?: number,
 *   scenes: import("../types.js").Scene[] }} picture
 * @param {{ title: string, same: boolean, folding: import("./folding.js").Folding }} what
 * @param {{ only: (role: string) => void, expand: () => void, changes: () => void, repeats: (() => void) | null }} act
 */
export function legend(picture, { title, same, folding }, act) {
  const counts = roles(picture.roles, (properties, role) =>
    el("button", { ...properties, title: "show only these", onclick: () => act.only(role) }),
  );
  const folded = folding.words ? [link(`${folding.words} folded: expand`, act.expand)] : [];
  const { near } = folding;
  const edges = near && count(near.hops, "edge");
  const close = near
    ? [
        dim(`within ${edges} of ${near.id.split("/").at(-1)}`, "span"),
        link("−", () => folding.widen(-1), "one edge less (−)"),
        link("+", () => folding.widen(1), "one edge more (+)"),
        link("all", () => folding.focus(""), "the whole again (Esc)"),
      ]
    : [];
  const { nodes } = picture.scenes.at(-1);
  const brief = picture.whole ? `${nodes.length} of ${picture.whole} nodes: show all` : "only what changed";
  const large = picture.whole || (counts.length && !folding.brief && nodes.length > SMALL);
  const offer = act.repeats && !folding.repeated && nodes.length > MANY;
  return [
    el("strong", { textContent: title }),
    ...(counts.length ? counts : [dim(same ? "" : "nothing changed", "span")]),
    ...(picture.note ? [dim(picture.note, "span")] : []),
    ...close,
    ...(large ? [link(brief, act.changes, "what changed with two edges around it, equal changes once (a)")] : []),
    ...folded,
    ...(offer ? [link("fold repeated blocks", act.repeats, "each run of equal blocks as one card, ×N (r)")] : []),
  ];
}
