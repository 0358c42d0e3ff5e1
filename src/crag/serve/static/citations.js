/** Citations under the numbers that the page shows: from 1, in the order in which the answer cites. */

/** A mark, as in `text/marks.py`; a test compares them. */
export const MARK = /(\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])/;
export const asMark = (...numbers) => `[${numbers.join(", ")}]`;
const QUOTATION = /“([^]*?)”\s?((?:\[\d{1,4}\])+)(?=\s+“|\s*$)/y;
const found = new WeakMap();

/**
 * Cut an answer at its citations: texts at even places, lists of numbers at odd ones.
 * @returns {(string|number[])[]}
 */
export function pieces(answer) {
  return answer.split(MARK).map((piece, at) => (at % 2 ? piece.match(/\d+/g).map(Number) : piece));
}

/**
 * Number the citations of a run anew. The model cites by the place of a strip among all it was given,
 * so that a sole citation may be [7].
 * @param {{answer?: string, citations?: {number: number}[]}} values stay as they are
 * @returns {{answer: string, citations: object[]}} numbers that cite nothing are left alone
 */
export function cited(values) {
  const { answer = "", citations = [] } = values;
  if (found.get(citations)?.of === answer) return found.get(citations);
  const known = new Map(citations.map((citation) => [citation.number, citation]));
  const order = new Set(pieces(answer).filter(Array.isArray).flat().filter((number) => known.has(number)));
  for (const number of known.keys()) order.add(number);
  const shown = new Map([...order].map((number, at) => [number, at + 1]));
  const written = pieces(answer).map((piece) =>
    typeof piece === "string" ? piece : asMark(...piece.map((number) => shown.get(number) ?? number)));
  const renumbered = [...order].map((number) => ({ ...known.get(number), number: shown.get(number) }));
  found.set(citations, { of: answer, answer: written.join(""), citations: renumbered });
  return found.get(citations);
}

/**
 * Cut an answer at its quotations, so that nothing within one, such as a fence that nobody closes,
 * reaches the next.
 * @returns {{words: string, marks: string}[]} `marks` are the citations after a quotation, whose words
 *   are given without quotation marks; empty where the words are no quotation
 */
export function quotations(answer) {
  const parts = [];
  let at = 0;
  for (const begin of answer.matchAll(/(?:^|\s)(?=“)/g)) {
    QUOTATION.lastIndex = begin.index + begin[0].length;
    const follows = parts.length > 0 && !answer.slice(at, QUOTATION.lastIndex).trim();
    const ownLine = !answer.slice(0, QUOTATION.lastIndex).trim() || /\n\n$/.test(answer.slice(0, QUOTATION.lastIndex));
    const quoted = begin.index >= at && (follows || ownLine) ? QUOTATION.exec(answer) : null;
    if (!quoted) continue;
    parts.push({ words: answer.slice(at, quoted.index), marks: "" }, { words: quoted[1], marks: quoted[2] });
    at = quoted.index + quoted[0].length;
  }
  return [...parts, { words: answer.slice(at), marks: "" }].filter(({ words, marks }) => marks || words.trim());
}
