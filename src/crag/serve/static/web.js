/** What was searched for on the web, what was found, what was read and kept. */

import { cited } from "./citations.js";
import { element, fill, link, webAddress } from "./dom.js";
import { numbered, opens, stripList } from "./passages.js";
import { count, keptWords } from "./words.js";

const READ = { read: "page read", given: "text came with the hit", failed: "page not read" };

/** Draw the web branch of a run, as far as it went. */
export function web({ values, phase }) {
  const { pages = [], query, usage = {}, events = [] } = values;
  const strips = (values.strips ?? []).filter(({ kind }) => kind === "web");
  const why = events.findLast(({ node, fallback }) => ["search", "confirm_search"].includes(node) && fallback);
  if (!query && !pages.length && !strips.length && !why) return null;
  const numbers = numbered(strips, cited(values).citations);
  const searched = usage.searches || pages.length;
  const isOver = !["running", "waiting"].includes(phase);
  const told = !searched && why ? [`The web was not searched: ${why.detail}.`]
    : !searched && isOver ? ["The web was not searched."]
    : [searched ? "Searched for: " : "Query: ", element("q", query)];
  const judged = strips.some(({ reason }) => reason) && keptWords(strips);
  return element(
    "section.web",
    element("h3", "Web"),
    element("p", ...told),
    pages.length > 0 && element("p.hint", `${[count(pages.length, "page"), judged].filter(Boolean).join("; ")}.`),
    fill(element("ol.rows"), pages, (page, index) => {
      const own = strips.filter(({ source }) => source.id === `hit-${index + 1}` || source.url === page.url);
      return element("li", pageHead(page), own.length > 0 && pageStrips(page, own, numbers));
    }),
  );
}

function pageHead({ url, title, snippet, status, detail, paragraphs }) {
  const site = webAddress(url) ? new URL(url).hostname : url;
  const said = [READ[status], status === "failed" ? detail : paragraphs && count(paragraphs, "paragraph")];
  return element(
    "div",
    element("p.hit", link(url, title || url), element("span.place", site)),
    snippet && element("p", snippet),
    element("p.why", { data: { status } }, said.filter(Boolean).join(" · ")),
  );
}

function pageStrips({ url }, strips, numbers) {
  const isCited = strips.some((strip) => numbers.has(strip));
  const said = strips.some(({ reason }) => reason) ? keptWords(strips) : `${count(strips.length, "passage")} to be judged`;
  return element("ul", opens(url, [said], isCited, () => [stripList(strips, numbers)]));
}
