/** A run as it is told by the server's events: pure data, drawn elsewhere. */

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
const ENDED = new Set(["done", "passed"]);

/** Begin a run; nothing has been heard of it yet. */
export function begin(question, graph, settings, now) {
  return {
    question,
    graph,
    settings,
    thread: "",
    id: "",
    phase: "running",
    started: now,
    ended: null,
    values: {},
    steps: [],
    draft: "",
    drafted: undefined,
    asked: null,
    error: null,
    checkpoint: null,
    resumed: false,
    outer: new Set(),
  };
}

/**
 * Take in one event of the stream.
 * @param {ReturnType<typeof begin>} run is changed
 * @param {{event: string, data: any}} part
 * @param {number} now milliseconds
 * @returns {string[]} which keys of the state, or "steps", "draft", "asked", "error", changed
 */
export function take(run, { event, data }, now) {
  const [kind, ...spaces] = event.split("|");
  const path = spaces.map((space) => space.slice(0, space.lastIndexOf(":")));
  for (const space of spaces) run.outer.add(space.slice(space.lastIndexOf(":") + 1));
  if (kind === "metadata") run.id = data.run_id;
  if (kind === "error") return failed(run, data, now);
  if (kind === "messages") return spoken(run, data, path);
  if (kind !== "tasks") return [];
  return "input" in data ? entered(run, data, path, now) : left(run, data, now);
}

function failed(run, data, now) {
  run.phase = /^User(Interrupt|Rollback)$/.test(data.error) ? "cancelled" : "failed";
  run.error = { name: data.error, message: plainError(data.message) };
  stop(run, run.phase, now);
  return ["steps", "error"];
}

function spoken(run, [chunk, metadata], path) {
  if (path.length || metadata.langgraph_node !== ANSWERING || chunk.type !== "AIMessageChunk") return [];
  // A model that is asked again writes another message, which takes the place of the first.
  run.draft = (run.drafted === chunk.id ? run.draft : "") + textOf(chunk.content);
  run.drafted = chunk.id;
  return ["draft"];
}

function textOf(content) {
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? "").join("");
}

function entered(run, data, path, now) {
  const known = run.steps.find((step) => step.id === data.id);
  // A resumed run begins again what had ended before it was interrupted, and keeps its results.
  if (ENDED.has(known?.state)) return [];
  const step = known ?? { id: data.id, node: [...path, data.name].join(":") };
  Object.assign(step, { state: "running", started: now, ended: null });
  if (!known) run.steps.push(step);
  return ["steps"];
}

function left(run, data, now) {
  const step = run.steps.find((known) => known.id === data.id);
  if (!step || ENDED.has(step.state)) return [];
  step.ended = now;
  step.state = data.error ? "failed" : data.interrupts?.length ? "waiting" : "done";
  if (step.state === "done" && didNothing(run, step, data.result ?? {})) step.state = "passed";
  if (step.state === "waiting") {
    step.asked = true;
    run.asked = data.interrupts[0].value;
    return ["steps", "asked"];
  }
  return ["steps", ...merge(run.values, data.result ?? {}, run.outer.has(data.id))];
}

const IDLE = {
  contextualize: (_, { events = [] }) => events.some(({ kind }) => kind === "contextualize_skipped"),
  rewrite: ({ values }, { query, usage }) => !usage?.llm_calls && query === values.question,
  confirm_search: (_, __, step) => !step.asked,
  search: (_, { usage }) => !usage?.searches,
  read_pages: (_, { pages }) => !pages?.some(({ status }) => status !== "found"),
  select: (_, { strips }) => !strips?.length,
};

/** Whether a node ran and had nothing to do, as the web branch without a searcher. */
function didNothing(run, step, result) {
  return Boolean(IDLE[step.node.split(":").at(-1)]?.(run, result, step));
}

/** Merge an update; a graph within has told its events and counts already, node by node. */
function merge(values, update, toldBefore) {
  for (const [key, value] of Object.entries(update)) {
    const fresh = overwriting(value);
    if (fresh) values[key] = fresh.value;
    else if (key === "strips") values.strips = replaced(values.strips ?? [], value);
    else if (key === "reflection") values.reflection = value && { ...values.reflection, ...value };
    else if (!["events", "usage", "messages"].includes(key)) values[key] = value;
    else if (toldBefore) continue;
    else if (key === "usage") values.usage = sum(values.usage ?? {}, value);
    else values[key] = [...(values[key] ?? []), ...value];
  }
  derive(values);
  return [...Object.keys(update), ...("reflection" in update ? ["critiques"] : [])];
}

/** The value of an update that replaces what was summed before it; null for any other. */
function overwriting(value) {
  if (value?.type === "__overwrite__") return value;
  return value && typeof value === "object" && "__overwrite__" in value ? { value: value.__overwrite__ } : null;
}

/** Strips replace those of their kind, document or web. */
function replaced(known, strips) {
  const kinds = new Set(strips.map(({ kind }) => kind));
  return [...known.filter(({ kind }) => !kinds.has(kind)), ...strips];
}

/** Add what is drawn of the state: strips by kind, scores, and what reflection wrote. */
export function derive(values) {
  const { strips = [], documents, thresholds, pages, reflection, messages, outcome } = values;
  const [internal, external] = ["document", "web"].map((kind) => strips.filter((strip) => strip.kind === kind));
  const scores = thresholds ? documents?.map(({ metadata }) => metadata.score) : undefined;
  const further = messages?.at(-1)?.additional_kwargs?.more ?? [];
  Object.assign(values, { internal, external, scores, hits: pages ?? [], further, abstained: outcome === "not_found" }, {
    approximation: reflection?.approximation, choices: reflection?.choices, passages: reflection?.passages,
    critiques: reflection?.critiques,
  });
  return values;
}

/** Add counts. */
function sum(spent, added) {
  const counts = { ...spent };
  for (const [name, count] of Object.entries(added)) counts[name] = (counts[name] ?? 0) + count;
  return counts;
}

const ENDS = { success: "done", error: "failed", timeout: "failed", interrupted: "cancelled" };
const UNTOLD = {
  error: "The server does not say why.",
  timeout: "It took longer than the server allows.",
};

/**
 * Conclude a run whose stream has ended, by what the server says of it.
 * @param {string|null} status the run's own status; null where the server cannot be asked
 * @param {string} message what is known of a connection that broke
 */
export function conclude(run, now, status, message = "") {
  if (run.asked && ["success", "interrupted"].includes(status)) return close(run, now, "waiting");
  const told = UNTOLD[status] ?? (message || "The stream ended before the run did.");
  return close(run, now, ENDS[status] ?? "broken", told);
}

/** End a run that is under way in the phase that is named. */
export function close(run, now, phase, message = "") {
  if (run.phase !== "running") return;
  run.phase = phase;
  if (["broken", "failed"].includes(phase)) run.error = { name: "", message };
  if (phase !== "waiting") stop(run, phase === "done" ? "done" : "cancelled", now);
}

/**
 * Say whether the run has told all there is: its answer, and the end of every step. One that was
 * resumed does not tell again what it did before, perhaps to another page.
 */
export const isWhole = ({ values, steps, resumed }) =>
  !resumed && Boolean(values.answer) && steps.every(({ state }) => !["running", "waiting"].includes(state));

/** Go on after a human has decided. */
export function resume(run) {
  run.asked = null;
  run.phase = "running";
  run.resumed = true;
}

/** Cancel; whatever had been done stays. */
export function cancelled(run, now) {
  if (run.phase === "waiting") run.phase = "running";
  close(run, now, "cancelled");
  run.asked = null;
}

function stop(run, state, now) {
  run.ended = now;
  for (const step of run.steps) {
    if (step.state === "running" || step.state === "waiting") {
      Object.assign(step, { state: state === "done" ? "done" : state, ended: step.ended ?? now });
    }
  }
}

/** Say an error of the server's validation in a sentence; other messages are sentences already. */
export function plainError(message) {
  const lines = String(message).split("\n");
  if (!/validation errors? for/.test(lines[0])) return String(message);
  const found = [];
  for (let at = 1; at < lines.length; at += 1) {
    const told = /^ {2}(.+?) \[type=\w+, input_value=(.*), input_type=/.exec(lines[at]);
    if (!told) continue;
    const field = /^\S/.test(lines[at - 1]) && at > 1 ? lines[at - 1] : "";
    const said = told[1].replace(/^Value error, /, "").replace(/^Input/, "it");
    found.push(field ? `setting “${field}” cannot be ${told[2]}: ${said}` : said);
  }
  return found.length ? `${found.join("; ")}.` : String(message);
}

/** Return the whole trace as plain data, ready to be kept. */
export function trace(run) {
  const { question, graph, settings, thread, id, phase, error, values, steps } = run;
  const times = steps.map(({ node, state, started, ended }) => ({
    node, state, milliseconds: ended === null ? null : Math.round(ended - started),
  }));
  return { question, graph, settings, thread, run: id, phase, error, steps: times, state: values };
}
