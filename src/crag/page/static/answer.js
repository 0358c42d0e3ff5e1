/** The answer: streamed, cited, or the reason why there is none. */

import { byId, element, link, webAddress } from "./dom.js";
import { nowDoing } from "./graph.js";
import { placeNamer } from "./places.js";
import { eventWords } from "./words.js";

const MARK = /\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]/;

/**
 * Cut an answer at its citations: texts at even places, lists of numbers at odd ones.
 * @returns {(string|number[])[]}
 */
export function pieces(answer) {
  return answer.split(MARK).map((piece, at) => (at % 2 ? piece.split(/\s*[,;]\s*/).map(Number) : piece));
}

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
  const phase = run ? phaseName(run) : "empty";
  card.dataset.phase = phase;
  card.setAttribute("aria-busy", String(phase === "running"));
  byId("answer-body").replaceChildren(...BODIES[phase](run, actions));
}

const phaseName = (run) => (run.phase === "done" && run.values.abstained ? "abstained" : run.phase);

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
  done: (run) => [asked(run), answerText(run.values), ...sources(run.values)],
  abstained: (run) => [
    asked(run),
    element("p.text", {}, run.values.answer),
    element("p.hint", {}, sentence(abstention(run.values))),
  ],
  cancelled: (run, actions) => [
    asked(run),
    element("p.lead", {}, "You cancelled this run."),
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

const asked = (run) => element("p.asked", {}, run.question);
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function again(run, { ask }) {
  return element("button", { type: "button", onclick: () => ask(run.question) }, "Ask again");
}

function abstention({ events = [] }) {
  const told = events.findLast((event) => event.kind === "abstained");
  return told ? `${eventWords("abstained")}: ${told.detail}.` : "There is no answer.";
}

function answerText({ answer, citations = [] }) {
  const known = new Map(citations.map((citation) => [citation.number, citation]));
  const text = element("p.text");
  const spans = citations.flatMap(spansOf);
  for (const piece of pieces(answer)) {
    if (typeof piece === "string") text.append(...atSpans(piece, spans).map(drawnPart));
    else text.append(...piece.map((number) => mark(number, known.get(number))));
  }
  return text;
}

/** The words in which a quotation holds the answer itself; offsets count characters, not UTF-16. */
function spansOf({ text, quotes = [] }) {
  const characters = [...text];
  const found = quotes.filter(({ span }) => span).map(({ span: [start, end] }) => characters.slice(start, end).join(""));
  return found.map((words) => words.replace(/\s+/g, " ").trim()).filter(Boolean);
}

const drawnPart = (part, at) => (at % 2 ? element("mark", {}, part) : part);

function mark(number, citation) {
  if (!citation) return `[${number}]`;
  const label = `Citation ${number}: ${citation.source.title || citation.source.url || citation.source.id}`;
  const cite = { cite: number };
  return element("a.cite", { href: `#strip-${number}`, "aria-label": label, data: cite }, `${number}`);
}

function sources({ citations = [], documents }) {
  if (!citations.length) return [];
  const namePlace = placeNamer(documents);
  const list = element("ol.sources", { "aria-label": "Sources" });
  for (const { number, source } of citations) {
    const place = namePlace(source.url, source.position);
    const name = source.title || place || source.id;
    list.append(element(
      "li",
      {},
      element("a.cite", { href: `#strip-${number}`, data: { cite: number }, "aria-label": `Show strip ${number}` }, `${number}`),
      webAddress(source.url) ? link(source.url, name) : element("span", {}, name),
      place && place !== name ? element("span.place", {}, place) : null,
    ));
  }
  return [list];
}
