/** The retrieved passages: their scores, what refinement kept of each, and why. */

import { cited } from "./citations.js";
import { element, fill, link, webAddress } from "./dom.js";
import { markdown } from "./markdown.js";
import { addressOf, idOf, placeNamer } from "./sources.js";
import { ACTIONS, keptWords, score, sentence } from "./words.js";

/** Number the strips that the answer cites: the first kept strip of the same text and source. */
export function numbered(strips, citations) {
  const numbers = new Map();
  for (const { number, text, source } of citations) {
    const found = strips.find((strip) => strip.kept && strip.text === text && strip.source.id === source.id);
    if (found) numbers.set(found, number);
  }
  return numbers;
}

/**
 * Draw what was retrieved.
 * @param {{open: Function, has: Function}} reading opens the file of a document
 */
export function passages({ values }, reading) {
  const { documents = [], action, thresholds, events = [] } = values;
  const strips = (values.strips ?? []).filter(({ kind }) => kind !== "web");
  const isNone = !documents.length && events.some(({ kind }) => kind === "nothing_retrieved");
  if (!documents.length && !isNone) return null;
  const limits = thresholds && [thresholds.lower, thresholds.upper];
  const numbers = numbered(strips, cited(values).citations);
  const namePlace = placeNamer(documents);
  const rows = documents.map((document, index) => ({ document, id: idOf(document, index) }));
  return element(
    "section.passages",
    element("h3", "Retrieved passages"),
    isNone && element("p.hint", "No document was retrieved."),
    action && element("p.hint", element("strong", sentence(action)), `. ${ACTIONS[action] ?? ""}`),
    limits && legend(limits),
    strips.length > 0 && element("p.hint", `${keptWords(strips)}. In the papers: knowledge strips, refined from the documents.`),
    fill(element("ol.rows"), rows, ({ document, id }) => {
      const own = strips.filter(({ source }) => source.id === id);
      const covered = new Set(numbers.values());
      const whole = cited(values).citations.filter(({ number, source }) => source.id === id && !covered.has(number));
      const points = document.metadata?.score;
      const name = named(document, id, namePlace);
      const head = [limits && Number.isFinite(points) && bar(points, limits), name, own.length > 0 && element("span.kept-count", keptWords(own))];
      return opens(id, head, whole.length || own.some((strip) => numbers.has(strip)), () => [
        ...whole.map(({ number }) => element("p.strip.kept", { data: { strip: number }, tabindex: "-1" }, numberOf(number), "The document as a whole.")),
        opener(document, reading),
        own.length ? stripList(own, numbers) : written(document.page_content),
      ]);
    }),
  );
}

/** A row that opens onto what `body` makes, which is made only then: there may be very much of it. */
export function opens(key, head, isOpen, body) {
  const holder = element("div.body");
  const filled = () => details.open && !holder.childElementCount && holder.append(...body().filter(Boolean));
  const details = element("details", { ontoggle: filled, open: Boolean(isOpen), data: { key } }, element("summary", ...head), holder);
  filled();
  return element("li", details);
}

function named(document, id, namePlace) {
  const { title, position } = document.metadata ?? {};
  const place = namePlace(addressOf(document), position);
  const name = title || place || id;
  return element("span.named", element("span.title", name), place && place !== name && element("span.place", place));
}

function opener(document, reading) {
  const { page_content: text, metadata } = document;
  const address = addressOf(document);
  if (webAddress(address)) return element("p.place", link(address, address));
  if (!reading.has(metadata?.source)) return null;
  const onclick = () => reading.open(metadata.source, { text, source: metadata });
  return element("button.plain.opens", { onclick }, "Open the document here");
}

/**
 * Draw strips in their order.
 * @param {object[]} strips
 * @param {Map<object, number>} numbers of the strips that are cited
 */
export function stripList(strips, numbers) {
  return fill(element("ol.strips"), strips, (strip) => stripItem(strip, numbers.get(strip)));
}

function stripItem(strip, number) {
  const { text, kept, reason, score: points, source } = strip;
  const state = kept ? "kept" : reason ? "dropped" : "not judged yet";
  const why = [state, Number.isFinite(points) && score(points), reason].filter(Boolean).join(" · ");
  return element(
    kept ? "li.strip.kept" : "li.strip",
    number ? { data: { strip: number }, tabindex: "-1" } : {},
    element("div.said", number && numberOf(number), written(text)),
    element("p.why", why),
  );
}

const numberOf = (number) => element("span.number", element("span.unseen", "Citation "), number);

const written = (text) => element("div.md", ...markdown(text));

/** Name the zone of a score: what the action would be if this were the best document. */
export function zone(points, [lower, upper]) {
  if (points >= upper) return "correct";
  return points >= lower ? "ambiguous" : "incorrect";
}

/** Draw one score against both limits. */
function bar(points, [low, high]) {
  const meter = element("meter", { "aria-hidden": "true", min: -1, max: 1, optimum: 1, low, high, value: points });
  const named = zone(points, [low, high]);
  return element("span.bar", { data: { zone: named } }, meter, element("span.score", score(points, [low, high])), element("span.unseen", `, ${named}`));
}

/** Say where the limits are. */
function legend([lower, upper]) {
  const swatch = (named, words) => element("span.swatch", { data: { zone: named } }, words);
  return element(
    "p.legend",
    swatch("incorrect", `below ${score(lower)} incorrect`),
    swatch("ambiguous", "between: ambiguous"),
    swatch("correct", `from ${score(upper)} correct`),
  );
}
