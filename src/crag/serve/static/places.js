/** Where a text comes from, said as shortly as it stays clear. */

/** The address or path of a document, as its strips name it too. */
export const addressOf = ({ metadata }) => String(metadata?.url || metadata?.source || "");

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
export const sectionOf = (text, document) =>
  /^#{1,6}\s+(.+)/.exec(text)?.[1] ?? String(document?.metadata?.section ?? "").split(" > ").at(-1);

/** The address of this page that opens a source at a place, such as "lines 3-5" or "page 2". */
export function deepLink(name, position = "") {
  const [unit, numbers] = position.split(" ");
  const place = numbers ? (unit.startsWith("line") ? `#L${numbers}` : `#page=${numbers}`) : "";
  return `/?source=${encodeURIComponent(name)}${place}`;
}

/** Return a citation of the place that such an address names, without words. */
export function linked(hash) {
  const [, lines, page] = /^#(?:L(\d+(?:-\d+)?)|page=(\d+))/.exec(hash) ?? [];
  return { text: "", source: { lines, position: page ? `page ${page}` : lines ? `lines ${lines}` : "" } };
}
