/** The answer: streamed, cited, or the reason why there is none. */

import { asMark, cited, pieces, quotations } from "./citations.js";
import { element } from "./dom.js";
import { markdown } from "./markdown.js";
import { sources } from "./sources.js";
import { failureOf, lookedThrough, spelled } from "./words.js";

/** Cut a text at the spans it holds: the text around them at even places, spans at odd ones. */
export function atSpans(text, spans) {
  const words = spans.find((span) => text.includes(span));
  if (!words) return [text];
  const [before, after] = [text.slice(0, text.indexOf(words)), text.slice(text.indexOf(words) + words.length)];
  return [before, words, ...atSpans(after, spans.filter((span) => span !== words))];
}

/**
 * Return what stands under a question in the phase that its run is in.
 * @param {{ask: Function, edit: Function, reading: object}} actions
 */
export function answer(run, actions) {
  const { phase, draft, values, problem } = run;
  if (phase === "running") return draft ? [element("p.text.draft", draft)] : [];
  if (phase === "waiting") return [confirmation(run, actions.decide)];
  const failure = failureOf(values);
  if (STOPPED[phase]) {
    return [element("p.lead", STOPPED[phase]), problem && element("p.detail", problem), buttons(run, actions)];
  }
  if (phase === "not_found" && failure) {
    const why = element("p.text", `There is no answer: ${spelled(failure.kind)}.`);
    return [why, element("p.detail", failure.detail), buttons(run, actions)];
  }
  const looked = phase === "not_found" && lookedThrough(values);
  return [
    answerText(values),
    looked && element("p.hint", looked),
    ...unsupported(values).map((words) => element("p.hint", `No source supports: ${words}`)),
    sources(values, actions.reading),
    buttons(run, actions),
  ];
}

const STOPPED = {
  cancelled: "The question was cancelled.",
  failed: "The question failed.",
  broken: "The connection broke, and the question could not be asked again.",
};

function buttons(run, { ask, edit }) {
  const isWhole = !STOPPED[run.phase];
  return element(
    "div.buttons",
    !isWhole && element("button", { onclick: () => ask(run.question, run) }, "Ask again"),
    element("button", { onclick: () => edit(run) }, "Edit the question"),
  );
}

/** Ask a human about a web search: search, search for something else, or refuse. */
function confirmation({ asked }, decide) {
  const { query = "" } = asked ?? {};
  const field = element("input", { name: "query", value: query, required: true });
  const onsubmit = (event) => {
    event.preventDefault();
    const edited = field.value.trim();
    decide(edited === query ? "approve" : { query: edited });
  };
  return element(
    "form.confirm",
    { onsubmit },
    element("h3", { tabindex: "-1" }, "May the web be searched?"),
    element("p", "Nothing is searched before you decide."),
    element("label", "What will be searched for", field),
    element("button.primary", { type: "submit" }, "Search the web"),
    element("button", { onclick: () => decide("refuse") }, "Go on without the web"),
  );
}

/** Draw the text of an answer, and each quotation in it: documents are kept as Markdown, whatever they were. */
export function answerText(values) {
  const { answer: text, citations } = cited(values);
  const known = new Map(citations.map((citation) => [citation.number, citation]));
  const spans = citations.flatMap(spansOf);
  const say = (words) => pieces(words).flatMap((piece) =>
    typeof piece === "string"
      ? atSpans(piece, spans).map((part, at) => (at % 2 ? element("mark", part) : part))
      : piece.map((number) => mark(number, known.get(number))));
  const holder = element("div.text.md");
  for (const { words, marks } of quotations(text)) {
    if (marks) quote(holder, words, say, say(marks));
    else holder.append(...markdown(words, say));
  }
  return holder;
}

/** Add a quotation; one of a single line stands in a row with those before it. */
function quote(holder, words, say, marks) {
  const text = words.replace(/^\n+|\s+$/g, "");
  const blocks = markdown(text, say);
  const [first, last] = [lineOf(blocks[0], "firstElementChild"), lineOf(blocks.at(-1), "lastElementChild")];
  first?.prepend("“");
  const end = [first ? "” " : "", ...marks];
  if (last) last.append(...end);
  else blocks.push(element("p", ...end));
  const isShort = !text.includes("\n") && blocks.length === 1 && blocks[0].tagName === "P";
  const before = holder.lastElementChild;
  if (isShort && before?.dataset.row) before.append(" ", ...blocks[0].childNodes);
  else holder.append(...blocks);
  if (isShort) holder.lastElementChild.dataset.row = "yes";
}

/** The line of words at one end of a block, within its lists; none where it has no such line. */
function lineOf(block, side) {
  if (!block || ["P", "LI"].includes(block.tagName)) return block;
  return ["UL", "OL", "BLOCKQUOTE"].includes(block.tagName) ? lineOf(block[side], side) : null;
}

/** The sentences that no source supports; offsets count characters, not UTF-16. */
function unsupported({ answer = "", sentences = [] }) {
  const without = sentences.filter(({ status }) => status === "unsupported");
  return without.map(({ start, end }) => [...answer].slice(start, end).join(""));
}

/** The words in which a quotation holds the answer itself; offsets count characters, not UTF-16. */
function spansOf({ text, quotes = [] }) {
  const characters = [...text];
  const found = quotes.filter(({ span }) => span).map(({ span: [start, end] }) => characters.slice(start, end).join(""));
  return found.map((words) => words.replace(/\s+/g, " ").trim()).filter(Boolean);
}

function mark(number, citation) {
  if (!citation) return asMark(number);
  const title = citation.source.title || citation.source.url || citation.source.id;
  return element("button.cite", { data: { cite: number }, "aria-label": `Citation ${number}: ${title}`, title }, number);
}
