/** Where a text comes from, said as shortly as it stays clear. */

/** The address or path of a document, as its strips name it too. */
export const addressOf = ({ metadata }) => String(metadata?.url || metadata?.source || "");

/**
 * Return a function that leaves out the folder which all local files have in common.
 * @param {object[]} documents those that were retrieved
 */
export function placeNamer(documents = []) {
  const folder = commonFolder(documents.map(addressOf).filter(isFile));
  const short = (address) => (folder && address.startsWith(folder) ? address.slice(folder.length) : address);
  return (address, position) => [short(address), position].filter(Boolean).join(", ");
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
