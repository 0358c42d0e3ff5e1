/** The retrieved documents: their scores, and what refinement kept of each. */

import { bar, legend, scale } from "./bars.js";
import { cited } from "./citations.js";
import { byId, element, fill, link, show, webAddress } from "./dom.js";
import { addressOf, placeNamer } from "./places.js";
import { numbered, stripList, written } from "./strips.js";
import { actionWords, keptWords } from "./words.js";

/** The id by which strips name their document, as the server gives it. */
export const idOf = (document, index) => String(document.id ?? document.metadata?.id ?? `document-${index + 1}`);

/** Draws the documents of one run; rows stay while what is in them changes. */
export class DocumentsView {
  /** @param {{open: Function, has: Function}} reading opens the file of a document */
  constructor(reading) {
    this.reading = reading;
    this.section = byId("documents");
    this.head = element("div");
    this.list = element("ol.documents");
    this.rows = [];
  }

  /** Begin anew, without documents. */
  clear() {
    this.rows = [];
    show(this.section, false);
  }

  draw(run) {
    const { documents } = run.values;
    if (!documents) return;
    if (!this.rows.length) this.#begin(documents);
    this.head.replaceChildren(...headOf(run));
    this.strips = bySource(run.values.internal);
    const numbers = numbered(run.values.internal ?? [], cited(run.values).citations);
    const percent = run.values.thresholds && scale(run.values.scores, run.values.thresholds);
    for (const row of this.rows) row.update(run, this.strips.get(row.id) ?? [], numbers, percent);
  }

  #begin(documents) {
    const namePlace = placeNamer(documents);
    this.rows = documents.map((document, index) => new Row(document, index, namePlace, this.reading));
    fill(this.list, this.rows, (row) => row.item);
    this.section.replaceChildren(
      element("h2", { id: "documents-title" }, "Retrieved documents"), this.head, this.list,
    );
    show(this.section, true);
  }
}

function headOf(run) {
  const { action, thresholds, documents, internal, scores = [] } = run.values;
  const head = [];
  if (!documents.length) head.push(element("p.hint", "No document was retrieved."));
  if (action) {
    head.push(element("p.verdict", element("strong", { data: { action } }, action), ` ${actionWords(run)}`));
  }
  if (thresholds && scores.length) head.push(legend(thresholds));
  if (internal?.length) head.push(element("p.hint", `${keptWords(internal)}. Open a document to see them in its text.`), element("p.hint.field", "In the papers: knowledge strips, refined from the documents."));
  return head;
}

function bySource(strips = []) {
  const found = new Map();
  for (const strip of strips) {
    if (!found.has(strip.source.id)) found.set(strip.source.id, []);
    found.get(strip.source.id).push(strip);
  }
  return found;
}

/** One document: a line that opens onto its text. */
class Row {
  constructor(document, index, namePlace, reading) {
    this.document = document;
    this.reading = reading;
    this.index = index;
    this.id = idOf(document, index);
    this.score = element("span.points");
    this.kept = element("span.kept-count");
    this.body = element("div.body");
    const summary = element("summary", this.score, this.#name(namePlace), this.kept);
    this.details = element("details", { ontoggle: () => this.#fillBody() }, summary, this.body);
    this.item = element("li", this.details);
  }

  #name(namePlace) {
    const { title, position } = this.document.metadata ?? {};
    const place = namePlace(addressOf(this.document), position);
    const name = title || place || this.id;
    return element(
      "span.named",
      element("span.title", name),
      place && place !== name && element("span.place", place),
    );
  }

  update(run, strips, numbers, percent) {
    const { scores = [], thresholds, action } = run.values;
    const points = scores[this.index];
    if (thresholds && points !== undefined) this.score.replaceChildren(bar(points, thresholds, percent));
    const kept = strips.filter((strip) => strip.kept).length;
    this.kept.textContent = strips.length ? keptWords(strips) : "";
    this.details.classList.toggle("empty", strips.length > 0 && kept === 0);
    this.strips = strips;
    this.cited = new Map(strips.filter((strip) => numbers.has(strip)).map((strip) => [strip, numbers.get(strip)]));
    const covered = new Set(numbers.values());
    this.asWhole = cited(run.values).citations.filter(({ number, source }) => source.id === this.id && !covered.has(number));
    this.discarded = action === "incorrect";
    if (this.cited.size || this.asWhole.length) this.details.open = true;
    this.filled = false;
    this.#fillBody();
  }

  /** Build the text only when it is open: a trace may hold very many strips. */
  #fillBody() {
    if (!this.details.open || this.filled) return;
    this.filled = true;
    const content = this.strips?.length ? stripList(this.strips, this.cited) : this.#whole();
    const address = addressOf(this.document);
    const leads = webAddress(address) ? [element("p.place", link(address, address))] : [];
    const file = this.document.metadata?.source;
    if (this.reading.has(file)) leads.push(this.#opens(file));
    this.body.replaceChildren(...leads, ...this.asWhole.map(({ number }) => wholeMark(number)), content);
  }

  #opens(file) {
    const { page_content: text, metadata } = this.document;
    const onclick = () => this.reading.open(file, { text, source: metadata });
    return element("button.plain.opens", { onclick }, "Open the document here");
  }

  #whole() {
    const holder = element("div", written(this.document.page_content, addressOf(this.document), "p"));
    holder.firstChild.classList.add("whole");
    if (this.discarded) {
      holder.classList.add("discarded");
      holder.append(element("p.why", "set aside · the action is incorrect"));
    }
    return holder;
  }
}

/** Where a citation leads that refers to a document as a whole. */
function wholeMark(number) {
  return element(
    "p.strip.kept",
    { id: `strip-${number}`, tabindex: "-1" },
    element("span.number", element("span.unseen", "Citation "), number),
    "The document as a whole. ",
    element("a.back", { href: "#answer", data: { back: number } }, "back to the answer"),
  );
}
