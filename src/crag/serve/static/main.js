/** The page: asks, follows the run, and draws what it brings. */

import { drawAnswer } from "./answer.js";
import { compareWith, leaveComparison } from "./compare.js";
import { askHuman, closeQuestion } from "./confirm.js";
import { drawTurns } from "./conversation.js";
import { drawCritiques } from "./critiques.js";
import { DocumentsView } from "./documents.js";
import { byId, element, put, show } from "./dom.js";
import { GraphView } from "./graph.js";
import { History } from "./history.js";
import { Library } from "./library.js";
import { linked } from "./places.js";
import { begin, cancelled, close, conclude, derive, isWhole, resume, take } from "./run.js";
import * as server from "./server.js";
import { Settings } from "./settings.js";
import { openSource } from "./source.js";
import { tell } from "./status.js";
import { drawEvents, drawNumbers } from "./trace.js";
import { drawWeb } from "./web.js";
import { graphName, nameGraphs } from "./words.js";

const graphView = new GraphView(byId("graph"), byId("way"));
const read = (path, citation = null) => openSource(path, citation, library.nameOf(path));
const library = new Library(read);
const reading = { open: read, has: (source) => library.has(source) };
const documentsView = new DocumentsView(reading);
const settings = new Settings(() => byId("question").focus());
const history = new History(open, refreshed, forgotten);
const drawings = new Map();
const dirty = new Set();
let assistants = [];
let shown = null;
let conversation = null;
let edited = null;
let active = null;

const actions = { ask: (question, instead) => ask(question, instead), edit, reading, compare: compareWith, graphs: [], first: {} };

const DRAWN_BY = [
  [["steps", "asked", "error", "draft"], (run) => graphView.light(run)],
  [["steps", "draft", "answer", "outcome", "citations", "messages", "error", "asked"], (run) => drawAnswer(run, actions)],
  [["documents", "strips", "citations"], (run) => documentsView.draw(run)],
  [["query", "pages", "strips", "events", "citations"], drawWeb],
  [["reflection"], drawCritiques],
  [["events"], drawEvents],
];

const UNASKED = byId("way-line").textContent;
const EVERYTHING = DRAWN_BY.flatMap(([keys]) => keys);

/** Ask the server what it offers, and open the graph that the address names. */
async function boot() {
  show(byId("notice"), false);
  try {
    assistants = await server.graphs();
  } catch (error) {
    return error.status === 401 ? askToken(error.message) : notice(down(error), boot);
  }
  await greet();
  history.load();
  const wanted = new URLSearchParams(location.search);
  byId("question").value ||= wanted.get("question") ?? "";
  const names = assistants.map((assistant) => assistant.graph_id);
  const name = wanted.get("graph") ?? (names.includes("crag") ? "crag" : names[0]);
  actions.graphs = names;
  drawChoices(names);
  library.load().then(() => {
    actions.first.examples = library.told?.examples;
    if (shown) changed(shown, EVERYTHING);
    else drawAnswer(null, actions);
    if (wanted.has("source")) read(wanted.get("source"), linked(location.hash));
  });
  if (names.includes(name)) return choose(name);
  notice(`There is no graph “${name}” on this server; it has ${names.join(", ")}.`);
  return choose(names.includes("crag") ? "crag" : names[0]);
}

/** Learn what people call the graphs, and what is connected. */
async function greet() {
  try {
    Object.assign(actions.first, await server.about());
  } catch (error) {
    server.expected(error);
    return; // The page does without.
  }
  nameGraphs(actions.first.graphs);
  history.draw();
  if (!shown) drawAnswer(null, actions);
}

/** Ask for the token where the address has none, or an old one. */
function askToken(message) {
  const field = element("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const onsubmit = (event) => {
    event.preventDefault();
    server.useToken(field.value);
    boot();
  };
  byId("notice").replaceChildren(element(
    "form.token",
    { onsubmit },
    element("p", message),
    element("label", { for: "token" }, "Token, or the whole address that crag serve printed"),
    field,
    element("button.primary", { type: "submit" }, "Use it"),
  ));
  show(byId("notice"), true);
  field.focus();
}

function drawChoices(names) {
  const options = names.map((name) => {
    const about = assistants.find((one) => one.graph_id === name).description;
    const radio = element("input", { type: "radio", name: "graph", value: name, onchange: () => choose(name) });
    return element("label", { title: about }, radio, element("span", graphName(name)));
  });
  byId("graphs").replaceChildren(byId("graphs").firstElementChild, ...options);
}

const chosen = () => byId("ask").elements.namedItem("graph").value;

/** Show another graph; its drawing and settings are fetched once. */
async function choose(name) {
  for (const radio of document.getElementsByName("graph")) radio.checked = radio.value === name;
  const assistant = assistants.find((one) => one.graph_id === name)?.assistant_id;
  try {
    if (assistant && !drawings.has(name)) {
      drawings.set(name, await Promise.all([server.drawing(assistant), server.schemas(assistant)]));
    }
  } catch (error) {
    return notice(down(error), () => choose(name));
  }
  if (chosen() !== name || !drawings.has(name)) return;
  label();
  byId("about").textContent = assistants.find((one) => one.graph_id === name)?.description ?? "";
  const [drawing, schemas] = drawings.get(name);
  settings.use(schemas.settings);
  graphView.open(drawing);
  if (shown?.graph === name) graphView.light(shown);
}

/**
 * Ask the chosen graph: a follow-up in the conversation that is shown, if it is one of that graph.
 * @param {string} question
 * @param {object|null} instead the turn that is asked anew, whose place the question takes
 */
async function ask(question, instead = edited) {
  if (active || !question.trim()) return;
  const run = begin(question.trim(), chosen(), settings.context(), Date.now());
  const before = placed(run, instead);
  show(byId("notice"), false);
  byId("question").value = "";
  open(run, conversation);
  await follow(run, async (signal) => {
    const from = await lastKept(before);
    run.thread = from?.thread ?? await server.newThread();
    const { thread, graph, settings: context } = run;
    const input = drawings.get(graph)?.[1].chats
      ? { messages: [{ role: "user", content: run.question }] }
      : { question: run.question };
    return server.stream({ thread, graph, input, context, checkpoint: from?.checkpoint }, signal);
  });
}

/**
 * Put a run into its conversation, and return the turns before it. What is asked anew begins a
 * conversation of its own, so that nothing that was answered is lost; only a turn without an answer
 * gives way.
 */
function placed(run, instead) {
  const turns = goesOn() ? conversation.turns : [];
  const at = turns.indexOf(instead);
  const before = at < 0 ? turns : turns.slice(0, at);
  if (at >= 0 && at === turns.length - 1 && instead.phase !== "done") turns.pop();
  else if (at >= 0 || !goesOn()) conversation = history.begin(run.graph, before);
  const earlier = [...before];
  conversation.turns.push(run);
  return earlier;
}

/** Whether the next question follows those that are shown, which the server may have lost since. */
const goesOn = () => conversation?.graph === chosen() && history.has(conversation);

/** Return the last of some turns that the server kept something of, with its checkpoint. */
async function lastKept(turns) {
  for (const turn of turns.toReversed()) {
    if (!turn.id) continue;
    turn.checkpoint ??= (await server.kept(turn.thread, turn.id))?.checkpoint ?? null;
    if (turn.checkpoint) return turn;
  }
  return null;
}

/** Put a question back into its field; asked again, it takes the place of the old one. */
function edit(run) {
  edited = run;
  byId("question").value = run.question;
  byId("question").focus();
  label();
}

/** Draw what other tabs have changed; what waited here may have been decided there. */
function refreshed() {
  const now = conversation?.turns.find(({ started }) => started === shown.started) ?? shown;
  if (now !== shown) history.turn(conversation, now);
  else if (conversation) drawConversation();
}

/** Leave a conversation that was deleted, with a run of it that is under way. */
function forgotten(gone) {
  if (gone.turns.includes(active?.run)) active.stopping.abort();
  renew();
}

/** End whatever the form was about, and begin with nothing. */
function renew() {
  [shown, conversation, edited] = [null, null, null];
  clear();
  graphView.light(null);
  drawTurns([], null, open);
  drawAnswer(null, actions);
  byId("status").textContent = "";
  byId("way-line").textContent = UNASKED;
  history.show(null);
  working(active !== null);
  byId("question").value = "";
  byId("question").focus();
}

/** Say what the form asks: a question, one that follows, or one that is asked anew. */
function label() {
  const follows = goesOn() && conversation.turns.length > 0;
  byId("asks").textContent = edited ? "Edit the question" : follows ? "Your follow-up question" : "Your question";
  show(byId("leave"), edited !== null);
  show(byId("new"), conversation !== null);
}

/** Go on with a run that waits for a human. */
async function decide(run, answer) {
  if (active) return;
  resume(run);
  changed(run, ["steps", "asked"]);
  await follow(run, async (signal) => {
    await lastKept([run]); // The thread may have gone on since with another question.
    const { thread, graph, settings: context, checkpoint } = run;
    run.checkpoint = null; // The next question follows the answer.
    return server.stream({ thread, graph, resume: answer, context, checkpoint }, signal);
  });
}

/** Read the stream to its end, whatever end that is. */
async function follow(run, start) {
  const stopping = new AbortController();
  active = { run, stopping };
  working(true);
  history.note(run);
  try {
    for await (const part of await start(stopping.signal)) {
      changed(run, take(run, part, Date.now()));
      if (part.event === "metadata") history.note(run);
    }
    await settle(run);
  } catch (error) {
    await ended(run, error);
  }
  active = null;
  working(false);
  history.note(run);
  if (conversation) drawConversation();
  if (shown) changed(shown, EVERYTHING); // Another one may wait for a decision.
  if (run === shown) requestAnimationFrame(reveal);
}

async function ended(run, error) {
  const now = Date.now();
  if (error.name === "AbortError") return cancelled(run, now);
  server.expected(error);
  if (error.kind === "broken") return settle(run, error.message);
  if (error.kind === "down") notice(down(error), boot);
  close(run, now, "failed", error.status === 404 ? GONE : down(error));
  return error.status === 404 && history.load();
}

/** Conclude a run by what the server says of it: a stream may end for many reasons. */
async function settle(run, message) {
  if (run.phase !== "running") return;
  let status = null;
  try {
    status = await server.statusOf(run.thread, run.id);
    if (status === "success" && !isWhole(run)) {
      Object.assign(run, await server.kept(run.thread, run.id));
      derive(run.values);
    }
  } catch (error) {
    server.expected(error);
    status = null;
  }
  conclude(run, Date.now(), status, message);
}

const down = (error) =>
  error.kind === "down" ? "The server does not answer. Is “crag serve” still running?" : error.message;

const GONE = "The server no longer has this conversation. Asked again, the question begins a new one.";

/** Stop reading, and tell the server. */
function cancel() {
  const run = active?.run ?? shown;
  if (active) {
    active.stopping.abort();
    if (run.id) server.cancel(run.thread, run.id).catch((error) => notice(down(error)));
  } else if (run?.phase === "waiting") {
    cancelled(run, Date.now());
    history.note(run);
    changed(run, ["steps", "asked", "error"]);
    working(false);
  }
}

/** Show a run of a conversation from its beginning. */
function open(run, within) {
  [shown, conversation, edited] = [run, within, null];
  clear();
  history.show(conversation);
  if (chosen() !== run.graph) choose(run.graph);
  drawConversation();
  changed(run, EVERYTHING);
  requestAnimationFrame(reveal);
}

/** Bring the question, and the answer beneath it, into view, unless somebody reads further down. */
function reveal() {
  const { top } = byId("asked").getBoundingClientRect();
  const { top: below } = byId("answer-body").getBoundingClientRect();
  if (top >= 0 && below > 0.55 * innerHeight) byId("asked").scrollIntoView();
}

function drawConversation() {
  drawTurns(conversation.turns, shown, (turn) => history.turn(conversation, turn));
  label();
}

function clear() {
  closeQuestion();
  leaveComparison();
  documentsView.clear();
  for (const id of ["critiques", "web", "events", "numbers"]) show(byId(id), false);
}

/** Draw what changed, once for each frame. */
function changed(run, keys) {
  if (run !== shown) return;
  if (!dirty.size) requestAnimationFrame(draw);
  for (const key of keys) dirty.add(key);
}

function draw() {
  const keys = [...dirty];
  dirty.clear();
  if (!shown) return;
  for (const [names, view] of DRAWN_BY) if (names.some((name) => keys.includes(name))) view(shown);
  if (keys.includes("error") && !shown.values.hits?.length) drawWeb(shown);
  drawNumbers(shown);
  tell(shown);
  if (keys.includes("asked") && shown.phase === "waiting" && !active) {
    const run = shown;
    askHuman(run.asked, (answer) => decide(run, answer));
  } else if (shown.phase !== "waiting") closeQuestion();
  working(active !== null);
}

/** Switch between asking and cancelling without losing the focus. */
function working(busy) {
  const cancellable = busy || shown?.phase === "waiting";
  const lost = document.activeElement === byId("cancel") && !cancellable;
  show(byId("cancel"), cancellable);
  byId("send").setAttribute("aria-disabled", String(busy));
  byId("new").setAttribute("aria-disabled", String(busy));
  label();
  if (lost) byId("question").focus();
}

/** Say what is wrong with the server or the address, with a way to try again. */
function notice(message, again) {
  const retry = again && element("button", { onclick: again }, "Try again");
  put(byId("notice"), element("span", message), retry);
  show(byId("notice"), true);
}

/** Lead a citation to its strip, and a strip back to where it was cited. */
function jump(event) {
  const { cite, back } = event.target.closest?.("a")?.dataset ?? {};
  if (!cite && !back) return;
  event.preventDefault();
  const target = cite ? byId(`strip-${cite}`) ?? byId("documents") : document.querySelector(`#answer-body [data-cite="${CSS.escape(back)}"]`);
  const holder = target?.closest("details");
  if (holder) holder.open = true;
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "center" });
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(byId("question").value);
});
byId("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("ask").requestSubmit();
});
byId("cancel").addEventListener("click", cancel);
byId("new").addEventListener("click", () => active || renew());
byId("leave").addEventListener("click", () => {
  edited = null;
  byId("question").value = "";
  label();
  byId("question").focus();
});
document.addEventListener("click", jump);
drawAnswer(null, actions);
history.draw();
byId("question").focus();
server.takeToken();
boot();
