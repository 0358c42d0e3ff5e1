/** Where the nodes of a graph stand. Pure. */

const GAP = 17; // Between two layers.
const HEIGHT = 42;
const ROW = 72;
const MARGIN = 14;
const LETTER = 7.6;
const NARROWEST = 76; // Of a node: what is told in it may be longer than its name.

/** Where a graph, or one within it, begins or ends: a dot without a name. */
export const isEnd = (id) => id.endsWith("__start__") || id.endsWith("__end__");

/** The name of a node within its group: "web:search" is "search" in "web". */
export const shortName = (id) => id.slice(id.lastIndexOf(":") + 1);
const groupOf = (id) => (id.includes(":") ? id.slice(0, id.indexOf(":")) : "");
const mean = (numbers) => (numbers.length ? numbers.reduce((one, other) => one + other, 0) / numbers.length : 0);

/**
 * Place a graph from left to right.
 * @param {{nodes: {id: string}[], edges: {source: string, target: string}[]}} graph
 * @returns {{width: number, height: number, nodes: object[], edges: object[], groups: object[]}}
 *   boxes by `x, y, width, height`; edges by `points`, from the rim of one box to that of another
 */
export function layout(graph) {
  const ids = graph.nodes.map((node) => node.id);
  const back = backEdges(ids, graph.edges);
  const forward = graph.edges.filter((edge) => !back.has(edge));
  const { cells, routes } = withBends(ids, forward, layersOf(ids, forward));
  placeRows(cells, routes);
  const boxes = measure([...cells.values()]);
  const nodes = ids.map((id) => ({ id, ...boxes.get(id) }));
  const edges = graph.edges.map((edge) => ({
    ...edge,
    back: back.has(edge),
    points: points(routes.get(edge) ?? [edge.source, edge.target], boxes),
  }));
  const groups = groupsOf(nodes);
  return { ...extent([...boxes.values(), ...groups]), nodes, edges, groups };
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
  for (const _ of ids) {
    for (const { source, target } of edges) layers.set(target, Math.max(layers.get(target), layers.get(source) + 1));
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

const inLayers = (cells) => cells.reduce((layers, cell) => {
  (layers[cell.layer] ??= []).push(cell);
  return layers;
}, []);

/** Put each node beside those it comes from, and spread a layer around the middle of them. */
function placeRows(cells, routes) {
  const before = new Map([...cells.keys()].map((id) => [id, []]));
  for (const route of routes.values()) route.slice(1).forEach((id, at) => before.get(id).push(route[at]));
  for (const members of inLayers([...cells.values()]).slice(1)) {
    for (const cell of members) cell.row = mean(before.get(cell.id).map((id) => cells.get(id).row));
    spread(members);
  }
}

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
function measure(cells) {
  const top = Math.min(...cells.map((cell) => cell.row));
  const boxes = new Map();
  let start = MARGIN;
  for (const members of inLayers(cells)) {
    const depth = Math.max(...members.map((cell) => sizeOf(cell).width));
    for (const cell of members) {
      const { width, height } = sizeOf(cell);
      const y = MARGIN + (cell.row - top) * ROW + HEIGHT / 2 + 14 - height / 2;
      boxes.set(cell.id, { x: start + (depth - width) / 2, y, width, height });
    }
    start += depth + GAP;
  }
  return boxes;
}

function points(route, boxes) {
  return route.map((id, at) => {
    const { x, y, width, height } = boxes.get(id);
    const along = at === 0 ? 1 : at === route.length - 1 ? 0 : 0.5;
    return [x + width * along, y + height / 2];
  });
}

/** The box around boxes, with its right and lower rim. */
function around(boxes) {
  const [x, y] = [Math.min(...boxes.map((box) => box.x)), Math.min(...boxes.map((box) => box.y))];
  const right = Math.max(...boxes.map((box) => box.x + box.width));
  return { x, y, right, bottom: Math.max(...boxes.map((box) => box.y + box.height)) };
}

/** Leave room for the names of groups below them. */
function extent(boxes) {
  const { right, bottom } = around(boxes);
  return { width: right + MARGIN, height: bottom + MARGIN + 6 };
}

function groupsOf(nodes) {
  const names = [...new Set(nodes.map((node) => groupOf(node.id)).filter(Boolean))];
  return names.map((name) => {
    const { x, y, right, bottom } = around(nodes.filter((node) => groupOf(node.id) === name));
    return { name, x: x - 10, y: y - 10, width: right - x + 20, height: bottom - y + 20 };
  });
}
