/** Plain retrieval beside correction on the same question: both answers, and what correction changed. */

import { answerText, sources } from "./answer.js";
import { byId, element, fill, longText, show } from "./dom.js";
import { placeNamer } from "./places.js";
import { begin, conclude, take } from "./run.js";
import * as server from "./server.js";
import { joined, stations } from "./status.js";
import { graphName } from "./words.js";

const PLAIN = "rag";
const CHANGES = {
  dropped: ["−", "incorrect", "documents dropped", "Plain retrieval passed them on; correction kept nothing of them."],
  shortened: ["~", "ambiguous", "documents shortened", "Correction kept some passages of them, and dropped others."],
  added: ["+", "correct", "passages added", "Plain retrieval did not have them."],
};
let stopping = null;

/** Whether a run can be compared on a server of these graphs. */
export const isComparable = (run, graphs) =>
  graphs.includes(PLAIN) && run.graph === "crag" && run.phase === "done" && run.values.outcome !== "nothing_asked";

/** Take the comparison away, and end a run of it. */
export function leaveComparison() {
  stopping?.abort();
  show(byId("comparison"), false);
}

/** Ask plain retrieval what a run was asked, without leaving a thread behind, and show both. */
export async function compareWith(run) {
  leaveComparison();
  stopping = new AbortController();
  const { signal } = stopping;
  const plain = begin(run.values.question ?? run.question, PLAIN, run.settings, Date.now());
  draw(element("p.hint", "Asking plain retrieval…"));
  byId("comparison-title").focus();
  byId("comparison").scrollIntoView();
  try {
    const asked = { graph: PLAIN, input: { question: plain.question }, context: plain.settings };
    for await (const part of server.stream(asked, signal)) take(plain, part, Date.now());
    conclude(plain, Date.now(), plain.values.answer ? "success" : null);
    if (plain.error) return draw(element("p.problem", plain.error.message));
    const changes = await server.compare(plain.values, run.values);
    return draw(
      element("div.beside", ...[plain, run].map(answerOf)),
      ...Object.entries(changes).map(([name, strips]) => changed(name, strips, [plain, run])),
    );
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    server.expected(error);
    return draw(element("p.problem", error.message));
  }
}

function draw(...parts) {
  const title = element("h2", { id: "comparison-title", tabindex: "-1" }, "Plain retrieval beside correction");
  const body = byId("comparison").querySelector("[role=status]") ?? element("div", { role: "status" });
  body.replaceChildren(...parts);
  if (!body.isConnected) byId("comparison").replaceChildren(title, body);
  show(byId("comparison"), true);
}

/** One of both answers; its numbers are its own, and lead nowhere. */
function answerOf(run) {
  const made = element(
    "div",
    element("h3", graphName(run.graph)),
    element("p.hint", ...joined(stations(run))),
    answerText(run.values),
    ...sources(run.values, { has: () => false }),
  );
  for (const cite of made.querySelectorAll("a.cite")) cite.replaceWith(element("span.cite", cite.textContent));
  return made;
}

function changed(name, strips, runs) {
  const [sign, zone, what, why] = CHANGES[name];
  const namePlace = placeNamer(runs.flatMap(({ values }) => values.documents ?? []));
  const list = element("ol");
  fill(list, strips, ({ text, source }) => element(
    "li",
    element("strong", `${sign} ${source.title || source.id}`),
    element("span.place", ` ${namePlace(source.url, source.position)}`),
    element("p.clipped", longText(text.replace(/^#+ |[`*]/gm, ""))),
  ));
  const summary = element("summary", element("strong", `${sign} ${strips.length} ${what}`), element("span.hint", ` ${why}`));
  return element("details.change", { data: { zone, change: name }, open: strips.length > 0 }, summary, list);
}
