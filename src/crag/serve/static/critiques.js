/** What a reflecting model thought of each candidate answer: one table, the chosen path first. */

import { element, fill } from "./dom.js";
import { score, sentence, spelled } from "./words.js";

const COLUMNS = ["Outcome", "Segment", "Passage", "Candidate", "Relevance", "Support", "Utility", "Total"];

/** Draw choices and critiques of `reflection`, as far as it has them. */
export function critiques({ values }) {
  const { critiques: all = [], choices = [], passages = [], approximation } = values.reflection ?? {};
  if (!all.length && !choices.length) return null;
  const chosenFirst = [...all].sort((one, other) => Boolean(other.chosen) - Boolean(one.chosen));
  const head = element("tr", ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
  const body = fill(element("tbody"), chosenFirst, (critique) => row(critique, passages));
  const table = element("table", element("thead", head), body);
  return element(
    "section.critiques",
    element("h3", "Critiques"),
    approximation && element("p.hint", `Approximation: ${approximation}`),
    fill(element("ol", { "aria-label": "Whether to retrieve" }), choices, ({ segment = 0, action = "", why }) =>
      element("li", `Segment ${segment + 1}: ${spelled(action)}`, why && element("span.why", ` ${why}`))),
    all.length > 0 && element("div.scrolls", { role: "region", "aria-label": "Candidates", tabindex: "0" }, table),
  );
}

function row({ segment = 0, passage, text = "", relevance, support, utility, total, chosen, kept, why }, passages) {
  const outcome = chosen ? "chosen" : kept ? "kept in the beam" : "dropped";
  const about = Number.isInteger(passage) ? nameOf(passages[passage], passage) : "none";
  return element(
    chosen ? "tr.chosen" : "tr",
    element("td", element("strong", outcome), why && element("span.why", why)),
    ...[segment + 1, about].map((words) => element("td", words)),
    element("td.candidate", text),
    ...[relevance, support, utility, total].map((number) => element("td", score(number))),
  );
}

/** Knowledge that was prepared is named for its action, a document by its title. */
const nameOf = ({ title, label } = {}, at = 0) => sentence((label !== "document" && label) || title || `passage ${at + 1}`);
