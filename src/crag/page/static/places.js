/** Where a text comes from, said as shortly as it stays clear. */

/** The address or path of a document, as its strips name it too. */
export const addressOf = ({ metadata }) => String(metadata?.url || metadata?.source || "");

/**
 * Return a function that leaves out the folder which all local files have in common.
 * @param {object[]} documents those that were retrieved
 */
export function placeNamer(documents = []) {
  const names = new Map(documents.map((document) => [addressOf(document), nameOf(document)]));
  const folder = commonFolder(documents.map(addressOf).filter(isFile));
  const short = (address) => names.get(address) || (folder && address.startsWith(folder) ? address.slice(folder.length) : address);
  return (address, position) => [short(address), position].filter(Boolean).join(", ");
}

/** The name of a file within the folder that was indexed; empty where that is not known. */
function nameOf(document) {
  const { metadata } = document;
  const [address, root] = [addressOf(document), metadata?.root ?? ""];
  if (!root || !address.startsWith(root)) return "";
  return address.slice(root.length).replace(/^[\\/]+/, "") || address.slice(lastSlash(address) + 1);
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
  return { text: "", source: { lines, position: page ? `page ${page}` : "" } };
}

const isFile = (address) => /^(\/|[A-Za-z]:[\\/])/.test(address);

/** The longest folder that all files are in, with its last slash; empty without files. */
function commonFolder(files) {
  if (!files.length) return "";
  let folder = files[0].slice(0, lastSlash(files[0]) + 1);
  while (!files.every((file) => file.startsWith(folder))) {
    folder = folder.slice(0, lastSlash(folder.slice(0, -1)) + 1);
  }
  return folder;
}

const lastSlash = (path) => Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
