/** The answer: streamed, cited, or the reason why there is none. */

import { asMark, cited, pieces, quotations, signed, statusReader } from "./citations.js";
import { isComparable } from "./compare.js";
import { byId, element, link, show, webAddress } from "./dom.js";
import { idOf } from "./documents.js";
import { isMarkdown, markdown } from "./markdown.js";
import { written } from "./strips.js";
import { deepLink, placeNamer, sectionOf } from "./places.js";
import { abstention, count, eventWords, failureOf, phaseOf } from "./words.js";

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
  drawAsked(run);
  byId("answer-body").replaceChildren(...BODIES[phase](run, actions));
}

const BODIES = {
  empty: (_, { ask, first }) => [
    ...(first.examples?.length ? [element("p.lead", "Ask a question above, or one of these:"), examples(first.examples, ask)] : [element("p.lead", "Ask a question above.")]),
    ...("model" in first ? [element("p.hint.connected", connected(first))] : []),
  ],
  running: ({ draft }) => (draft ? [element("p.text.draft", draft)] : []),
  waiting: (run) => [element("p.lead", "The run waits for your decision about the web search, above.")],
  done: (run, actions) => answered(run, actions),
  likely: (run, actions) => answered(run, actions),
  abstained: (run, actions) => [
    ...(notAnswered(run) ?? [
      element("p.text", run.values.answer),
      ...abstention(run).filter(Boolean).map((line) => element("p.hint", line)),
    ]),
    edit(run, actions),
  ],
  cancelled: (run, actions) => [
    element("p.lead", "The run was cancelled."),
    element("p.hint", "What had been done until then is shown below."),
    again(run, actions),
  ],
  failed: (run, actions) => [
    element("p.lead", "The run failed."),
    element("p.detail", run.error.message),
    again(run, actions),
  ],
  broken: (run, actions) => [
    element("p.lead", "The connection broke, and the server cancels a run that nobody reads."),
    element("p.detail", run.error.message),
    again(run, actions),
  ],
};

/** The answer, or the passages that are likely to answer, their sources, and what could be quoted besides, folded. */
const answered = (run, actions) => [
  answerText(run.values),
  ...legend(run.values),
  ...sources(run.values, actions.reading),
  ...further(run.values),
  edit(run, actions, ...copy(run.values)),
];

function further({ further: more = [] }) {
  if (!more?.length) return [];
  const entries = more.map(({ number, text, quotes = [], source }) => {
    const quoted = quotes.map((quote) => quote.text).join("\n\n");
    const place = [source.title || source.id, source.position].filter(Boolean).join(", ");
    return element("li", written(quoted || text, source.url, "p.text"), element("span.place", `${place} [${number}]`));
  });
  return [element("details.further", element("summary", `${count(more.length, "more passage")}`), element("ul", ...entries))];
}

/** The question, and how it was understood where it was one that follows others. */
function drawAsked(run) {
  const { asked, question } = run?.values ?? {};
  const understood = asked && question !== asked ? [element("span.understood", `Understood as: ${question}`)] : [];
  byId("asked").replaceChildren(...(run ? [run.question, ...understood] : []));
  show(byId("asked"), run !== null);
}

function again(run, actions) {
  const repeat = element("button", { onclick: () => actions.ask(run.question, run) }, "Ask again");
  return element("div.buttons", repeat, ...edit(run, actions).children);
}

function edit(run, actions, ...more) {
  return element(
    "div.buttons",
    element("button", { onclick: () => actions.edit(run) }, "Edit the question"),
    isComparable(run, actions.graphs) && element("button", { onclick: () => actions.compare(run) }, "Compare with plain retrieval"),
    ...more,
  );
}

/** What stands in the place of an answer where a part failed, and not where nothing was found. */
function notAnswered({ values }) {
  const failure = failureOf(values);
  if (!failure) return null;
  return [element("p.text", `${eventWords(failure.kind)}, so there is no answer.`), element("p.detail", failure.detail)];
}

function examples(questions, ask) {
  const items = questions.map((question) =>
    element("li", element("button", { onclick: () => ask(question) }, question)));
  return element("ul.examples", { "aria-label": "Questions to begin with" }, ...items);
}

/** Say in one line what answers, and whether anything leaves the machine. */
function connected({ model, web }) {
  const answers = model ? `${model} writes the answers` : "Answers are quoted from your documents; no model writes them";
  return `${answers}. ${web ? `${web} is searched where they do not suffice` : "The web is not searched"}.`;
}

/** Draw the text of an answer: each quotation as its document is written, the rest as Markdown. */
export function answerText(values) {
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
  const holder = element("div.text.md");
  for (const { words, marks } of quotations(answer)) {
    const number = Number(/\d+/.exec(marks));
    if (!marks) holder.append(...markdown(words, say));
    else quote(holder, words, say, say(marks), isMarkdown(known.get(number)?.source.url));
  }
  return holder;
}

/** Add a quotation; one of a single line stands in a row with those before it. */
function quote(holder, words, say, marks, isWrittenSo) {
  const text = words.replace(/^\n+|\s+$/g, "");
  const blocks = isWrittenSo ? markdown(text, say) : [element("p.verbatim", ...say(text))];
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

const UNSUPPORTED = "No source supports this sentence";

/** Say what the marks of the answer mean, where it has any. */
function legend({ sentences = [] }) {
  const has = (status) => sentences.some((sentence) => sentence.status === status);
  const lines = [];
  if (has("unsupported")) lines.push([element("span.unsupported", "Underlined"), ": no source supports the sentence."]);
  if (has("attributed")) lines.push([element("span.cite.attributed", "n"), ": the model named no source; this one supports the sentence."]);
  return lines.map((line) => element("p.hint.marks", ...line));
}

/** The words in which a quotation holds the answer itself; offsets count characters, not UTF-16. */
function spansOf({ text, quotes = [] }) {
  const characters = [...text];
  const found = quotes.filter(({ span }) => span).map(({ span: [start, end] }) => characters.slice(start, end).join(""));
  return found.map((words) => words.replace(/\s+/g, " ").trim()).filter(Boolean);
}

const drawnPart = (part, at) => (at % 2 ? element("mark", part) : part);

function mark(number, citation, attributed) {
  if (!citation) return asMark(number);
  const label = `Citation ${number}: ${citation.source.title || citation.source.url || citation.source.id}`;
  const cite = { cite: number };
  const found = attributed ? `${label}, found for this sentence` : label;
  return element(attributed ? "a.cite.attributed" : "a.cite", { href: `#strip-${number}`, "aria-label": found, data: cite }, number);
}

/** The sources by file: its title and name, and for each citation the heading and the lines. */
export function sources(values, reading) {
  const files = byFile(values);
  if (!files.length) return [];
  const list = element("ol.sources", { "aria-label": "Sources" });
  for (const { title, name, url, cites } of files) {
    const shown = title || name;
    list.append(element(
      "li",
      element("p.file", webAddress(url) ? link(url, shown) : shown, name && name !== shown ? element("span.place", name) : null),
      ...cites.map(({ citation, section, file }) => {
        const { number, source } = citation;
        const opens = reading.has(file) && { title: "Open the document at this place", onclick: () => reading.open(file, citation) };
        const place = source.position || (opens ? "Open" : "");
        return element(
          "p.cites",
          element("a.cite", { href: `#strip-${number}`, data: { cite: number }, "aria-label": `Show strip ${number}` }, number),
          section && section !== title ? `${section} ` : "",
          opens ? element("button.plain.opens", opens, place) : element("span.place", place),
        );
      }),
    ));
  }
  return [list];
}

function byFile(values) {
  const { documents = [] } = values;
  const namePlace = placeNamer(documents);
  const files = new Map();
  for (const citation of cited(values).citations) {
    const { url, title, id } = citation.source;
    const document = documents.find((one, at) => idOf(one, at) === id);
    const key = url || id;
    if (!files.has(key)) files.set(key, { title, url, name: namePlace(url, "") || id, cites: [] });
    files.get(key).cites.push({ citation, section: sectionOf(citation.text, document), file: document?.metadata?.source });
  }
  return [...files.values()];
}

/** Write an answer with its sources as Markdown; a file is linked on this page. */
export function asMarkdown(values, home) {
  const lines = byFile(values).flatMap(({ title, name, url, cites }) => cites.map(({ citation: { number, source }, section }) => {
    const words = [...new Set([title || name, section, source.position])].filter(Boolean).join(", ");
    const address = webAddress(url) || `${home}${deepLink(name, source.position)}`;
    return `- [${number}] [${words.replace(/[[\]]/g, "\\$&")}](${address})`;
  }));
  return [cited(values).answer, lines.join("\n")].filter(Boolean).join("\n\n") + "\n";
}

/** A button that copies, where the browser lets pages do that. */
function copy(values) {
  if (!navigator.clipboard) return [];
  const button = element("button", "Copy as Markdown");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(asMarkdown(values, location.origin));
    button.textContent = "Copied";
  });
  return [button];
}
