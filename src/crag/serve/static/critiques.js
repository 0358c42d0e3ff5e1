/** The critiques of a reflecting model: what it thought of each candidate answer. */

import { byId, element, fill, longText, put, show } from "./dom.js";
import { count, score, spelled } from "./words.js";

const COLUMNS = [
  "Outcome", "Segment", "Passage", "Candidate", "Relevance", "Support", "Utility", "Total",
];

/** Draw choices, passages and critiques, wherever a graph has written them. */
export function drawCritiques(run) {
  const section = byId("critiques");
  const { critiques = [], choices = [], passages = [], approximation = "" } = run.values.reflection ?? {};
  show(section, critiques.length + choices.length > 0);
  if (section.hidden) return;
  put(
    section,
    element("h2", { id: "critiques-title" }, "Critiques"),
    approximation && element("p.approximation", `approximation: ${approximation}`),
    choices.length && choiceList(choices),
    ...tables(critiques, passages),
    passages.length && passageList(passages),
  );
}

function choiceList(choices) {
  const list = element("ol.choices-made", { "aria-label": "Whether to retrieve" });
  fill(list, choices, (choice) => element(
    "li",
    element("strong", `Segment ${choice.segment + 1}: ${spelled(choice.action)}`),
    choice.ratio === null ? null : ` (ratio ${choice.ratio.toFixed(2)})`,
    choice.why && element("span.why", ` ${choice.why}`),
    flags(choice.flags),
  ));
  return list;
}

/** The path that was chosen; what was rejected on the way is folded. */
function tables(critiques, passages) {
  const chosen = critiques.filter((critique) => critique.chosen);
  const others = critiques.filter((critique) => !critique.chosen);
  if (!chosen.length || !others.length) return critiques.length ? [table(critiques, passages)] : [];
  const summary = element("summary", count(others.length, "rejected candidate"));
  return [table(chosen, passages), element("details", summary, table(others, passages, "Rejected candidates"))];
}

function table(critiques, passages, label = "Table of critiques") {
  const body = element("tbody");
  fill(body, critiques, (critique) => row(critique, passages));
  const head = element("tr", ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
  return element(
    "div.scrolls",
    { role: "region", "aria-label": label, tabindex: "0" },
    element("table", element("thead", head), body),
  );
}

function row(critique, passages) {
  const { segment, passage, title, text, relevance, support, utility, total } = critique;
  const about = passage === null ? "none" : nameOf(passages[passage] ?? { title }) || `passage ${passage + 1}`;
  return element(
    `tr${critique.chosen ? ".chosen" : critique.kept ? ".kept" : ".dropped"}`,
    element("td", outcome(critique), critique.why ? element("span.why", critique.why) : null, flags(critique.flags)),
    element("td.number", segment + 1),
    element("td", about),
    element("td.candidate", longText(text)),
    share(relevance),
    share(support),
    element("td.number", score(utility)),
    element("td.number", element("strong", total.toFixed(2))),
  );
}

/** Knowledge that was prepared is named for its action, a document by its title. */
const nameOf = ({ title, label }) => (label && label !== "document" ? label : title);

const outcome = ({ chosen, kept }) =>
  element("strong.outcome", chosen ? "chosen" : kept ? "kept in the beam" : "dropped");

/** A number from 0 to 1, with a bar behind it. */
function share(number) {
  if (number === null) return element("td.number", "none");
  const cell = element("td.number.share", number.toFixed(2));
  cell.style.setProperty("--share", `${100 * Math.min(1, Math.max(0, number))}%`);
  return cell;
}

const flags = (names = []) =>
  names.length ? element("span.flags", names.map(spelled).join(", ")) : null;

function passageList(passages) {
  const list = element("ol.passages");
  fill(list, passages, ({ title, text, label }) => element(
    "li", element("strong", nameOf({ title, label }) || "passage"), " ", longText(text),
  ));
  return element("details", element("summary", `${count(passages.length, "passage")} offered`), list);
}
