/** What the page says in plain words. */

/** What each event means; the event itself tells the detail and what was done instead. */
export const EVENTS = {
  nothing_retrieved: "No document was found",
  question_respelled: "The question was read without typing errors",
  unread_language: "A model does not read this language",
  filter_ignored: "A filter was ignored",
  reranker_failed: "The documents could not be reranked",
  retrieval_failed: "The documents could not be searched",
  evaluator_failed: "The evaluator failed",
  action_replaced: "A setting replaced the action",
  contextualize_failed: "The question could not be made complete",
  contextualize_skipped: "No model made the question complete",
  rewrite_failed: "The question could not be rewritten into a query",
  rewrite_skipped: "No model rewrote the question",
  search_unavailable: "The web cannot be searched",
  search_failed: "The web search failed",
  search_empty: "The web search brought nothing",
  hits_dropped: "Some hits could not be used",
  search_refused: "The web search was refused",
  page_failed: "A page could not be read",
  pages_skipped: "Not every page was read",
  paragraphs_skipped: "Not every paragraph was judged",
  budget_exhausted: "A budget was spent",
  model_failed: "The model failed",
  model_refused: "The model refused to answer",
  model_empty: "The model said nothing",
  model_declined: "The model found no answer",
  citation_removed: "A citation referred to nothing",
  link_removed: "A link stood in no source",
  uncited_answer: "No source supports the answer",
  wordless_answer: "The model’s answer said nothing",
  own_knowledge: "The model answered from its own knowledge",
  reflection_limited: "Reflection reached a limit",
  constraints_waived: "The constraints were waived",
  unsupported_answer: "The answer is not supported",
  abstained: "There is no answer",
};

const graphs = new Map();

/** Remember what people call the graphs. */
export function nameGraphs(titles) {
  for (const [name, title] of Object.entries(titles)) graphs.set(name, title);
}

/** What people call a graph; its own name where nobody has said. */
export const graphName = (name) => graphs.get(name) ?? spelled(name);

/** Name an event; a kind nobody has put into words yet is spelled out. */
export const eventWords = (kind) => EVENTS[kind] ?? spelled(kind);

/** What each action means. */
export const ACTIONS = {
  correct: "The documents hold the answer.",
  incorrect: "The documents do not help, and are set aside.",
  ambiguous: "The documents may help, and are not enough.",
};

/** Say what an action means, and what became of the web where it asks for that. */
export function actionWords(run) {
  const { action, hits = [], usage = {}, events = [] } = run.values;
  const said = ACTIONS[action] ?? "";
  if (action === "correct") return said;
  if (usage.searches || hits.length) return `${said} The web was searched.`;
  if (events.some(({ kind }) => kind === "search_unavailable")) return `${said} No web search is connected.`;
  return run.phase === "done" ? `${said} The web was not searched.` : said;
}

const BROKEN = new Set(["model_failed", "model_empty", "retrieval_failed", "evaluator_failed"]);

/** Why a run has no answer, if it is that a part failed and not that nothing was found. */
export const failureOf = ({ events = [] }) => events.findLast(({ kind }) => BROKEN.has(kind));

/** Say why there is no answer: in plain words, and below with the papers' word. */
export function abstention(run) {
  const { action, events = [], documents = [], internal = [], external = [] } = run.values;
  const told = events.findLast(({ kind }) => kind === "abstained")?.detail ?? "";
  const kept = [...internal, ...external].some((strip) => strip.kept);
  const web = actionWords(run).slice((ACTIONS[action] ?? "").length);
  const nothing = documents.length
    ? `None of the ${count(documents.length, "passage")} that came closest answers the question.${web}`
    : `Nothing in the documents comes near the question.${web}`;
  return [kept ? `${sentence(told)}.` : nothing, action ? `In the papers' words, the action is ${action}.` : ""];
}

const DOING = {
  open_run: "reading the question",
  retrieve: "looking for documents",
  acknowledge: "replying",
  contextualize: "making the question complete",
  grade: "grading the documents",
  refine: "choosing the passages that help",
  pass_through: "keeping all documents",
  rewrite: "writing a query for the web",
  confirm_search: "asking for your decision",
  search: "searching the web",
  read_pages: "reading pages",
  select: "choosing what helps",
  reflect: "reflecting",
  decide: "deciding whether to retrieve",
  prepare_passages: "preparing the passages",
  short_form: "judging an answer for each passage",
  beam_step: "writing and judging the next segment",
  graded_loop: "reading the passages one by one",
  finish_reflection: "concluding",
  generate: "writing the answer",
};

/** Say what a node does, such as "searching the web". */
export const doing = (node) => DOING[lastName(node)] ?? `at ${spelled(lastName(node))}`;

const lastName = (node) => node.split(":").at(-1);

const DONE = {
  retrieve: ({ documents = [] }) => count(documents.length, "document"),
  grade: ({ action, scores = [] }) => `${action}; the best score is ${score(best(scores))}`,
  refine: ({ internal = [] }) => keptWords(internal),
  rewrite: ({ query }) => `query: ${query}`,
  search: ({ hits = [] }) => count(hits.length, "hit"),
  read_pages: ({ pages = [] }) => count(pages.filter((page) => page.status !== "failed").length, "page"),
  select: ({ external = [] }) => keptWords(external),
  prepare_passages: ({ passages = [] }) => count(passages.length, "passage"),
  short_form: ({ reflection }) => count(reflection?.critiques?.length ?? 0, "candidate"),
};

/** Say what a node has brought, from the state after it. */
export function brought(node, values) {
  const name = lastName(node);
  return `${spelled(name)}: ${DONE[name]?.(values) ?? "done"}`;
}

const best = (scores) => scores.reduce((one, other) => Math.max(one, other), -Infinity);

export const keptWords = (strips) =>
  `${strips.filter((strip) => strip.kept).length} of ${count(strips.length, "passage")} kept`;

/** Write a number of things: "1 strip", "2 strips". */
export const count = (number, noun) =>
  `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/** Write a score with its sign and two decimals. */
export function score(number) {
  if (!Number.isFinite(number)) return "none";
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}

/** Write a name without underscores. */
export const spelled = (name) => String(name).replaceAll("_", " ");

/** Write a duration. */
export const seconds = (milliseconds) =>
  milliseconds < 995 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;

export const PHASES = {
  running: "running",
  waiting: "waits for you",
  done: "answered",
  abstained: "no answer",
  likely: "likely an answer",
  cancelled: "cancelled",
  failed: "failed",
  broken: "broken off",
};

/** Name the phase of a run as the history shows it. */
export const phaseOf = (run) =>
  run.phase !== "done" ? run.phase : run.values.outcome === "likely" ? "likely" : run.values.abstained ? "abstained" : "done";

/** Begin a text with a capital letter. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
