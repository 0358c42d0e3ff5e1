/** Draws the graph, and lights up what a run has reached. */

import { drawn } from "./dom.js";
import { isEnd, layout, shortName } from "./layout.js";
import { seconds, spelled } from "./words.js";

const SMALLEST = 0.75;
const WORDS = {
  running: "running", passed: "no work", failed: "✕ failed", waiting: "? waits",
  cancelled: "– stopped", skipped: "not needed",
};
const SPOKEN = { idle: "not reached", passed: "had nothing to do", skipped: "not needed" };

/** The drawing of a graph; where it is wider than its holder, that scrolls. */
export class GraphView {
  /** @param {{nodes: object[], edges: object[]}} graph */
  constructor(holder, graph) {
    this.graph = graph;
    const { width, height, groups, edges, nodes } = layout(graph);
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Nodes of the graph" });
    Object.assign(svg.style, { maxWidth: `${width}px`, minWidth: `${width * SMALLEST}px` });
    this.edges = edges.map((edge) => drawn("path", { d: lineOf(edge)(edge.points), class: "edge" }));
    this.nodes = nodes.map(nodeBox);
    const labels = edges.filter(isLabelled).map((edge) => edgeLabel(edge, nodes));
    svg.append(...groups.map(groupBox), ...this.edges, ...this.nodes, ...labels);
    holder.replaceChildren(svg);
  }

  /** Light up what a run has reached. */
  light(run) {
    const states = this.#states(run);
    for (const node of this.nodes) markNode(node, states.get(node.dataset.node) ?? { state: "idle" });
    const reached = new Set([...states].filter(([, { state }]) => state !== "skipped").map(([id]) => id));
    this.graph.edges.forEach(({ source, target }, at) => {
      this.edges[at].classList.toggle("taken", source !== target && reached.has(source) && reached.has(target));
    });
  }

  /** Say for each node how far it is; the latest step counts where one ran several times. */
  #states({ steps, ended, phase }) {
    const states = new Map();
    for (const step of steps) {
      states.set(step.node, step);
      if (step.node.includes(":")) states.set(`${step.node.slice(0, step.node.indexOf(":"))}:__start__`, { state: "done" });
    }
    for (const { id } of this.graph.nodes) {
      const within = steps.filter(({ node }) => node.startsWith(`${id}:`));
      if (within.length && within.every(({ state }) => state === "passed")) states.set(id, { state: "passed" });
    }
    states.set("__start__", { state: "done" });
    if (!ended || ["waiting", "failed", "cancelled", "broken"].includes(phase)) return states;
    states.set("__end__", { state: "done" });
    for (const { id } of this.graph.nodes) if (!states.has(id)) states.set(id, { state: "skipped" });
    return states;
  }
}

function groupBox({ name, x, y, width, height }) {
  const box = drawn("rect", { x, y, width, height, rx: 14 });
  const place = { x: x + width - 10, y: y + height + 14, "text-anchor": "end" };
  return drawn("g", { class: "group", "aria-hidden": "true" }, box, drawn("text", place, name));
}

/** A conditional edge says on what condition it is taken, unless that is the name of its target. */
const isLabelled = ({ data, target }) => Boolean(data) && data !== shortName(target);

/** Write a condition above the node it leads to; below a group, whose frame leaves room there. */
function edgeLabel({ data, target }, nodes) {
  const { x, y, width, height } = nodes.find(({ id }) => id === target);
  const place = target.includes(":")
    ? { x: x - 10, y: y + height + 24, "text-anchor": "start" }
    : { x: x + width / 2, y: y - 6, "text-anchor": "middle" };
  return drawn("text", { ...place, class: "condition", "aria-hidden": "true" }, String(data));
}

const lineOf = ({ source, target, back }) => (source === target ? loop : back ? detour : smooth);

function smooth([[x, y], ...others]) {
  let [path, fromX, fromY] = [`M${x},${y}`, x, y];
  for (const [toX, toY] of others) {
    const middle = (fromX + toX) / 2;
    path += `C${middle},${fromY} ${middle},${toY} ${toX},${toY}`;
    [fromX, fromY] = [toX, toY];
  }
  return path;
}

/** Lead an edge from a node to itself: from where it is left, back to where it is entered. */
const loop = ([[fromX, fromY], [toX, toY]]) =>
  `M${fromX - 12},${fromY - 21}C${fromX - 6},${fromY - 44} ${toX + 6},${toY - 44} ${toX + 12},${toY - 21}`;

/** Lead an edge that goes back around the nodes it passes. */
const detour = ([[fromX, fromY], [toX, toY]]) =>
  `M${fromX},${fromY}C${fromX + 30},${fromY - 58} ${toX - 30},${toY - 58} ${toX},${toY}`;

function nodeBox({ id, x, y, width, height }) {
  const [middle, centre] = [x + width / 2, y + height / 2];
  const node = isEnd(id)
    ? drawn("circle", { cx: middle, cy: centre, r: width / 2 - 1, class: "end" })
    : drawn(
      "g",
      { class: "node", role: "img" },
      drawn("rect", { x, y, width, height, rx: 10 }),
      drawn("text", { class: "name", x: middle, y: centre + 4.5 }, spelled(shortName(id))),
      drawn("text", { class: "told", x: middle, y: centre + 13 }),
    );
  node.dataset.node = id;
  return node;
}

function markNode(node, { state, started, ended }) {
  node.dataset.state = state;
  if (!node.classList.contains("node")) return;
  const time = state === "done" && ended ? seconds(ended - started) : "";
  const told = time ? `✓ ${time}` : state === "done" ? "✓" : WORDS[state] ?? "";
  node.querySelector(".told").textContent = told;
  node.classList.toggle("telling", told !== "");
  const spoken = [shortName(node.dataset.node), SPOKEN[state] ?? state, time];
  node.setAttribute("aria-label", spoken.filter(Boolean).join(", "));
}
