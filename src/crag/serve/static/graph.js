/** Draws the graph, and lights up what a run has reached. */

import { drawn } from "./dom.js";
import { folded, isEnd, layout, shortName, taken } from "./layout.js";
import { seconds, spelled } from "./words.js";

const SMALLEST = 0.75;
const WORDS = {
  running: "running", passed: "no work", failed: "✕ failed", waiting: "? waits",
  cancelled: "– stopped", skipped: "not needed",
};
const SPOKEN = { idle: "not reached", passed: "had nothing to do", skipped: "not needed" };

/** A graph that is drawn again when the width asks for it. */
export class GraphView {
  /**
   * @param {HTMLElement} holder of the drawing
   * @param {{nodes: object[], edges: object[]}} graph
   * @param {(node: string) => void} open called with the node that was chosen
   */
  constructor(holder, graph, open = () => {}) {
    Object.assign(this, { holder, graph, open, run: null });
    this.observer = new ResizeObserver(() => this.#draw());
    this.observer.observe(holder);
  }

  /** Light up what the run has reached. */
  light(run) {
    this.run = run;
    this.observer.observe(this.holder);
    if (this.drawn) this.#mark();
  }

  #draw() {
    // An observer keeps what it observes, and with it the whole conversation that was left.
    if (!this.holder.isConnected) this.observer.disconnect();
    const width = this.holder.clientWidth;
    if (!width) return;
    const { placed, across, graph } = fitting(this.graph, width);
    const way = `${across} ${placed.width}`;
    if (this.drawnFor === way) return;
    Object.assign(this, { drawnFor: way, drawn: graph });
    const { width: wide, height } = placed;
    const svg = drawn("svg", { viewBox: `0 0 ${wide} ${height}`, role: "group", "aria-label": "Nodes of the graph" });
    svg.style.maxWidth = `${wide}px`;
    this.edges = placed.edges.map((edge) => drawn("path", { d: lineOf(edge)(edge.points, across), class: "edge" }));
    this.nodes = placed.nodes.map(nodeBox);
    svg.append(
      ...placed.groups.map((group) => groupBox(group, across)),
      ...this.edges,
      ...this.nodes,
      ...placed.edges.filter(isLabelled).map((edge) => edgeLabel(edge, placed.nodes, across)),
    );
    svg.addEventListener("click", (event) => this.#choose(event));
    this.holder.replaceChildren(svg);
    this.#mark();
  }

  #choose(event) {
    const node = event.target.closest(".node")?.dataset.node;
    if (!node) return;
    event.preventDefault();
    this.open(node);
  }

  #mark() {
    const states = this.#states();
    for (const node of this.nodes) markNode(node, states.get(node.dataset.node) ?? { state: "idle" });
    const reached = new Set([...states].filter(([, { state }]) => state !== "skipped").map(([id]) => id));
    const lit = taken(this.drawn.edges, reached);
    this.drawn.edges.forEach((edge, at) => this.edges[at].classList.toggle("taken", lit.has(edge)));
  }

  /** Say for each node how far it is; the latest step counts where one ran several times. */
  #states() {
    const states = new Map();
    if (!this.run) return states;
    const { steps, ended, phase } = this.run;
    for (const step of steps) {
      states.set(step.node, step);
      if (step.node.includes(":")) states.set(`${step.node.slice(0, step.node.indexOf(":"))}:__start__`, { state: "done" });
    }
    for (const { id } of this.drawn.nodes) {
      const within = steps.filter(({ node }) => node.startsWith(`${id}:`));
      if (within.length && within.every(({ state }) => state === "passed")) states.set(id, { state: "passed" });
    }
    states.set("__start__", { state: "done" });
    if (!ended || ["waiting", "failed", "cancelled", "broken"].includes(phase)) return states;
    states.set("__end__", { state: "done" });
    for (const { id } of this.drawn.nodes) if (!states.has(id)) states.set(id, { state: "skipped" });
    return states;
  }
}

/**
 * Lay a graph out across if it stays legible, or with groups as single nodes; else downwards, where
 * there is most room for few nodes.
 */
function fitting(whole, width) {
  const graph = folded(whole);
  const placed = [whole, graph].map((one) => ({ placed: layout(one, true), across: true, graph: one }));
  return placed.find((one) => width >= one.placed.width * SMALLEST) ?? { placed: layout(graph, false), across: false, graph };
}

function groupBox({ name, x, y, width, height }, across) {
  const box = drawn("rect", { x, y, width, height, rx: 14 });
  const place = across
    ? { x: x + width - 10, y: y + height + 14, "text-anchor": "end" }
    : { x: x + width + 6, y: y + 14 };
  return drawn("g", { class: "group", "aria-hidden": "true" }, box, drawn("text", place, name));
}

/** A conditional edge says on what condition it is taken, unless that is the name of its target. */
const isLabelled = ({ data, target }) => Boolean(data) && data !== shortName(target);

/** Write a condition above the node it leads to; across, below a group, where its frame leaves room. */
function edgeLabel({ data, target }, nodes, across) {
  const { x, y, width, height } = nodes.find(({ id }) => id === target);
  const within = target.includes(":");
  const place = within && across
    ? { x: x - 10, y: y + height + 24, "text-anchor": "start" }
    : { x: x + width / 2, y: y - (within ? 15 : 6), "text-anchor": "middle" };
  return drawn("text", { ...place, class: "condition", "aria-hidden": "true" }, String(data));
}

const lineOf = ({ source, target, back }) => (source === target ? loop : back ? detour : smooth);

function smooth([first, ...others], across) {
  let [x, y] = first;
  let path = `M${x},${y}`;
  for (const [toX, toY] of others) {
    const [midX, midY] = [(x + toX) / 2, (y + toY) / 2];
    path += across ? `C${midX},${y} ${midX},${toY} ${toX},${toY}` : `C${x},${midY} ${toX},${midY} ${toX},${toY}`;
    [x, y] = [toX, toY];
  }
  return path;
}

/** Lead an edge from a node to itself: from where it is left, back to where it is entered. */
function loop([[fromX, fromY], [toX, toY]], across) {
  return across
    ? `M${fromX - 12},${fromY - 21}C${fromX - 6},${fromY - 44} ${toX + 6},${toY - 44} ${toX + 12},${toY - 21}`
    : `M${fromX + 33},${fromY - 10}C${fromX + 58},${fromY - 6} ${toX + 58},${toY + 6} ${toX + 33},${toY + 10}`;
}

/** Lead an edge that goes back around the nodes it passes. */
function detour([[fromX, fromY], [toX, toY]], across) {
  const bow = 58;
  return across
    ? `M${fromX},${fromY}C${fromX + 30},${fromY - bow} ${toX - 30},${toY - bow} ${toX},${toY}`
    : `M${fromX},${fromY}C${fromX + bow * 2},${fromY + 30} ${toX + bow * 2},${toY - 30} ${toX},${toY}`;
}

function nodeBox({ id, x, y, width, height }) {
  const [middle, centre] = [x + width / 2, y + height / 2];
  const node = isEnd(id)
    ? drawn("circle", { cx: middle, cy: centre, r: width / 2 - 1, class: "end" })
    : drawn(
      "a",
      { class: "node", href: "#turns" },
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
