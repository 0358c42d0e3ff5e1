/** What a reflecting model thought of each candidate answer: one table, the chosen path first. */

import { element, fill, longText } from "./dom.js";
import { count, score, sentence, spelled } from "./words.js";

const COLUMNS = ["Outcome", "Segment", "Passage", "Candidate", "Relevance", "Support", "Utility", "Total"];

/** Draw choices, critiques and passages of `reflection`, as far as it has them. */
export function critiques({ values }) {
  const { critiques: all = [], choices = [], passages = [], approximation } = values.reflection ?? {};
  if (!all.length && !choices.length) return null;
  const chosen = all.filter((critique) => critique.chosen);
  const others = all.filter((critique) => !critique.chosen);
  return element(
    "section.critiques",
    element("h3", "Critiques"),
    approximation && element("p.hint", `Approximation: ${approximation}`),
    fill(element("ol", { "aria-label": "Whether to retrieve" }), choices, choiceItem),
    chosen.length > 0 && table(chosen, passages, "Chosen candidates"),
    others.length > 0 && element(
      "details",
      { open: !chosen.length, data: { key: "rejected" } },
      element("summary", count(others.length, "rejected candidate")),
      table(others, passages, "Rejected candidates"),
    ),
  );
}

const choiceItem = ({ segment = 0, action = "", ratio, why }) => element(
  "li",
  element("strong", `Segment ${segment + 1}: ${spelled(action)}`),
  Number.isFinite(ratio) && ` (ratio ${ratio.toFixed(2)})`,
  why && element("span.why", ` ${why}`),
);

function table(all, passages, label) {
  const head = element("tr", ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
  const body = fill(element("tbody"), all, (critique) => row(critique, passages));
  const made = element("table", element("thead", head), body);
  return element("div.scrolls", { role: "region", "aria-label": label, tabindex: "0" }, made);
}

function row({ segment = 0, passage, text = "", relevance, support, utility, total, chosen, kept, why }, passages) {
  const outcome = chosen ? "chosen" : kept ? "kept in the beam" : "dropped";
  const about = Number.isInteger(passage) ? nameOf(passages[passage], passage) : "none";
  return element(
    chosen ? "tr.chosen" : "tr",
    element("td", element("strong", outcome), why && element("span.why", why)),
    element("td", segment + 1),
    element("td", about),
    element("td.candidate", longText(text)),
    share(relevance),
    share(support),
    element("td", score(utility)),
    element("td", element("strong", Number.isFinite(total) ? total.toFixed(2) : "none")),
  );
}

/** Knowledge that was prepared is named for its action, a document by its title. */
const nameOf = ({ title, label } = {}, at = 0) => sentence((label !== "document" && label) || title || `passage ${at + 1}`);

/** A number from 0 to 1, with a bar behind it. */
function share(number) {
  if (!Number.isFinite(number)) return element("td", "none");
  const cell = element("td.share", number.toFixed(2));
  cell.style.setProperty("--share", `${100 * Math.min(1, Math.max(0, number))}%`);
  return cell;
}
