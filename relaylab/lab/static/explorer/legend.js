// @ts-check
// The line above the picture: what is compared, how many parts have each role, what is folded.
import { el, dim, link } from "../dom.js";

export const SIGNS = { added: "+", removed: "–", changed: "±", moved: "»", merged: "&" };
const MANY = 100; // boxes from which on folding is offered

export const roleClass = (role) => `rl-role rl-role-${role}`;

// How many parts have each role, as `make(properties of an element)`.
export const roles = (counts, make) =>
  Object.entries(counts).map(([role, n]) =>
    make({ className: roleClass(role), textContent: `${SIGNS[role]} ${n} ${role}` }, role),
  );

/**
 * @param {{ roles: Record<string, number>, note?: string, scenes: import("../types.js").Scene[] }} picture
 * @param {{ title: string, same: boolean, folding: import("./folding.js").Folding }} what
 * @param {{ only: (role: string) => void, expand: () => void, repeats: (() => void) | null }} act
 */
export function legend(picture, { title, same, folding }, act) {
  const counts = roles(picture.roles, (properties, role) =>
    el("button", { ...properties, title: "show only these", onclick: () => act.only(role) }),
  );
  const folded = folding.words ? [link(`${folding.words} folded: expand`, act.expand)] : [];
  const offer = act.repeats && !folding.repeated && picture.scenes.at(-1).nodes.length > MANY;
  return [
    el("strong", { textContent: title }),
    ...(counts.length ? counts : [dim(same ? "" : "nothing changed", "span")]),
    ...(picture.note ? [dim(picture.note, "span")] : []),
    ...folded,
    ...(offer ? [link("fold repeated blocks", act.repeats, "each run of equal blocks as one card, ×N (r)")] : []),
  ];
}
