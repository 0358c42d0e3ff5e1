/** What went wrong or was decided on the way, and what a run has spent. */

import { element, fill } from "./dom.js";
import { seconds, sentence, spelled } from "./words.js";

/** Draw the events of a run in plain words. */
export function events({ values }) {
  if (!values.events?.length) return null;
  const list = fill(element("ol.rows"), values.events, ({ kind, node, detail, fallback }) => element(
    "li",
    element("strong", sentence(spelled(kind))),
    element("span.place", ` at ${spelled(node)}`),
    element("p", detail),
    fallback && element("p.hint", `So: ${fallback}.`),
  ));
  return element("section.events", element("h3", "What happened on the way"), list);
}

/** Draw what a run has spent. */
export function numbers({ phase, values, started, ended }) {
  if (phase === "running") return null;
  const spent = Object.entries(values.usage ?? {}).filter(([, number]) => number);
  const told = spent.map(([name, number]) => `${spelled(name)}: ${number.toLocaleString("en")}`);
  if (started && ended) told.unshift(`time: ${seconds(ended - started)}`);
  return element("p.hint.numbers", told.join("; "));
}
