/** The answer: streamed, cited, or the reason why there is none. */

import { asMark, cited, pieces, signed, statusReader } from "./citations.js";
import { byId, element, link, webAddress } from "./dom.js";
import { idOf } from "./documents.js";
import { nowDoing } from "./graph.js";
import { isMarkdown, markdown } from "./markdown.js";
import { placeNamer } from "./places.js";
import { count, eventWords, phaseOf } from "./words.js";

/** Cut a text at the spans it holds: the text around them at even places, spans at odd ones. */
export function atSpans(text, spans) {
  const words = spans.find((span) => text.includes(span));
  if (!words) return [text];
  const [before, after] = [text.slice(0, text.indexOf(words)), text.slice(text.indexOf(words) + words.length)];
  return [before, words, ...atSpans(after, spans.filter((span) => span !== words))];
}

/** Draw the answer of a run in the phase it is in. */
export function drawAnswer(run, actions) {
  const card = byId("answer");
  const phase = run ? phaseOf(run) : "empty";
  card.dataset.phase = phase;
  card.setAttribute("aria-busy", String(phase === "running"));
  byId("answer-body").replaceChildren(...BODIES[phase](run, actions));
}

const BODIES = {
  empty: () => [
    element("p.lead", {}, "Ask a question above."),
    element("p.hint", {}, "The nodes of the graph light up as they work. Then you see the answer, and what it rests on: each document with its score, the strips that were kept and dropped, and whatever was found on the web."),
  ],
  running: (run) => [
    asked(run),
    run.draft
      ? element("p.text.draft", {}, run.draft)
      : element("p.lead.working", {}, `${sentence(nowDoing(run))}…`),
  ],
  waiting: (run) => [asked(run), element("p.lead", {}, "The run waits for your decision about the web search, above.")],
  done: (run, actions) => answered(run, actions),
  unsure: (run, actions) => answered(run, actions),
  abstained: (run, actions) => [
    asked(run),
    element("p.text", {}, run.values.answer),
    element("p.hint", {}, sentence(abstention(run.values))),
    edit(run, actions),
  ],
  cancelled: (run, actions) => [
    asked(run),
    element("p.lead", {}, "The run was cancelled."),
    element("p.hint", {}, "What had been done until then is shown below."),
    again(run, actions),
  ],
  failed: (run, actions) => [
    asked(run),
    element("p.lead", {}, "The run failed."),
    element("p.detail", {}, run.error.message),
    again(run, actions),
  ],
  broken: (run, actions) => [
    asked(run),
    element("p.lead", {}, "The connection broke, and the server cancels a run that nobody reads."),
    element("p.detail", {}, run.error.message),
    again(run, actions),
  ],
};

/** The answer or the closest passages, their sources, and what could be quoted besides, folded. */
const answered = (run, actions) => [
  asked(run),
  answerText(run.values),
  ...legend(run.values),
  ...sources(run.values, actions.reading),
  ...further(run.values),
  edit(run, actions),
];

function further({ further: more = [] }) {
  if (!more?.length) return [];
  const entries = more.map(({ number, text, quotes = [], source }) => {
    const characters = [...text];
    const quoted = quotes.map(({ start, end }) => characters.slice(start, end).join("")).join("\n");
    const place = [source.title || source.id, source.position].filter(Boolean).join(", ");
    return element("li", {}, element("p.text", {}, quoted || text), element("span.place", {}, `${place} [${number}]`));
  });
  return [element("details.further", {}, element("summary", {}, `${count(more.length, "more passage")}`), element("ul", {}, ...entries))];
}

/** The question, and how it was understood where it was one that follows others. */
function asked(run) {
  const { follow_up: followUp, question } = run.values;
  const understood = followUp && question !== followUp.asked ? [element("span.understood", {}, `Understood as: ${question}`)] : [];
  return element("p.asked", {}, run.question, ...understood);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function again(run, actions) {
  const repeat = element("button", { type: "button", onclick: () => actions.ask(run.question, run) }, "Ask again");
  return element("div.buttons", {}, repeat, ...edit(run, actions).children);
}

function edit(run, actions) {
  const button = element("button", { type: "button", onclick: () => actions.edit(run) }, "Edit the question");
  return element("div.buttons", {}, button);
}

function abstention({ events = [] }) {
  const told = events.findLast((event) => event.kind === "abstained");
  return told ? `${eventWords("abstained")}: ${told.detail}.` : "There is no answer.";
}

function answerText(values) {
  const { answer, citations } = cited({ ...values, answer: signed(values) });
  const known = new Map(citations.map((citation) => [citation.number, citation]));
  const spans = citations.flatMap(spansOf);
  const drawn = (words, status) => pieces(words).flatMap((piece) =>
    typeof piece === "string"
      ? atSpans(piece, spans).map(drawnPart)
      : piece.map((number) => mark(number, known.get(number), status === "attributed")));
  const reader = statusReader();
  const say = (text) => reader(text).flatMap(({ words, status }) =>
    status === "unsupported"
      ? [element("span.unsupported", { title: UNSUPPORTED }, ...drawn(words, status))]
      : drawn(words, status));
  // A model writes Markdown; a quotation is written as its document is.
  const plain = citations.some(({ quotes, source }) => quotes?.length && !isMarkdown(source.url));
  return plain ? element("p.text", {}, ...say(answer)) : element("div.text.md", {}, ...markdown(answer, say));
}

const UNSUPPORTED = "No source supports this sentence";

/** Say what the marks of the answer mean, where it has any. */
function legend({ sentences = [] }) {
  const has = (status) => sentences.some((sentence) => sentence.status === status);
  const lines = [];
  if (has("unsupported")) lines.push([element("span.unsupported", {}, "Underlined"), ": no source supports the sentence."]);
  if (has("attributed")) lines.push([element("span.cite.attributed", {}, "n"), ": the model named no source; this one supports the sentence."]);
  return lines.map((line) => element("p.hint.marks", {}, ...line));
}

/** The words in which a quotation holds the answer itself; offsets count characters, not UTF-16. */
function spansOf({ text, quotes = [] }) {
  const characters = [...text];
  const found = quotes.filter(({ span }) => span).map(({ span: [start, end] }) => characters.slice(start, end).join(""));
  return found.map((words) => words.replace(/\s+/g, " ").trim()).filter(Boolean);
}

const drawnPart = (part, at) => (at % 2 ? element("mark", {}, part) : part);

function mark(number, citation, attributed) {
  if (!citation) return asMark(number);
  const label = `Citation ${number}: ${citation.source.title || citation.source.url || citation.source.id}`;
  const cite = { cite: number };
  const found = attributed ? `${label}, found for this sentence` : label;
  return element(attributed ? "a.cite.attributed" : "a.cite", { href: `#strip-${number}`, "aria-label": found, data: cite }, `${number}`);
}

function sources(values, reading) {
  const { documents = [] } = values;
  const { citations } = cited(values);
  if (!citations.length) return [];
  const namePlace = placeNamer(documents);
  const list = element("ol.sources", { "aria-label": "Sources" });
  for (const citation of citations) {
    const { number, source } = citation;
    const file = documents.find((document, at) => idOf(document, at) === source.id)?.metadata?.source;
    const opens = reading.has(file) ? () => reading.open(file, citation) : null;
    const place = namePlace(source.url, source.position);
    const name = source.title || place || source.id;
    list.append(element(
      "li",
      {},
      element("a.cite", { href: `#strip-${number}`, data: { cite: number }, "aria-label": `Show strip ${number}` }, `${number}`),
      opens
        ? element("button.plain.opens", { type: "button", onclick: opens, title: "Open the document at this place" }, name)
        : webAddress(source.url) ? link(source.url, name) : element("span", {}, name),
      place && place !== name ? element("span.place", {}, place) : null,
    ));
  }
  return [list];
}
