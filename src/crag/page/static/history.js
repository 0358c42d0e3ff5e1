/** The conversations of this session: kept by the browser until its tab is closed. */

import { byId, element, show } from "./dom.js";
import { begin } from "./run.js";
import { kept, ServerError } from "./server.js";
import { count, graphName, PHASES, phaseOf } from "./words.js";

const PLACE = "crag-session";
const MOST = 50;

/**
 * A list of conversations, each of them runs of one graph that follow each other; runs of before a
 * reload are fetched from the server when they are opened.
 */
export class History {
  /** @param {(run: object) => void} open called with the run that was chosen */
  constructor(open) {
    this.open = open;
    this.conversations = read();
    this.shown = null;
  }

  /**
   * Begin a conversation, with the turns that another had so far.
   * @returns {{graph: string, turns: object[]}}
   */
  begin(graph, turns = []) {
    const conversation = { graph, turns: [...turns] };
    this.conversations = [conversation, ...this.conversations].slice(0, MOST);
    return conversation;
  }

  /** Keep what has become of the conversations. */
  note() {
    write(this.conversations);
    this.draw();
  }

  /** Mark the conversation that is shown; null: none yet. */
  show(conversation) {
    this.shown = conversation;
    this.draw();
  }

  draw() {
    const focused = [...byId("history").querySelectorAll("button")].indexOf(document.activeElement);
    show(byId("no-history"), this.conversations.length === 0);
    byId("history").replaceChildren(...this.conversations.map((one) => this.#entry(one)));
    if (focused >= 0) byId("history").querySelectorAll("button")[focused]?.focus();
  }

  #entry(conversation) {
    const { graph, turns } = conversation;
    const last = turns.at(-1);
    const phase = phaseOf(last);
    const questions = turns.length > 1 ? count(turns.length, "question") : "";
    const told = [graphName(graph), questions, last.values.action, PHASES[phase]].filter(Boolean).join(" · ");
    const current = conversation === this.shown ? "true" : null;
    const onclick = () => this.turn(conversation, last);
    const label = [element("span.asked", {}, turns[0].question), element("span.told", {}, told)];
    return element("li", {}, element("button.entry", { type: "button", onclick, "aria-current": current, data: { phase } }, ...label));
  }

  /** Open one turn of a conversation. */
  async turn(conversation, run) {
    this.open(await whole(run), conversation);
  }
}

/** Fill a run of before a reload with what the server kept of it. */
async function whole(run) {
  if (!run.remembered) return run;
  try {
    const found = run.id ? await kept(run.thread, run.id) : null;
    Object.assign(run, found, { remembered: false });
    if (found) run.phase = found.asked ? "waiting" : run.phase;
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    const gone = "The server no longer has this run: it keeps runs until it is stopped.";
    Object.assign(run, { phase: "failed", error: { name: "", message: error.status === 404 ? gone : error.message } });
  }
  return run;
}

function write(conversations) {
  const runs = [...new Set(conversations.flatMap(({ turns }) => turns))];
  const short = runs.map(({ thread, id, graph, question, settings, phase, error, values, started, ended, steps, checkpoint }) => ({
    thread, id, graph, question, settings, phase, error, started, ended, steps, checkpoint,
    told: { action: values.action, abstained: values.abstained, certainty: values.certainty, answer: values.answer, citations: values.citations },
  }));
  const turns = conversations.map((one) => ({ graph: one.graph, turns: one.turns.map((run) => runs.indexOf(run)) }));
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ runs: short, conversations: turns }));
  } catch {
    // A browser that keeps nothing for pages still shows the session until the tab is reloaded.
  }
}

function read() {
  try {
    const { runs, conversations } = JSON.parse(sessionStorage.getItem(PLACE));
    const known = runs.map(remembered);
    return conversations.map(({ graph, turns }) => ({ graph, turns: turns.map((at) => known[at]) }));
  } catch {
    return [];
  }
}

function remembered({ told, phase, ...known }) {
  const run = begin(known.question, known.graph, known.settings, known.started);
  // A page that goes away takes its run with it: the server cancels what nobody reads.
  const ended = phase === "running" ? "cancelled" : phase;
  return Object.assign(run, known, { phase: ended, values: told, remembered: Boolean(known.thread) });
}
