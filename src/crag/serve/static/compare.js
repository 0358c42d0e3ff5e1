/** Plain retrieval beside correction on the same question. */

import { answerText } from "./answer.js";
import { element, put, show } from "./dom.js";
import { begin, isEnded, take } from "./run.js";
import * as server from "./server.js";
import { sources } from "./sources.js";
import { PHASES, seconds } from "./words.js";

const PLAIN = "rag";

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
    put(body, element("div.beside", answerOf(plain, "Plain retrieval"), answerOf(run, "Corrected")));
  } catch (error) {
    server.expected(error);
    put(body, element("p.problem", error.message));
  }
  if (plain.thread) await server.removeThread(plain.thread).catch(server.expected);
}

/** One of both answers; its numbers are its own, and lead nowhere. */
function answerOf({ values, phase, started, ended }, title) {
  const time = started && ended ? `, ${seconds(ended - started)}` : "";
  const text = answerText(values);
  const made = element("div", element("h4", title), element("p.hint", `${PHASES[phase]}${time}`), text, sources(values, { has: () => false }));
  for (const cite of made.querySelectorAll("button.cite")) cite.replaceWith(element("span.cite", cite.textContent));
  return made;
}
