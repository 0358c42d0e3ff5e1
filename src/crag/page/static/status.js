/** One line that says how far a run is; screen readers read it out. */

import { byId } from "./dom.js";
import { nowDoing } from "./graph.js";
import { brought, count, PHASES, phaseOf, seconds } from "./words.js";

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
}

function conclusion(run) {
  const phase = phaseOf(run);
  if (phase === "waiting") return "The run waits for your decision.";
  const time = run.ended ? ` after ${seconds(run.ended - run.started)}` : "";
  const cited = run.values.citations?.length ? `, with ${count(run.values.citations.length, "citation")}` : "";
  const why = phase === "failed" ? `: ${run.error.message}` : "";
  const word = PHASES[phase];
  const said = `${word.charAt(0).toUpperCase()}${word.slice(1)}${time}${cited}${why}`;
  return /[.?!]$/.test(said) ? said : `${said}.`;
}
