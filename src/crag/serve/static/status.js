/** The way of a run in one line, and what screen readers hear of it. */

import { byId, element } from "./dom.js";
import { nowDoing } from "./graph.js";
import { ACTIONS, brought, count, PHASES, phaseOf, seconds, sentence } from "./words.js";

const told = new WeakSet();
let latest = "";

/** Say what every step has brought that ended since this was last said, and what is done now. */
export function tell(run) {
  const ended = run.steps.filter((step) => step.state === "done" && !run.outer.has(step.id));
  const fresh = ended.filter((step) => !told.has(step));
  for (const step of fresh) told.add(step);
  if (fresh.length || !ended.length) {
    latest = fresh.map((step) => `${brought(step.node, run.values)}. `).join("");
  }
  const said = run.phase === "running" ? `${latest}Now ${nowDoing(run)}…` : conclusion(run);
  if (byId("status").textContent !== said) byId("status").textContent = said;
  byId("way-line").replaceChildren(...joined(stations(run)));
}

function conclusion(run) {
  const phase = phaseOf(run);
  if (phase === "waiting") return "The run waits for your decision.";
  const time = run.ended ? ` after ${seconds(run.ended - run.started)}` : "";
  const cited = run.values.citations?.length ? `, with ${count(run.values.citations.length, "citation")}` : "";
  const why = phase === "failed" ? `: ${run.error.message}` : "";
  const said = `${sentence(PHASES[phase])}${time}${cited}${why}`;
  return /[.?!]$/.test(said) ? said : `${said}.`;
}

/**
 * Name the stations of a run: "10 retrieved", its action, "4 kept", "answered, 1.5 s".
 * @returns {{text: string, action?: string}[]} `action` where the text is one
 */
export function stations(run) {
  const { documents, action, hits = [], internal = [], external = [], reflection } = run.values;
  const critiques = reflection?.critiques ?? [];
  const judged = [...internal, ...external].some(({ reason }) => reason);
  const kept = [...internal, ...external].filter((strip) => strip.kept).length;
  const time = run.ended ? `, ${seconds(run.ended - run.started)}` : "";
  return [
    documents && { text: `${documents.length.toLocaleString("en")} retrieved` },
    action && { text: action, action },
    hits.length && { text: `${hits.length.toLocaleString("en")} found on the web` },
    judged && { text: `${kept.toLocaleString("en")} kept` },
    critiques.length && { text: `${critiques.length.toLocaleString("en")} judged` },
    { text: run.phase === "running" ? `${nowDoing(run)}…` : `${PHASES[phaseOf(run)]}${time}` },
  ].filter(Boolean);
}

/** Draw stations in a row. */
export const joined = (all) => all.flatMap(({ text, action }, at) => [
  ...(at ? [" → "] : []),
  action ? element("strong.stance", { data: { action }, title: ACTIONS[action] }, text) : element("span", text),
]);
