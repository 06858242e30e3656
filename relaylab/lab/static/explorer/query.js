// @ts-check
// The query language of the search field: words, /regex/, and op: attr: dtype: type: role: in: terms; all must hold.

function term(text) {
  const [, key, value] = text.match(/^(op|attr|dtype|type|role|in):(.*)$/i) ?? [null, "", text];
  const pattern = value.match(/^\/(.*)\/$/)?.[1];
  let test;
  try {
    const regex = pattern === undefined ? null : new RegExp(pattern, "i");
    test = (s) => (regex ? regex.test(s) : s.toLowerCase().includes(value.toLowerCase()));
  } catch {
    return null; // not a regular expression yet: the user is still typing
  }
  const fields = {
    op: (n) => [n.operator],
    attr: (n) => n.attrs,
    dtype: (n) => [n.type],
    type: (n) => [n.type],
    role: (n) => [n.role],
    in: (n) => [n.group],
    "": (n) => [`${n.id}\n${n.label}\n${n.detail}`],
  };
  return (node) => fields[key.toLowerCase()](node).some(test);
}

// The ids of the nodes of a scene that a query finds; null for the empty query.
export function query(text, scene) {
  const terms = text.match(/\S+/g)?.map(term).filter(Boolean) ?? [];
  if (!terms.length) return null;
  const facts = new Map(
    scene.nodes.map(([id, group, operator, type, attrs]) => [id, { group, operator, type, attrs }]),
  );
  const nodes = scene.figures
    .filter((f) => f.kind === "node")
    .map((f) => ({ operator: "", type: "", attrs: [], group: "", ...facts.get(f.id), ...f }));
  return nodes.filter((n) => terms.every((t) => t(n))).map((n) => n.id);
}
