/** What the page says in plain words. */

/** What each action says of the scores; whether there is an answer is the verdict's to say. */
export const ACTIONS = {
  correct: "The best passage reaches the upper threshold.",
  incorrect: "No passage reaches the lower threshold: all of them are set aside.",
  ambiguous: "The best passage lies between the thresholds.",
};

/** The verdict on an answer, or how far the run is. */
export const PHASES = {
  running: "running",
  waiting: "waits for you",
  answered: "answered",
  likely: "likely an answer",
  not_found: "not found",
  nothing_asked: "nothing asked",
  cancelled: "cancelled",
  failed: "failed",
  broken: "broken off",
};

const BROKEN = new Set(["model_failed", "model_empty", "retrieval_failed", "evaluator_failed"]);

/** Why a run has no answer, if it is that a part failed and not that nothing was found. */
export const failureOf = ({ events = [] }) => events.findLast(({ kind }) => BROKEN.has(kind));

/** Say what was looked through where there is no answer. */
export function lookedThrough({ documents = [], pages = [], events = [] }) {
  const closest = documents.length
    ? `None of the ${count(documents.length, "passage")} that came closest answers the question.`
    : events.some(({ kind }) => kind === "nothing_retrieved")
      ? "Nothing in the documents comes near the question."
      : "";
  return [closest, pages.length ? "The web was searched too." : ""].filter(Boolean).join(" ");
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
  decide: "deciding whether to retrieve",
  prepare_passages: "preparing the passages",
  short_form: "judging an answer for each passage",
  beam_step: "writing and judging the next segment",
  graded_loop: "reading the passages one by one",
  finish_reflection: "concluding",
  generate: "writing the answer",
};

/** Say what a node does, such as "searching the web". */
export function doing(node) {
  const name = node.split(":").at(-1);
  return DOING[name] ?? `at ${spelled(name)}`;
}

/** Say how many strips were kept. */
export const keptWords = (strips) =>
  `${strips.filter((strip) => strip.kept).length} of ${count(strips.length, "passage")} kept`;

/** Write a number of things: "1 strip", "2 strips". */
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

/**
 * Write a score with its sign, and with as many decimals as it takes to stand on the right side of
 * each limit, as that is written.
 */
export function score(number, limits = []) {
  if (!Number.isFinite(number)) return "none";
  const agrees = (digits) => limits.every((limit) =>
    Number(number.toFixed(digits)) >= Number(limit.toFixed(digitsOf(limit))) === number >= limit);
  const digits = limits.length ? [2, 3, 4, 5, 6].find(agrees) ?? 6 : digitsOf(number);
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(digits)}`;
}

const digitsOf = (number) => [2, 3, 4].find((digits) => Math.abs(number - number.toFixed(digits)) < 1e-9) ?? 2;

/** Write a name without underscores. */
export const spelled = (name) => String(name).replaceAll("_", " ");

/** Write a duration. */
export const seconds = (milliseconds) =>
  milliseconds < 995 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;

/** Begin a text with a capital letter. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
