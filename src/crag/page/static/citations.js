/** Citations under the numbers that the page shows: from 1, in the order in which the answer cites. */

/** A mark, as in `text/marks.py`; a test compares them. */
const MARK = /(\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])/;
export const asMark = (...numbers) => `[${numbers.join(", ")}]`;
/** Around a sentence of the answer that no source supports, and one whose number was found for it. */
const AROUND = { unsupported: ["\uE000", "\uE001"], attributed: ["\uE002", "\uE003"] };
const SIGN = /([\uE000-\uE003])/;
const SIGNS = /[\uE000-\uE003]/g;
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
 * Put signs around the sentences of an answer that need a word; offsets count characters, not UTF-16.
 * @param {{answer?: string, sentences?: {start: number, end: number, status: string}[]}} values
 */
export function signed({ answer = "", sentences = [] }) {
  const told = sentences.filter(({ status }) => AROUND[status]);
  if (!told.length) return answer.replace(SIGNS, "");
  const characters = [...answer].map((character) => character.replace(SIGNS, ""));
  for (const { start, end, status } of told) {
    characters[start] = AROUND[status][0] + characters[start];
    characters[end - 1] += AROUND[status][1];
  }
  return characters.join("");
}

/**
 * Return a function that cuts texts at these signs; it is called with them in order, and knows within
 * which kind of sentence each begins.
 * @returns {(words: string) => {words: string, status: string}[]}
 */
export function statusReader() {
  let status = "";
  return (words) => words.split(SIGN).flatMap((part) => {
    if (!SIGN.test(part)) return part ? [{ words: part, status }] : [];
    status = Object.keys(AROUND).find((one) => AROUND[one][0] === part) ?? "";
    return [];
  });
}
