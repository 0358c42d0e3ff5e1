/** One question and what became of it, as the server's events tell it: pure data, drawn elsewhere. */

/**
 * @typedef {object} Step one execution of one node
 * @property {string} id
 * @property {string} node its name in the drawing, such as "web:search"
 * @property {"running"|"done"|"passed"|"failed"|"waiting"|"cancelled"} state "passed": it ran, and
 *   had nothing to do
 * @property {number} started milliseconds
 * @property {number|null} ended
 */

const ANSWERING = "generate";
const OUTCOMES = new Set(["answered", "likely", "not_found", "nothing_asked"]);
const isOver = ({ state }) => ["done", "passed"].includes(state);

/**
 * Begin a run; nothing has been heard of it yet.
 * @param {{question: string, graph: string, settings?: object, thread?: string|null, parent?: string|null}} asked
 *   `parent` is the checkpoint it goes on from
 */
export function begin(asked, now) {
  return {
    settings: {}, thread: null, parent: null, ...asked,
    checkpoint: null, phase: "running", started: now, ended: null, values: {}, steps: [],
    draft: "", drafted: null, asked: null, problem: "", outer: new Set(),
  };
}

/** Return a run that the server has kept, as the end of a turn. */
export function kept({ checkpoint, parent, values, interrupts }, { thread, graph }) {
  const run = begin({ question: values.asked ?? "", thread, graph, parent }, null);
  const asked = interrupts[0] ?? null;
  return Object.assign(run, { checkpoint, values, asked, phase: asked ? "waiting" : phaseOf(values) });
}

const phaseOf = ({ outcome }) => (OUTCOMES.has(outcome) ? outcome : "answered");

/**
 * Take in one event of the stream.
 * @param {ReturnType<typeof begin>} run is changed
 * @param {{event: string, data: any}} part
 * @param {number} now milliseconds
 */
export function take(run, { event, data }, now) {
  const [kind, ...spaces] = event.split("|");
  for (const space of spaces) run.outer.add(space.slice(space.lastIndexOf(":") + 1));
  if (kind === "thread") run.thread = data;
  else if (kind === "messages" && !spaces.length) spoken(run, data);
  else if (kind === "tasks" && "input" in data) entered(run, data, spaces, now);
  else if (kind === "tasks") left(run, data, now);
  else if (kind === "error") close(run, data.error === "replaced" ? "cancelled" : "failed", now, data.message);
  else if (kind === "end") {
    run.checkpoint = data.checkpoint;
    close(run, data.waits ? "waiting" : phaseOf(run.values), now);
  }
}

function spoken(run, [chunk, metadata]) {
  if (metadata.langgraph_node !== ANSWERING || chunk.type !== "AIMessageChunk") return;
  const { content } = chunk;
  const words = typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");
  // A model that is asked again writes another message, which takes the place of the first.
  run.draft = (run.drafted === chunk.id ? run.draft : "") + words;
  run.drafted = chunk.id;
}

function entered(run, { id, name }, spaces, now) {
  const known = run.steps.find((step) => step.id === id);
  // A resumed run begins again what had ended before it was interrupted, and keeps its results.
  if (known && isOver(known)) return;
  const path = spaces.map((space) => space.slice(0, space.lastIndexOf(":")));
  const step = known ?? { id, node: [...path, name].join(":") };
  Object.assign(step, { state: "running", started: now, ended: null });
  if (!known) run.steps.push(step);
}

function left(run, { id, result, error, interrupts }, now) {
  const step = run.steps.find((known) => known.id === id);
  if (!step || isOver(step)) return;
  const update = result ?? {};
  step.ended = now;
  step.state = error ? "failed" : interrupts?.length ? "waiting" : didNothing(run, step, update) ? "passed" : "done";
  if (step.state === "waiting") run.asked = interrupts[0].value ?? interrupts[0];
  else merge(run.values, update, run.outer.has(id));
}

const IDLE = {
  contextualize: (_, { events = [] }) => events.some?.(({ kind }) => kind === "contextualize_skipped"),
  rewrite: ({ question }, { query, usage }) => !usage?.llm_calls && query === question,
  search: (_, { usage }) => !usage?.searches,
  read_pages: (_, { pages }) => !pages?.length,
  select: (_, { strips }) => !strips?.length,
};

/** Whether a node ran and had nothing to do, as the web branch without a searcher. */
const didNothing = ({ values }, { node }, update) => Boolean(IDLE[node.split(":").at(-1)]?.(values, update));

/** How updates of a key are added to what is known, as the server's reducers do it. */
const ADDED = {
  events: (known = [], events) => (events ? [...known, ...events] : []),
  usage: (known = {}, usage) => {
    const sums = Object.entries(usage).map(([name, number]) => [name, (known[name] ?? 0) + number]);
    return { ...known, ...Object.fromEntries(sums) };
  },
  strips: (known = [], strips) => {
    const others = known.filter(({ kind }) => !strips.some((strip) => strip.kind === kind));
    const all = [...others, ...strips];
    return [...all.filter(({ kind }) => kind !== "web"), ...all.filter(({ kind }) => kind === "web")];
  },
  reflection: (known, update) => update && { ...known, ...update },
};

/** Merge an update; a graph within has told its events and counts already, node by node. */
function merge(values, update, toldBefore) {
  for (const [key, value] of Object.entries(update)) {
    if (value?.type === "__overwrite__") values[key] = value.value;
    else if (!toldBefore || !["events", "usage"].includes(key)) {
      values[key] = Object.hasOwn(ADDED, key) ? ADDED[key](values[key], value) : value;
    }
  }
}

/** End a run that is under way in the phase that is named, and say what the problem was. */
export function close(run, phase, now, problem = "") {
  Object.assign(run, { phase, ended: now, problem });
  const isWhole = OUTCOMES.has(phase);
  if (phase === "waiting") return;
  run.asked = null;
  for (const step of run.steps) {
    if (!["running", "waiting"].includes(step.state)) continue;
    Object.assign(step, { state: isWhole ? "done" : phase === "failed" ? "failed" : "cancelled", ended: step.ended ?? now });
  }
}

/** Go on after a human has decided. */
export function resume(run) {
  Object.assign(run, { asked: null, phase: "running", ended: null });
}

/** Begin anew with the same question, as after its process was killed. */
export function restart(run) {
  Object.assign(run, { values: {}, steps: [], draft: "", drafted: null, outer: new Set() });
}

export const isEnded = ({ phase }) => !["running", "waiting"].includes(phase);
