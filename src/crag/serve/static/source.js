/** A source, opened at the lines or on the page that an answer cites, with what it quotes set off. */

import { byId, element, put } from "./dom.js";
import { expected, picture, source as fetchSource } from "./server.js";

/** Return the lines that `10-11 30*2` names. */
export function lineNumbers(lines = "") {
  const found = [];
  for (const [, first, last] of lines.matchAll(/(\d+)(?:-(\d+))?(?:\*\d+)?/g)) {
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

/**
 * Find in a text what a citation quotes of it, or else the whole strip.
 * @returns {{ranges: [number, number][], focus: number}} the quotations, and where the answer itself
 *   stands in them
 */
export function placesOf(citation, text, from) {
  const characters = [...citation.text];
  const said = ([start, end]) => characters.slice(start, end).join("");
  const quotes = citation.quotes?.length ? citation.quotes : [{ start: 0, end: characters.length }];
  const found = quotes.map(({ start, end, span }) => {
    const range = placeOf(said([start, end]), text, from);
    const answer = range && span && placeOf(said(span), text, range[0]);
    return range && { range, focus: (answer ?? range)[0] };
  }).filter(Boolean);
  return { ranges: found.map(({ range }) => range), focus: found[0]?.focus ?? from };
}

/**
 * Open a source in a window of its own.
 * @param {string} path
 * @param {{text: string, source: {position: string, lines?: string}, quotes?: object[]}|null} citation
 * @param {string} name what the source is called on the page
 */
export async function openSource(path, citation = null, name = path) {
  const dialog = byId("source");
  put(dialog, element("p.hint", "Fetching the document…"));
  dialog.showModal();
  try {
    draw(dialog, await fetchSource(path), citation, name);
  } catch (error) {
    expected(error);
    put(dialog, head(dialog, name, ""), element("p.problem", { role: "alert" }, error.message));
  }
  dialog.querySelector(".focus")?.scrollIntoView({ block: "center" });
}

function head(dialog, title, place) {
  const name = element("h2", { id: "source-title" }, title, place && element("span.place", place));
  return element("div.head", name, element("button", { onclick: () => dialog.close() }, "Close"));
}

function draw(dialog, told, citation, name) {
  const { title, pages, text } = told;
  const lines = lineNumbers(citation?.source.lines);
  const from = pages.length ? pages[pageOf(citation) - 1] : startOf(told, Math.min(...lines, Infinity));
  const cited = { lines: new Set(lines), ...(citation ? placesOf(citation, text, from ?? 0) : { ranges: [], focus: -1 }) };
  put(
    dialog,
    head(dialog, title || name, name),
    pages.length ? paged(told, cited) : reading(text, 0, cited, told.lines),
  );
}

const pageOf = (citation) => Number(/\d+/.exec(citation?.source.position ?? "")?.[0] ?? 1);

/** Where the text of a line of the file begins; 0 without one. */
function startOf({ text, lines }, number) {
  const before = Number.isFinite(number) ? lines.findIndex((line) => line >= number) : 0;
  return text.split("\n").slice(0, Math.max(before, 0)).reduce((at, line) => at + line.length + 1, 0);
}

/** One page at a time, that of the answer first; of a PDF it is drawn beside its text. */
function paged(told, cited) {
  const { text, pages, unit, source } = told;
  const holder = element("div.paged");
  const turn = (number) => {
    const [start, end = text.length] = pages.slice(number - 1, number + 1);
    const quoted = cited.ranges.map(([from, to]) => text.slice(Math.max(from, start), Math.min(to, end))).filter(Boolean);
    const to = (label, page) =>
      element("button", { disabled: page < 1 || page > pages.length, onclick: () => turn(page) }, label);
    put(
      holder,
      element(
        "div.buttons", to("Before", number - 1),
        element("span", { role: "status" }, `${unit} ${number} of ${pages.length}`), to("Next", number + 1),
      ),
      element(
        "div.spread",
        /\.pdf$/i.test(source) && drawing(told, number, quoted),
        reading(text.slice(start, end).trimEnd(), start, cited),
      ),
    );
  };
  turn(Math.max(1, pages.findLastIndex((start) => start <= cited.focus) + 1));
  return holder;
}

/** A page of a PDF as it looks, once the server has drawn it; a canvas, which loads no address. */
function drawing({ source, title }, number, quoted) {
  const label = `Page ${number} of ${title} as it looks`;
  const holder = element("div.drawing", { tabindex: "0", role: "region", "aria-label": label }, element("p.hint", "Drawing the page…"));
  picture(source, number, quoted).then(({ image, marked }) => {
    const { width, height } = image;
    const canvas = element("canvas", { width, height, role: "img", "aria-label": label });
    canvas.getContext("2d").drawImage(image, 0, 0);
    put(holder, canvas);
    holder.scrollTop = marked * canvas.clientHeight - holder.clientHeight / 2;
  }).catch((error) => {
    expected(error);
    put(holder, element("p.hint", error.message));
  });
  return holder;
}

/**
 * Draw a text line by line, with what is cited set off.
 * @param {number} start where the text begins in the whole document
 * @param {{lines: Set<number>, ranges: [number, number][], focus: number}} cited
 * @param {number[]} [numbers] the line of the file for each line of the text
 */
function reading(text, start, cited, numbers) {
  const lines = text.split("\n");
  const starts = [start];
  for (const line of lines) starts.push(starts.at(-1) + line.length + 1);
  const middle = starts.findLastIndex((at) => at <= cited.focus);
  const shown = lines.map((line, at) => {
    const parts = cut(line, starts[at], cited.ranges).map((part, odd) => (odd % 2 ? element("mark", part) : part));
    const names = ["li", cited.lines.has(numbers?.[at]) && "cited", middle === at && "focus"].filter(Boolean);
    return element(names.join("."), { value: numbers?.[at] ?? at + 1 }, ...parts);
  });
  const list = element(numbers ? "ol.lines" : "ol.lines.bare", ...shown);
  return element("div.reading", { tabindex: "0", role: "region", "aria-label": "Text of the document" }, list);
}
