/** Knowledge strips: what was kept of a text, what was dropped, and why. */

import { element, fill, longText } from "./dom.js";
import { isMarkdown, markdown } from "./markdown.js";
import { score } from "./words.js";

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
 * Draw strips in their order.
 * @param {object[]} strips
 * @param {Map<object, number>} numbers of the strips that are cited
 */
export function stripList(strips, numbers) {
  const list = element("ol.strips");
  const reach = 1 + Math.max(-1, ...[...numbers.keys()].map((strip) => strips.indexOf(strip)));
  fill(list, strips, (strip) => stripItem(strip, numbers.get(strip)), reach);
  return list;
}

function stripItem(strip, number) {
  const state = strip.kept ? "kept" : strip.reason ? "dropped" : "unjudged";
  const attributes = number ? { id: `strip-${number}`, tabindex: "-1" } : {};
  return element(
    `li.strip.${state}`,
    attributes,
    element(
      "div.said",
      number && element("span.number", element("span.unseen", "Citation "), number),
      written(strip.text, strip.source.url, strip.kept ? "mark" : "span"),
    ),
    element(
      "p.why",
      why(strip, state),
      number && element("a.back", { href: "#answer", data: { back: number } }, "back to the answer"),
    ),
  );
}

/** Put a text on the page as it is meant: Markdown drawn, everything else as it is. */
export const written = (text, address, name) =>
  isMarkdown(address) ? longText(text, "div.md", markdown) : longText(text, name);

function why({ score: points, reason }, state) {
  const parts = [state === "unjudged" ? "not judged yet" : state];
  if (points !== null) parts.push(score(points));
  if (reason) parts.push(reason);
  return parts.join(" · ");
}
