/** Draws the graph, and lights up what a run has reached. */

import { drawn } from "./dom.js";
import { foldings, GAPS, isEnd, layout, shortName } from "./layout.js";
import { keep, recall } from "./stored.js";
import { taken } from "./taken.js";
import { doing, seconds, spelled } from "./words.js";

const SMALLEST = 0.75;
const DOWN = 34; // Downwards, conditions stand between the layers.
const SECTIONS = {
  critiques: ["decide", "prepare_passages"],
  documents: ["retrieve", "grade", "refine", "pass_through"],
  web: ["rewrite", "confirm_search", "search", "read_pages", "select"],
};
const WORDS = {
  idle: "", running: "running", done: "", passed: "no work", failed: "failed", waiting: "waits",
  cancelled: "stopped", skipped: "not needed",
};
const SPOKEN = { idle: "not reached", passed: "had nothing to do", skipped: "not needed" };
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
const MARKS = { done: "✓ ", failed: "✕ ", waiting: "? ", cancelled: "– " };

/** Where a node's work is shown on the page. */
function sectionOf(id) {
  if (id.startsWith("reflect")) return "critiques";
  const found = Object.entries(SECTIONS).find(([, names]) => names.includes(shortName(id)));
  return found ? found[0] : "answer";
}

const LIKED = "crag-graph";
const WIDE = "(min-width: 40rem)";

/**
 * A graph that opens from a line; drawn again when the width asks for it. It is open while a run works
 * and there is room, until words come; afterwards where somebody has opened it before.
 */
export class GraphView {
  /**
   * @param {HTMLElement} holder of the drawing
   * @param {HTMLDetailsElement} way what opens
   */
  constructor(holder, way) {
    this.holder = holder;
    this.way = way;
    this.graph = null;
    this.run = null;
    this.liked = recall(LIKED) === "open";
    way.open = this.liked;
    way.firstElementChild.addEventListener("click", () => this.#like(!way.open));
    new ResizeObserver(() => this.#draw()).observe(way);
  }

  /** Keep what somebody likes for the next answers, and the next visit. */
  #like(open) {
    this.chosen = true;
    this.liked = open;
    keep(LIKED, open ? "open" : "folded");
  }

  /** Open the drawing while there is nothing else to see, unless somebody has decided otherwise. */
  #unfold() {
    const { phase, draft } = this.run ?? {};
    if (phase !== "running") this.chosen = false;
    else if (this.chosen) return;
    this.way.open = this.liked || (phase === "waiting" || (phase === "running" && !draft)) && matchMedia(WIDE).matches;
  }

  /** Show another graph, untouched. */
  open(graph) {
    this.graph = graph;
    this.run = null;
    this.drawnFor = null;
    this.#draw();
  }

  /** Light up what the run has reached. */
  light(run) {
    this.run = run;
    this.#unfold();
    if (this.graph) this.#mark();
  }

  #draw() {
    const width = this.way.clientWidth;
    if (!this.graph || !width) return;
    const { placed, across, way, graph } = fitting(this.graph, width);
    if (this.drawnFor === way) return;
    this.drawnFor = way;
    this.drawn = graph;
    const svg = drawn("svg", { viewBox: `0 0 ${placed.width} ${placed.height}`, role: "group", "aria-label": "Nodes of the graph" });
    svg.style.maxWidth = `${placed.width}px`;
    svg.append(
      ...placed.groups.map((group) => groupBox(group, across)),
      ...(this.edges = placed.edges.map((edge) => edgeLine(edge, across))),
      ...(this.nodes = placed.nodes.map(nodeBox)),
      ...placed.edges.filter(isLabelled).map((edge) => edgeLabel(edge, placed.nodes, across)),
    );
    svg.addEventListener("keydown", (event) => this.#walk(event));
    this.nodes.find(({ tagName }) => tagName === "a")?.setAttribute("tabindex", "0");
    this.holder.replaceChildren(svg);
    this.#mark();
  }

  /** Let the arrow keys lead from node to node: all of them are one stop of Tab. */
  #walk(event) {
    const step = STEPS[event.key];
    const nodes = this.nodes.filter(({ tagName }) => tagName === "a");
    const at = nodes.indexOf(event.target.closest?.("a"));
    if (!step || at < 0 || !nodes[at + step]) return;
    event.preventDefault();
    nodes[at].setAttribute("tabindex", "-1");
    nodes[at + step].setAttribute("tabindex", "0");
    nodes[at + step].focus();
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
    const run = this.run;
    if (!run) return states;
    for (const step of run.steps) {
      states.set(step.node, step);
      if (step.node.includes(":")) states.set(`${step.node.slice(0, step.node.indexOf(":"))}:__start__`, { state: "done" });
    }
    for (const { id } of this.drawn.nodes) {
      const within = run.steps.filter(({ node }) => node.startsWith(`${id}:`));
      if (within.length && within.every(({ state }) => state === "passed")) states.set(id, { state: "passed" });
    }
    states.set("__start__", { state: "done" });
    if (run.phase === "done") {
      states.set("__end__", { state: "done" });
      for (const { id } of this.drawn.nodes) if (!states.has(id)) states.set(id, { state: "skipped" });
    }
    return states;
  }
}

/**
 * Lay a graph out across if it stays legible: closer together if need be, or with groups as single
 * nodes. Else downwards, where there is most room for few nodes.
 */
function fitting(whole, width) {
  const graphs = foldings(whole);
  for (const [folds, graph] of graphs.entries()) {
    for (const [gaps, gap] of Object.entries(GAPS)) {
      const placed = layout(graph, true, gap);
      const least = gaps === "wide" ? 1 : SMALLEST;
      if (width >= placed.width * least) return { placed, across: true, way: gaps + folds, graph };
    }
  }
  const graph = graphs.at(-1);
  return { placed: layout(graph, false, DOWN), across: false, way: "down", graph };
}

function groupBox({ name, x, y, width, height }, across) {
  const box = drawn("rect", { x, y, width, height, rx: 14 });
  const place = across
    ? { x: x + width - 10, y: y + height + 14, "text-anchor": "end" }
    : { x: x + width + 6, y: y + 14 };
  const label = drawn("text", place, name);
  return drawn("g", { class: "group", "aria-hidden": "true" }, box, label);
}

function edgeLine({ source, target, points, back }, across) {
  const line = source === target ? loop : back ? detour : smooth;
  return drawn("path", { d: line(points, across), class: "edge" });
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
  if (isEnd(id)) {
    const dot = drawn("circle", { cx: x + width / 2, cy: y + height / 2, r: width / 2 - 1, class: "end" });
    dot.dataset.node = id;
    return dot;
  }
  const node = drawn(
    "a",
    { class: "node", href: `#${sectionOf(id)}`, tabindex: "-1" },
    drawn("rect", { x, y, width, height, rx: 10 }),
    drawn("text", { class: "name", x: x + width / 2, y: y + height / 2 + 4.5 }, spelled(shortName(id))),
    drawn("text", { class: "told", x: x + width / 2, y: y + height / 2 + 13 }),
  );
  node.dataset.node = id;
  return node;
}

function markNode(node, step) {
  node.dataset.state = step.state;
  if (node.tagName !== "a") return;
  const time = step.state === "done" && step.ended ? seconds(step.ended - step.started) : "";
  const told = (MARKS[step.state] ?? "") + (time || WORDS[step.state]);
  node.querySelector(".told").textContent = told;
  node.classList.toggle("telling", told !== "");
  const spoken = [shortName(node.dataset.node), SPOKEN[step.state] ?? step.state, time];
  node.setAttribute("aria-label", spoken.filter(Boolean).join(", "));
}

/** Say what a run is doing just now. */
export function nowDoing(run) {
  const running = run.steps.filter((step) => step.state === "running" && !run.outer.has(step.id));
  return running.length ? running.map((step) => doing(step.node)).join(" and ") : "waiting for the server";
}
