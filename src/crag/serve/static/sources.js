/** The sources of an answer: by file, with the heading and the place of each citation. */

import { cited } from "./citations.js";
import { element, link, webAddress } from "./dom.js";

/** The address or path of a document, as its strips name it too. */
export const addressOf = ({ metadata }) => String(metadata?.url || metadata?.source || "");

/** The id by which strips name their document, as the server gives it. */
export const idOf = (document, index) => String(document.id ?? document.metadata?.id ?? `document-${index + 1}`);

/**
 * Return a function that names places: local files by their path in the folder that was indexed.
 * @param {object[]} documents those that were retrieved
 */
export function placeNamer(documents = []) {
  const names = new Map(documents.map((document) => [addressOf(document), nameOf(document)]));
  return (address, position) => [names.get(address) ?? address, position].filter(Boolean).join(", ");
}

function nameOf(document) {
  const [address, root] = [addressOf(document), document.metadata?.root ?? ""];
  const within = root && address.startsWith(root) ? address.slice(root.length).replace(/^[\\/]+/, "") : "";
  return within || (/^(\/|[A-Za-z]:[\\/])/.test(address) ? address.split(/[\\/]/).at(-1) : address);
}

/** The heading under which a cited text stands in its file; empty where there is none. */
const sectionOf = (text, document) =>
  /^#{1,6}\s+(.+)/.exec(text)?.[1] ?? String(document?.metadata?.section ?? "").split(" > ").at(-1);

/** Return a citation of the place that such an address names, without words. */
export function linked(hash) {
  const [, lines, page] = /^#(?:L(\d+(?:-\d+)?)|page=(\d+))/.exec(hash) ?? [];
  return { text: "", source: { lines, position: page ? `page ${page}` : lines ? `lines ${lines}` : "" } };
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

/**
 * Draw the sources.
 * @param {{open: Function, has: Function}} reading opens a file
 */
export function sources(values, reading) {
  const files = byFile(values).map(({ title, name, url, cites }) => {
    const label = title || name;
    return element(
      "li",
      element("p.file", webAddress(url) ? link(url, label) : label, name && name !== label && element("span.place", name)),
      ...cites.map((one) => place(one, title, reading)),
    );
  });
  return files.length ? element("ol.sources", { "aria-label": "Sources" }, ...files) : null;
}

function place({ citation, section, file }, title, reading) {
  const { number, source } = citation;
  const opens = reading.has(file) && { title: "Open the document at this place", onclick: () => reading.open(file, citation) };
  return element(
    "p.cites",
    element("button.cite", { data: { cite: number }, "aria-label": `Show passage ${number}` }, number),
    section && section !== title ? `${section} ` : "",
    opens ? element("button.plain.opens", opens, source.position || "Open") : element("span.place", source.position),
  );
}
