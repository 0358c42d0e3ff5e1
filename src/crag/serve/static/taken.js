/** Which edges a run has taken, as far as the nodes that it reached tell. Pure. */

/**
 * An edge between two nodes that were reached was taken, unless the run came to its target by way
 * of another node between them.
 * @param {{source: string, target: string}[]} edges
 * @param {Set<string>} reached
 */
export function taken(edges, reached) {
  const walked = edges.filter(({ source, target }) => reached.has(source) && reached.has(target));
  const lit = walked.filter((edge) => edge.source !== edge.target).filter(
    (edge) => !walked.some((other) => other !== edge && other.target === edge.target
      && other.source !== edge.source && leads(walked, edge.source, other.source, edge)),
  );
  return new Set(lit);
}

/** Say whether a way of edges leads from one node to another without using `left`. */
function leads(edges, from, to, left) {
  const seen = new Set([from]);
  const open = [from];
  while (open.length) {
    const at = open.pop();
    for (const edge of edges) {
      if (edge.source !== at || edge === left || seen.has(edge.target)) continue;
      if (edge.target === to) return true;
      seen.add(edge.target);
      open.push(edge.target);
    }
  }
  return false;
}
