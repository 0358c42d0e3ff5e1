/** Where the nodes of a graph stand: layers along the run, rows across it. Pure. */

/** Between two layers: where there is room, and where a long graph has to fit. */
export const GAPS = { wide: 26, tight: 14 };
const HEIGHT = 42;
const ROW = 72;
const COLUMN = 132;
const MARGIN = 14;
const LETTER = 7.6;
const NARROWEST = 76; // Of a node: what is told in it may be longer than its name.

/** Where a graph, or one within it, begins or ends: a dot without a name. */
export const isEnd = (id) => id.endsWith("__start__") || id.endsWith("__end__");

/** The name of a node within its group: "web:search" is "search" in "web". */
export const shortName = (id) => id.slice(id.lastIndexOf(":") + 1);
const groupOf = (id) => (id.includes(":") ? id.slice(0, id.indexOf(":")) : "");

/** Return the graph, then the same with one group more drawn as a single node, the largest first. */
export function foldings(graph) {
  const sizes = new Map();
  for (const { id } of graph.nodes) if (groupOf(id)) sizes.set(groupOf(id), (sizes.get(groupOf(id)) ?? 0) + 1);
  const groups = [...sizes.keys()].sort((one, other) => sizes.get(other) - sizes.get(one));
  return [graph, ...groups.map((_, at) => folded(graph, new Set(groups.slice(0, at + 1))))];
}

function folded({ nodes, edges }, groups) {
  const named = (id) => (groups.has(groupOf(id)) ? groupOf(id) : id);
  const kept = edges.map((edge) => ({ ...edge, source: named(edge.source), target: named(edge.target) }))
    .filter(({ source, target }, at) => source !== target || named(edges[at].source) === edges[at].source);
  const ids = new Set(nodes.map(({ id }) => named(id)));
  const byEnds = new Map(kept.map((edge) => [`${edge.source}>${edge.target}`, edge]));
  return { nodes: [...ids].map((id) => ({ id })), edges: [...byEnds.values()] };
}

/**
 * Place a graph.
 * @param {{nodes: {id: string}[], edges: {source: string, target: string}[]}} graph
 * @param {boolean} across from left to right; else from top to bottom
 * @param {number} gap between two layers
 * @returns {{width: number, height: number, nodes: object[], edges: object[], groups: object[]}}
 *   boxes by `x, y, width, height`; edges by `points`, from the rim of one box to that of another
 */
export function layout(graph, across, gap = GAPS.wide) {
  const ids = graph.nodes.map((node) => node.id);
  const back = backEdges(ids, graph.edges);
  const forward = graph.edges.filter((edge) => !back.has(edge));
  const layers = layersOf(ids, forward);
  const { cells, routes } = withBends(ids, forward, layers);
  placeRows(cells, routes);
  const boxes = measure(cells, across, gap);
  const nodes = ids.map((id) => ({ id, ...boxes.get(id) }));
  const edges = graph.edges.map((edge) => ({
    ...edge,
    back: back.has(edge),
    points: points(back.has(edge) ? [edge.source, edge.target] : routes.get(edge), boxes, across),
  }));
  const groups = groupsOf(nodes);
  return { ...extent([...boxes.values(), ...groups], across), nodes, edges, groups };
}

/** Find the edges that close a cycle, in the order in which a run would meet them. */
function backEdges(ids, edges) {
  const found = new Set();
  const state = new Map();
  const visit = (id) => {
    state.set(id, "open");
    for (const edge of edges.filter((one) => one.source === id)) {
      if (state.get(edge.target) === "open") found.add(edge);
      else if (!state.has(edge.target)) visit(edge.target);
    }
    state.set(id, "closed");
  };
  for (const id of ids) if (!state.has(id)) visit(id);
  return found;
}

/** Give each node the length of the longest way to it. */
function layersOf(ids, edges) {
  const layers = new Map(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round += 1) {
    for (const { source, target } of edges) {
      layers.set(target, Math.max(layers.get(target), layers.get(source) + 1));
    }
  }
  return layers;
}

/** Let an edge over several layers bend in each, so that it passes beside the nodes there. */
function withBends(ids, edges, layers) {
  const cells = new Map(ids.map((id) => [id, { id, layer: layers.get(id), row: 0, bend: false }]));
  const routes = new Map();
  for (const edge of edges) {
    const route = [edge.source];
    for (let layer = layers.get(edge.source) + 1; layer < layers.get(edge.target); layer += 1) {
      const id = `${edge.source}>${edge.target}@${layer}`;
      cells.set(id, { id, layer, row: 0, bend: true });
      route.push(id);
    }
    routes.set(edge, [...route, edge.target]);
  }
  return { cells, routes };
}

/** Put each node beside those it comes from, and spread a layer around the middle of them. */
function placeRows(cells, routes) {
  const before = new Map([...cells.keys()].map((id) => [id, []]));
  for (const route of routes.values()) {
    for (let at = 1; at < route.length; at += 1) before.get(route[at]).push(route[at - 1]);
  }
  const last = Math.max(...[...cells.values()].map((cell) => cell.layer));
  for (let layer = 1; layer <= last; layer += 1) {
    const members = [...cells.values()].filter((cell) => cell.layer === layer);
    for (const cell of members) cell.row = mean(before.get(cell.id).map((id) => cells.get(id).row));
    spread(members);
  }
}

const mean = (numbers) =>
  numbers.length ? numbers.reduce((total, number) => total + number, 0) / numbers.length : 0;

/** Keep neighbours at least one row apart, without moving the middle of the layer. */
function spread(members) {
  members.sort((one, other) => one.row - other.row);
  const middle = mean(members.map((cell) => cell.row));
  for (let at = 1; at < members.length; at += 1) {
    members[at].row = Math.max(members[at].row, members[at - 1].row + 1);
  }
  const shift = middle - mean(members.map((cell) => cell.row));
  for (const cell of members) cell.row += shift;
}

function sizeOf({ id, bend }) {
  if (bend) return { width: 0, height: 0 };
  if (isEnd(id)) return { width: 16, height: 16 };
  return { width: Math.max(NARROWEST, shortName(id).length * LETTER + 22), height: HEIGHT };
}

/** Turn layers and rows into boxes. */
function measure(cells, across, gap) {
  const sizes = new Map([...cells.values()].map((cell) => [cell.id, sizeOf(cell)]));
  const starts = startsOf(cells, sizes, across, gap);
  const top = Math.min(...[...cells.values()].map((cell) => cell.row));
  const boxes = new Map();
  for (const { id, layer, row } of cells.values()) {
    const { width, height } = sizes.get(id);
    const along = starts[layer].middle;
    const aside = MARGIN + (row - top) * (across ? ROW : COLUMN) + (across ? HEIGHT / 2 + 14 : COLUMN / 2);
    const [x, y] = across ? [along, aside] : [aside, along];
    boxes.set(id, { x: x - width / 2, y: y - height / 2, width, height });
  }
  return boxes;
}

function startsOf(cells, sizes, across, gap) {
  const starts = [];
  let at = MARGIN;
  const last = Math.max(...[...cells.values()].map((cell) => cell.layer));
  for (let layer = 0; layer <= last; layer += 1) {
    const members = [...cells.values()].filter((cell) => cell.layer === layer);
    const size = Math.max(...members.map(({ id }) => sizes.get(id)[across ? "width" : "height"]));
    starts.push({ middle: at + size / 2 });
    at += size + gap;
  }
  return starts;
}

function points(route, boxes, across) {
  return route.map((id, at) => {
    const { x, y, width, height } = boxes.get(id);
    const along = at === 0 ? 1 : at === route.length - 1 ? 0 : 0.5;
    return across ? [x + width * along, y + height / 2] : [x + width / 2, y + height * along];
  });
}

/** Leave room for the names of groups: below them across, beside them downwards. */
function extent(boxes, across) {
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return { width: right + MARGIN + (across ? 0 : 36), height: bottom + MARGIN + (across ? 6 : 0) };
}

function groupsOf(nodes) {
  const names = [...new Set(nodes.map((node) => groupOf(node.id)).filter(Boolean))];
  return names.map((name) => {
    const members = nodes.filter((node) => groupOf(node.id) === name);
    const x = Math.min(...members.map((box) => box.x)) - 10;
    const y = Math.min(...members.map((box) => box.y)) - 10;
    const right = Math.max(...members.map((box) => box.x + box.width)) + 10;
    const bottom = Math.max(...members.map((box) => box.y + box.height)) + 10;
    return { name, x, y, width: right - x, height: bottom - y };
  });
}
