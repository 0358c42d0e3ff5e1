/** One turn of a conversation: the question, the way to the answer, the answer, and what it rests on. */

import { answer } from "./answer.js";
import { critiques } from "./critiques.js";
import { element, put, redraw, show } from "./dom.js";
import { GraphView } from "./graph.js";
import { passages } from "./passages.js";
import { isEnded } from "./run.js";
import { events, numbers } from "./trace.js";
import { count, doing, PHASES, seconds, sentence } from "./words.js";
import { web } from "./web.js";

const WIDE = "(min-width: 40rem)";

/** Draws a run, and draws it again when it has changed. */
export class Turn {
  /**
   * @param {object} run
   * @param {object|null} drawing of its graph
   * @param {object} actions as `answer` takes them
   */
  constructor(run, drawing, actions) {
    Object.assign(this, { run, actions, chosen: false });
    this.asked = element("h2.asked");
    this.line = element("summary");
    this.graph = element("div.graph", { tabindex: "0", role: "group", "aria-label": "The graph" });
    this.way = element("details.way", this.line, this.graph);
    this.body = element("div.answer", { tabindex: "-1" });
    this.panels = element("div.panels");
    const label = element("summary", "Passages, scores and what happened");
    this.basis = element("details.basis", { ontoggle: () => this.#toggled() }, label, this.panels);
    this.item = element(
      "li.turn.card", { onclick: (event) => this.#jump(event) },
      this.asked, this.way, this.body, this.basis,
    );
    this.line.addEventListener("click", () => Object.assign(this, { chosen: true }));
    this.view = drawing && new GraphView(this.graph, drawing);
    this.#draw();
  }

  /** Draw what has changed, once for each frame. */
  changed() {
    if (this.waits) return;
    this.waits = requestAnimationFrame(() => this.#draw());
  }

  /** Bring the whole turn into view, unless somebody reads elsewhere. */
  reveal() {
    const { top, bottom } = this.item.getBoundingClientRect();
    if (top > 0 && top < innerHeight && bottom > 0.75 * innerHeight) this.item.scrollIntoView({ block: "start" });
  }

  #draw() {
    const { run } = this;
    const { phase, values, question, steps } = run;
    this.waits = null;
    this.item.dataset.phase = phase;
    this.item.setAttribute("aria-busy", String(phase === "running"));
    const understood = bare(values.question) && bare(values.question) !== bare(question);
    put(this.asked, question, understood && element("span.understood", `Understood as: ${values.question}`));
    put(this.line, ...stations(run));
    this.way.classList.toggle("told", !steps.length); // The steps of an earlier visit are not kept.
    this.view?.light(run);
    this.#unfold();
    put(this.body, ...answer(run, this.actions(this)));
    show(this.basis, Object.keys(values).length > 0);
    this.#drawBasis();
    if (phase === "waiting") this.body.querySelector("h3")?.focus();
  }

  /** Draw what is opened, and drop what is folded: it may be very much. */
  #toggled() {
    if (this.basis.open !== this.panels.childElementCount > 0) this.#drawBasis();
  }

  #drawBasis() {
    const { run, actions } = this;
    if (!this.basis.open) return this.panels.replaceChildren();
    const { reading } = actions(this);
    return redraw(this.panels, passages(run, reading), web(run), critiques(run), events(run), numbers(run));
  }

  /** Open the drawing while there is nothing else to see, unless somebody has decided otherwise. */
  #unfold() {
    const { phase, draft, steps } = this.run;
    if (this.chosen) return;
    const nothingElse = phase === "waiting" || (phase === "running" && !draft);
    this.way.open = steps.length > 0 && nothingElse && matchMedia(WIDE).matches;
  }

  /** Lead a citation to its passage. */
  #jump({ target }) {
    const { cite } = target.closest?.("button")?.dataset ?? {};
    if (!cite) return;
    if (!this.basis.open) {
      this.basis.open = true;
      this.#drawBasis();
    }
    const place = this.panels.querySelector(`[data-strip="${CSS.escape(cite)}"]`) ?? this.basis;
    const holder = place.closest("details");
    if (holder) holder.open = true;
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "center" });
  }
}

const bare = (text = "") => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

/** Tell the way in a row: "10 retrieved → graded correct → 4 kept → answered, 1.5 s". */
function stations(run) {
  const { phase, values, started, ended } = run;
  const { documents = [], action, pages = [], strips = [], reflection } = values;
  const kept = strips.filter((strip) => strip.kept).length;
  const said = [
    documents.length > 0 && `${documents.length.toLocaleString("en")} retrieved`,
    action && `graded ${action}`,
    pages.length > 0 && `${pages.length.toLocaleString("en")} found on the web`,
    strips.some(({ reason }) => reason) && `${kept.toLocaleString("en")} kept`,
    reflection?.critiques?.length > 0 && `${reflection.critiques.length.toLocaleString("en")} judged`,
    phase === "running" && `${nowDoing(run)}…`,
  ].filter(Boolean);
  const parts = said.flatMap((words) => [element("span", words), " → "]);
  if (phase === "running") return parts.slice(0, -1);
  const time = started && ended ? `, ${seconds(ended - started)}` : "";
  return [...parts, element("strong.stance", { data: { phase } }, PHASES[phase]), time];
}

function nowDoing({ steps, outer }) {
  const running = steps.filter(({ state, id }) => state === "running" && !outer.has(id));
  return running.length ? running.map(({ node }) => doing(node)).join(" and ") : "waiting for the server";
}

/** Say for screen readers what a run is doing, or how it has ended. */
export function spoken(run) {
  if (run.phase === "running") return `Now ${nowDoing(run)}…`;
  if (run.phase === "waiting") return "The question waits for your decision.";
  const time = isEnded(run) && run.started ? ` after ${seconds(run.ended - run.started)}` : "";
  const citations = run.values.citations?.length;
  const said = `${sentence(PHASES[run.phase])}${time}${citations ? `, with ${count(citations, "citation")}` : ""}`;
  return run.problem ? `${said}: ${run.problem}` : `${said}.`;
}
