/** A source, opened at the lines or on the page that an answer cites, with what it quotes set off. */

import { byId, element } from "./dom.js";
import { source as fetchSource, ServerError } from "./server.js";

const AROUND = 1000;

/** Return the lines that `10-11 30` names. */
export function lineNumbers(lines = "") {
  const found = [];
  for (const [, first, last] of lines.matchAll(/(\d+)(?:-(\d+))?/g)) {
    for (let line = Number(first); line <= Number(last ?? first) && found.length < 100_000; line += 1) found.push(line);
  }
  return found;
}

/**
 * Find a quotation in a text, whatever its white space.
 * @returns {[number, number]|null} where it begins and ends, from `from` on
 */
export function placeOf(quotation, text, from) {
  const words = quotation.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words[0] || words.length > 2000) return null;
  const found = new RegExp(words.join("\\s+")).exec(text.slice(from));
  return found && [from + found.index, from + found.index + found[0].length];
}

/** Cut a line at the ranges that it has a part in: plain text at even places, set off at odd ones. */
export function cut(line, start, ranges) {
  const parts = [];
  let at = 0;
  for (const [from, to] of [...ranges].sort(([one], [other]) => one - other)) {
    const [first, last] = [Math.max(at, from - start), Math.min(line.length, to - start)];
    if (last <= first) continue;
    parts.push(line.slice(at, first), line.slice(first, last));
    at = last;
  }
  return [...parts, line.slice(at)];
}

/** What a citation says in its own words: its quotations, or else the whole strip. */
function quotations({ text, quotes = [] }) {
  const characters = [...text];
  return quotes.length ? quotes.map(({ start, end }) => characters.slice(start, end).join("")) : [text];
}

/**
 * Open a source in a window of its own.
 * @param {string} path
 * @param {{text: string, source: {position: string, lines?: string}, quotes?: object[]}|null} citation
 */
export async function openSource(path, citation = null) {
  const dialog = byId("source");
  dialog.replaceChildren(element("p.hint", {}, "Fetching the document…"));
  dialog.showModal();
  try {
    draw(dialog, await fetchSource(path), citation);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    dialog.replaceChildren(head(dialog, path, ""), element("p.problem", { role: "alert" }, error.message));
  }
  const target = dialog.querySelector("mark") ?? dialog.querySelector(".cited");
  target?.scrollIntoView({ block: "center" });
}

function head(dialog, title, place) {
  const close = element("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const name = element("h2", { id: "source-title" }, title, place ? element("span.place", {}, place) : null);
  return element("div.head", {}, name, close);
}

function draw(dialog, told, citation) {
  const { title, source, changed, pages, text } = told;
  const changes = changed ? [element("p.problem", {}, "This file was changed after it was indexed.")] : [];
  const body = pages.length ? paged(told, citation) : numbered(text, 0, citation && lineNumbers(citation.source.lines), citation);
  dialog.replaceChildren(head(dialog, title || source, source), ...changes, body);
}

/** One page at a time, that of the citation first. */
function paged(told, citation) {
  const cited = Number(/\d+/.exec(citation?.source.position ?? "")?.[0] ?? 1);
  const holder = element("div.paged");
  const turn = (number) => {
    const start = told.pages[number - 1] ?? 0;
    const text = told.text.slice(start, told.pages[number] ?? undefined).trimEnd();
    const to = (label, page) => element(
      "button", { type: "button", disabled: page < 1 || page > told.pages.length, onclick: () => turn(page) }, label,
    );
    holder.replaceChildren(
      element("div.buttons", {}, to("Previous", number - 1), element("span", { role: "status" }, `${told.unit} ${number} of ${told.pages.length}`), to("Next", number + 1)),
      numbered(text, null, number === cited && citation ? [] : null, number === cited ? citation : null),
    );
  };
  turn(Math.min(Math.max(1, cited), told.pages.length));
  return holder;
}

/**
 * Draw lines: with their numbers, unless `first` is null, and what is cited set off.
 * @param {number[]|null} cited numbers of lines; null where nothing is cited
 */
function numbered(text, first, cited, citation) {
  const lines = text.split("\n");
  const offsets = [0];
  for (const line of lines) offsets.push(offsets.at(-1) + line.length + 1);
  const set = new Set(cited ?? []);
  const from = offsets[Math.max(0, Math.min(...(set.size ? set : [1])) - 1)] ?? 0;
  const ranges = citation ? quotations(citation).map((words) => placeOf(words, text, from)).filter(Boolean) : [];
  const middle = set.size ? Math.min(...set) : 1;
  const [begin, end] = lines.length <= 3 * AROUND ? [0, lines.length] : [Math.max(0, middle - AROUND), middle + AROUND];
  const list = element(first === null ? "ol.lines.bare" : "ol.lines", { start: begin + 1 });
  list.append(...lines.slice(begin, end).map((line, at) => {
    const number = begin + at + 1;
    const parts = cut(line, offsets[number - 1], ranges).map((part, odd) => (odd % 2 ? element("mark", {}, part) : part));
    return element(set.has(number) ? "li.cited" : "li", { value: number }, ...parts);
  }));
  const hidden = lines.length - (Math.min(end, lines.length) - begin);
  const note = hidden ? [element("p.hint", {}, `${hidden.toLocaleString("en")} more lines of this file are not shown.`)] : [];
  return element("div.reading", { tabindex: "0", role: "region", "aria-label": "Text of the document" }, list, ...note);
}
