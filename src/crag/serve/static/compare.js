/** Plain retrieval beside correction on the same question: both answers, and what correction changed. */

import { answerText } from "./answer.js";
import { element, fill, longText, put, show } from "./dom.js";
import { begin, isEnded, take } from "./run.js";
import * as server from "./server.js";
import { placeNamer, sources } from "./sources.js";
import { PHASES, seconds } from "./words.js";

const PLAIN = "rag";
const CHANGES = {
  dropped: ["−", "incorrect", "passages dropped", "Plain retrieval passed them on; correction kept nothing of them."],
  shortened: ["~", "ambiguous", "passages shortened", "Correction kept a part of them."],
  added: ["+", "correct", "passages added", "Plain retrieval did not have them."],
};

/** Whether a run can be compared on a server of these graphs. */
export const isComparable = (run, graphs) =>
  graphs.includes(PLAIN) && run.graph === "crag" && ["answered", "likely", "not_found"].includes(run.phase);

/** Ask plain retrieval what a run was asked, in a conversation that is deleted again, and show both. */
export async function compareWith(run, holder) {
  const plain = begin({ question: run.values.question ?? run.question, graph: PLAIN, settings: run.settings }, Date.now());
  const body = element("div", { role: "status" }, "Asking plain retrieval…");
  put(holder, element("h3", { tabindex: "-1" }, "Plain retrieval beside correction"), body);
  show(holder, true);
  holder.firstChild.focus();
  try {
    const { graph, question, settings } = plain;
    for await (const part of server.ask({ graph, question, settings })) take(plain, part, Date.now());
    if (!isEnded(plain) || plain.problem) throw new server.ServerError("broken", plain.problem || "The connection broke.");
    const changes = await server.compare({ strips: plain.values.strips ?? [] }, { strips: run.values.strips ?? [] });
    put(
      body,
      element("div.beside", answerOf(plain, "Plain retrieval"), answerOf(run, "Corrected")),
      ...Object.entries(changes).map(([name, strips]) => changed(name, strips, [plain, run])),
    );
  } catch (error) {
    server.expected(error);
    put(body, element("p.problem", error.message));
  }
  if (plain.thread) await server.removeThread(plain.thread).catch(server.expected);
}

/** One of both answers; its numbers are its own, and lead nowhere. */
function answerOf({ values, phase, started, ended }, title) {
  const time = started && ended ? `, ${seconds(ended - started)}` : "";
  const made = element(
    "div",
    element("h4", title),
    element("p.hint", `${PHASES[phase]}${time}`),
    answerText(values),
    sources(values, { has: () => false }),
  );
  for (const cite of made.querySelectorAll("button.cite")) cite.replaceWith(element("span.cite", cite.textContent));
  return made;
}

function changed(name, strips, runs) {
  const [sign, zone, what, why] = CHANGES[name];
  const namePlace = placeNamer(runs.flatMap(({ values }) => values.documents ?? []));
  const list = fill(element("ol"), strips, ({ text, source }) => element(
    "li",
    element("strong", `${sign} ${source.title || source.id}`),
    element("span.place", ` ${namePlace(source.url, source.position)}`),
    element("p.clipped", longText(text.replace(/^#+ |[`*]/gm, ""))),
  ));
  const summary = element("summary", element("strong", `${sign} ${strips.length} ${what}`), element("span.hint", ` ${why}`));
  return element("details.change", { data: { zone, change: name }, open: strips.length > 0 }, summary, list);
}
