/** The conversations, kept by the server with their threads: every tab and browser shows them. */

import { cited } from "./citations.js";
import { byId, element, show } from "./dom.js";
import { begin, conclude, derive } from "./run.js";
import * as server from "./server.js";
import { count, graphName, PHASES, phaseOf } from "./words.js";

const LONGEST = 280;
const otherTabs = new BroadcastChannel("crag");

/**
 * A list of conversations, each of them runs of one graph that follow each other, with the thread of
 * the last one; what the runs of other tabs, or of before a reload, came to is fetched when they are
 * opened.
 */
export class History {
  /**
   * @param {(run: object, conversation: object) => void} open called with the run that was chosen
   * @param {() => void} changed called when another tab has changed conversations
   * @param {(conversation: object) => void} left called when the conversation that is shown was deleted
   */
  constructor(open, changed, left) {
    Object.assign(this, { open, changed, left });
    this.conversations = [];
    this.shown = null;
    this.writing = Promise.resolve();
    otherTabs.onmessage = () => this.load();
  }

  /** Fetch what the server keeps; a conversation with a run of this tab stays as it is here. */
  async load() {
    const threads = await told(server.threads());
    if (!threads) return;
    const busy = this.conversations.filter(({ thread, turns }) => !thread || turns.some(isOfThisTab));
    const known = new Map(this.conversations.map((one) => [one.id, one]));
    const runs = new Map();
    const once = (run) => runs.get(keyOf(run)) ?? (runs.set(keyOf(run), remembered(run)), runs.get(keyOf(run)));
    for (const run of this.conversations.flatMap(({ turns }) => turns)) if (!run.remembered) runs.set(keyOf(run), run);
    const found = threads.flatMap(({ thread_id: thread, metadata }) => metadata.conversations.map(({ id, graph, turns }) =>
      Object.assign(known.get(id) ?? { id, graph }, busy.includes(known.get(id)) ? {} : { thread, turns: turns.map(once) })));
    this.conversations = [...new Set([...busy, ...found])];
    const open = this.conversations.map(({ turns }) => turns.at(-1)).filter((run) => run.remembered && run.phase === "running");
    await Promise.all(open.map((run) => settle(run, 0)));
    this.draw();
    this.changed();
  }

  /**
   * Begin a conversation, with the turns that another had so far.
   * @returns {{id: string, graph: string, turns: object[], thread?: string}}
   */
  begin(graph, turns = []) {
    const conversation = { id: Math.random().toString(36), graph, turns: [...turns] };
    this.conversations.unshift(conversation);
    return conversation;
  }

  /** Keep on the server what has become of a run, as soon as it has a thread, and tell other tabs. */
  note(run) {
    this.draw();
    const own = this.conversations.find(({ turns }) => turns.includes(run));
    if (!own || !run.thread) return;
    const threads = new Set([own.thread ?? run.thread, run.thread]);
    own.thread = run.thread;
    for (const thread of threads) this.#write(thread);
  }

  #write(thread) {
    this.writing = this.writing.then(async () => {
      const own = this.conversations.filter((one) => one.thread === thread);
      const isUsed = this.conversations.some(({ turns }) => turns.some((run) => run.thread === thread));
      await told(isUsed ? server.describe(thread, own.map(packed)) : server.removeThread(thread));
      otherTabs.postMessage("");
    });
  }

  /** Whether a conversation is still there, and was not deleted elsewhere or lost with the server. */
  has(conversation) {
    return this.conversations.includes(conversation);
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
    const said = [graphName(graph), questions, last.values.action, PHASES[phase]].filter(Boolean).join(" · ");
    const current = conversation === this.shown ? "true" : null;
    const onclick = () => this.turn(conversation, last);
    const label = [element("span.asked", turns[0].question), element("span.told", said)];
    const forget = element("button.plain", { onclick: () => this.#forget(forget, conversation) }, "Forget");
    return element("li", element("button.entry", { onclick, "aria-current": current, data: { phase } }, ...label), current && forget);
  }

  /** Delete a conversation at the second click. */
  #forget(button, conversation) {
    if (!button.dataset.sure) {
      button.dataset.sure = "yes";
      button.textContent = "Forget it for good?";
      return;
    }
    this.conversations = this.conversations.filter((one) => one !== conversation);
    for (const thread of new Set(conversation.turns.map((turn) => turn.thread))) if (thread) this.#write(thread);
    this.left(conversation);
  }

  /** Open one turn of a conversation; one that runs in another tab again when it has ended. */
  async turn(conversation, run) {
    const waits = run.remembered && run.phase === "running";
    if (waits) this.open(run, conversation);
    await fill(run);
    const stands = this.shown === conversation && conversation.turns.includes(run);
    if (!waits || stands) this.open(run, conversation);
  }
}

const isOfThisTab = (run) => run.phase === "running" && !run.remembered;
const keyOf = ({ id, thread, started }) => id || thread + started;

/** Conclude a run of elsewhere that has ended, asked as often. */
async function settle(run, most) {
  const status = run.id ? await told(server.statusOf(run.thread, run.id, most)) : "interrupted";
  if (!["pending", "running"].includes(status)) conclude(run, null, status);
}

/** Fill a run that is remembered with what the server kept of it. */
async function fill(run) {
  if (!run.remembered) return;
  try {
    if (run.phase === "running") await settle(run, Infinity);
    const found = run.id ? await server.kept(run.thread, run.id) : null;
    Object.assign(run, found, { remembered: false });
    if (found) derive(run.values);
    if (found?.asked) run.phase = "waiting";
  } catch (error) {
    server.expected(error);
    const gone = "The server no longer has this run: it keeps runs until it is stopped.";
    Object.assign(run, { phase: "failed", error: { name: "", message: error.status === 404 ? gone : error.message } });
  }
}

/** Return what comes of a request; null where the server refuses: this tab has its conversations. */
async function told(request) {
  try {
    return await request;
  } catch (error) {
    server.expected(error);
    return null;
  }
}

function packed({ id, graph, turns }) {
  const short = turns.map(({ thread, id: run, graph: by, question, settings, phase, error, values, started, ended, steps, checkpoint }) => ({
    thread, id: run, graph: by, question, settings, phase, error, started, ended, steps, checkpoint,
    values: { action: values.action, abstained: values.abstained, outcome: values.outcome, answer: cited(values).answer.slice(0, LONGEST) },
  }));
  return { id, graph, turns: short };
}

const remembered = (known) =>
  Object.assign(begin(known.question, known.graph, known.settings, known.started), known, { remembered: Boolean(known.thread) });
