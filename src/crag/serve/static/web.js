/** What was searched for on the web, what was found, what was read and kept. */

import { cited } from "./citations.js";
import { byId, element, fill, link, put, show, webAddress } from "./dom.js";
import { numbered, stripList } from "./strips.js";
import { count, keptWords } from "./words.js";

const READ = {
  read: "page read",
  given: "text came with the hit",
  failed: "page not read",
};

/** Draw the web branch of a run, as far as it went. */
export function drawWeb(run) {
  const section = byId("web");
  const { hits = [], external = [], usage = {} } = run.values;
  const went = run.steps.some((step) => step.node.startsWith("web"));
  show(section, Boolean(went || hits.length || external.length));
  if (section.hidden) return;
  const numbers = numbered(external, cited(run.values).citations);
  const list = element("ol.hits");
  fill(list, hits, (hit, index) => hitItem(hit, index, run.values, numbers));
  put(
    section,
    element("h2", { id: "web-title" }, "Web"),
    searchedFor(run),
    hits.length && element("p.hint", summary(hits, external)),
    ...(usage.searches && !hits.length && ended(run) ? [element("p.hint", "Nothing came of it; the events say why.")] : []),
    list,
  );
}

/** Say what was searched for, if anything was. */
function searchedFor(run) {
  const { query, hits = [], usage = {}, events = [] } = run.values;
  const quoted = query ? element("q", query) : null;
  if (usage.searches || hits.length) return element("p.query", "Searched for: ", quoted);
  const why = events.findLast(({ node, fallback }) => ["search", "confirm_search"].includes(node) && fallback);
  if (why) return element("p.query", `The web was not searched: ${why.detail}.`);
  if (ended(run)) return element("p.query", "The web was not searched.");
  return element("p.query", query ? "Query: " : "Writing a query…", quoted);
}

const ended = (run) => !["running", "waiting"].includes(run.phase);

function summary(hits, external) {
  const judged = external.some((strip) => strip.reason);
  return [count(hits.length, "hit"), judged ? keptWords(external) : ""].filter(Boolean).join("; ") + ".";
}

function hitItem(hit, index, { pages = [], external = [] }, cites) {
  const page = pages.find((one) => one.url === hit.url && one.status !== "found");
  const strips = external.filter((strip) => strip.source.id === `hit-${index + 1}`);
  const numbers = new Map(strips.filter((strip) => cites.has(strip)).map((strip) => [strip, cites.get(strip)]));
  return element(
    "li",
    element("p.hit", link(hit.url, hit.title || hit.url), element("span.place", site(hit.url))),
    hit.snippet && element("p.snippet", hit.snippet),
    page && element("p.why", { data: { status: page.status } }, pageWords(page)),
    strips.length ? opened(strips, numbers) : null,
  );
}

function pageWords({ status, detail, paragraphs }) {
  const told = status === "failed" ? detail : count(paragraphs, "paragraph");
  return [READ[status] ?? status, told].filter(Boolean).join(" · ");
}

function opened(strips, numbers) {
  const body = element("div.body");
  const filled = () => body.childElementCount || body.append(stripList(strips, numbers));
  const details = element("details", { ontoggle: filled }, element("summary", keptOrRead(strips)), body);
  if (numbers.size) {
    filled();
    details.open = true;
  }
  return details;
}

const keptOrRead = (strips) =>
  strips.some((strip) => strip.reason) ? keptWords(strips) : `${count(strips.length, "passage")} to be judged`;

function site(address) {
  return webAddress(address) ? new URL(address).hostname : address;
}
