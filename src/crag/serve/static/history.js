/** The conversations, which the server keeps: every tab and browser of a user shows them. */

import { byId, element, fill, show } from "./dom.js";
import * as server from "./server.js";

/** The list beside the page. */
export class History {
  /**
   * @param {{open: (thread: string) => void, deleted: (thread: string) => void}} actions
   * @param {(graph: string) => string} graphName what people call a graph
   */
  constructor(actions, graphName) {
    Object.assign(this, { actions, graphName, threads: [], current: null });
  }

  /** Fetch the list. */
  async load() {
    try {
      this.threads = await server.threads();
    } catch (error) {
      server.expected(error); // What is shown stays.
    }
    this.draw();
  }

  /** The graph that a conversation was begun with; none for one that is not there. */
  graphOf(thread) {
    return this.threads.find((one) => one.thread === thread)?.graph;
  }

  /** Mark the conversation that is shown; null: none yet. */
  show(thread) {
    this.current = thread;
    this.draw();
  }

  draw() {
    show(byId("no-history"), !this.threads.length);
    byId("history").replaceChildren();
    fill(byId("history"), this.threads, (one) => this.#entry(one));
  }

  #entry({ thread, graph, changed, question }) {
    const isCurrent = thread === this.current;
    const told = `${this.graphName(graph)} · ${when(changed)}`;
    const onclick = () => confirm(`Delete “${question}” for good?`) && this.#delete(thread);
    const remove = element("button.plain.remove", { onclick, "aria-label": `Delete ${question}` }, "Delete");
    const entry = element(
      "button.entry", { onclick: () => this.actions.open(thread), "aria-current": isCurrent ? "true" : null },
      element("span.asked", question), element("span.told", told),
    );
    return element("li", entry, isCurrent && remove);
  }

  async #delete(thread) {
    await server.removeThread(thread).catch(server.expected);
    this.actions.deleted(thread);
    await this.load();
  }
}

const when = (changed) => new Date(changed).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** Return the turns that lead to the newest one, of those that the server has, the latest first. */
export function lineage(turns) {
  const known = new Map(turns.map((turn) => [turn.checkpoint, turn]));
  const path = [];
  for (let [turn] = turns; turn; turn = known.get(turn.parent)) path.unshift(turn);
  // One that waited for a human comes again with the answer.
  return path.filter(({ interrupts }, at) => !interrupts.length || at === path.length - 1);
}
