/** The runs of this session: kept by the browser until its tab is closed. */

import { byId, element, show } from "./dom.js";
import { begin } from "./run.js";
import { kept, ServerError } from "./server.js";
import { PHASES, phaseOf } from "./words.js";

const PLACE = "crag-session";
const MOST = 50;

/** A list of runs; those of before a reload are fetched from the server when they are opened. */
export class History {
  /** @param {(run: object) => void} open called with the run that was chosen */
  constructor(open) {
    this.open = open;
    this.runs = read();
    this.shown = null;
  }

  /** Add a run, or note what has become of it. */
  note(run) {
    if (!this.runs.includes(run)) this.runs = [run, ...this.runs].slice(0, MOST);
    write(this.runs);
    this.draw();
  }

  /** Mark the run that is shown. */
  show(run) {
    this.shown = run;
    this.draw();
  }

  draw() {
    const focused = [...byId("history").querySelectorAll("button")].indexOf(document.activeElement);
    show(byId("no-history"), this.runs.length === 0);
    byId("history").replaceChildren(...this.runs.map((run) => this.#entry(run)));
    if (focused >= 0) byId("history").querySelectorAll("button")[focused]?.focus();
  }

  #entry(run) {
    const phase = phaseOf(run);
    const told = [run.graph, run.values.action, PHASES[phase]].filter(Boolean).join(" · ");
    const current = run === this.shown ? "true" : null;
    const onclick = async () => this.open(await whole(run));
    const label = [element("span.asked", {}, run.question), element("span.told", {}, told)];
    return element("li", {}, element("button.entry", { type: "button", onclick, "aria-current": current, data: { phase } }, ...label));
  }
}

/** Fill a run of before a reload with what the server kept of it. */
async function whole(run) {
  if (!run.remembered) return run;
  try {
    const { values, asked } = await kept(run.thread);
    Object.assign(run, { values, asked, remembered: false });
    run.phase = asked ? "waiting" : run.phase;
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    const gone = "The server no longer has this run: it keeps runs until it is stopped.";
    const message = error.status === 404 ? gone : `${error.message} Is it still running?`;
    Object.assign(run, { phase: "failed", error: { name: "", message } });
  }
  return run;
}

function write(runs) {
  const short = runs.map(({ thread, graph, question, settings, phase, values, started, ended, steps }) => ({
    thread, graph, question, settings, phase, started, ended, steps,
    action: values.action, abstained: values.abstained,
  }));
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(short));
  } catch {
    // A browser that keeps nothing for pages still shows the session until the tab is reloaded.
  }
}

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE) ?? "[]").map(remembered);
  } catch {
    return [];
  }
}

function remembered({ action, abstained, phase, ...known }) {
  const run = begin(known.question, known.graph, known.settings, known.started);
  // A page that goes away takes its run with it: the server cancels what nobody reads.
  const ended = phase === "running" ? "cancelled" : phase;
  return Object.assign(run, known, { phase: ended, values: { action, abstained }, remembered: Boolean(known.thread) });
}
