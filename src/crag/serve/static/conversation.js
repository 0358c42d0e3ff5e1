/** The turns of a conversation before and after the one that is shown in full. */

import { cited } from "./citations.js";
import { byId, element, show } from "./dom.js";
import { PHASES, phaseOf } from "./words.js";

const LONGEST = 280;

/**
 * Draw the other turns around the answer.
 * @param {object[]} turns
 * @param {object} shown one of them
 * @param {(run: object) => void} open
 */
export function drawTurns(turns, shown, open) {
  const at = turns.indexOf(shown);
  for (const [id, some] of [["earlier", turns.slice(0, Math.max(0, at))], ["later", turns.slice(at + 1)]]) {
    byId(id).replaceChildren(...some.map((run) => turn(run, open)));
    show(byId(id), some.length > 0);
  }
}

function turn(run, open) {
  const onclick = () => open(run);
  return element(
    "li.turn",
    { data: { phase: phaseOf(run) } },
    element("button.asked", { onclick, title: "Show what this answer rests on" }, run.question),
    element("p", said(run)),
  );
}

function said(run) {
  if (run.phase !== "done") return PHASES[run.phase];
  const text = cited(run.values).answer.replace(/\s+/g, " ").trim();
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
