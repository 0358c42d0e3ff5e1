/** The parts of a question that was split, with what the correction of each came to. */

import { byId, element, fill, longText, show } from "./dom.js";
import { count, score } from "./words.js";

/** Draw the parts, where there are several. */
export function drawParts(run) {
  const section = byId("parts");
  const { sub_questions: parts = [] } = run.values;
  show(section, parts.length > 1);
  if (section.hidden) return;
  const list = element("ol.events");
  fill(list, parts, (part) => element(
    "li",
    element("strong", part.asked || part.question),
    element("span.where", told(part)),
    part.asked && element("p", longText(part.answer)),
  ));
  section.replaceChildren(element("h2", { id: "parts-title" }, `The question in ${count(parts.length, "part")}`), list);
}

/** Say what became of a part; its answer has numbers of its own. */
export function told({ asked, action, scores, abstained, citations }) {
  if (!asked) return " not asked yet";
  const graded = action ? ` ${action}, best score ${score(Math.max(...scores))}` : "";
  return `${graded}${abstained ? "; not found" : `; ${count(citations.length, "citation")}`}`;
}
