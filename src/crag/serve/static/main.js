/** The page: asks, follows what it asked, and shows the conversation. */

import { byId, element, put, show } from "./dom.js";
import { History, lineage } from "./history.js";
import { Library } from "./library.js";
import { begin, close, isEnded, kept, restart, resume, take } from "./run.js";
import * as server from "./server.js";
import { Settings } from "./settings.js";
import { openSource } from "./source.js";
import { linked } from "./sources.js";
import { spoken, Turn } from "./turn.js";
import { spelled } from "./words.js";

const GONE = "The server no longer has this conversation. Asked again, the question begins a new one.";
const PAUSES = [1, 2, 4, 8, 16];
/** Seconds between the tries to go on after a connection broke. */

const otherTabs = new BroadcastChannel("crag");
const offered = new Map();
const library = new Library((path, citation = null) => openSource(path, citation, library.nameOf(path)));
const settings = new Settings(() => byId("question").focus());
const history = new History({ open: openThread, deleted }, graphName);
let first = {};
let conversation = { thread: null, graph: "", turns: [], kept: [] };
let edited = null;
let active = null;

const chosen = () => byId("graphs").value;
function graphName(name) {
  return offered.get(name)?.title ?? spelled(name);
}

/** What can be done with a turn. */
const actions = (turn) => ({
  ask: (question, run) => ask(question, run),
  edit,
  decide: (reply) => decide(turn, reply),
  reading: { open: library.open, has: (source) => library.has(source) },
});

/** Ask the server what it offers, and show what the address names. */
async function boot() {
  show(byId("notice"), false);
  try {
    first = await server.offered();
    for (const graph of first.graphs) offered.set(graph.name, graph);
  } catch (error) {
    server.expected(error);
    return error.status === 401 ? askToken(error.message) : notice(error.message, boot);
  }
  const wanted = new URLSearchParams(location.search);
  const name = wanted.get("graph") ?? "crag";
  put(byId("graphs"), ...[...offered.keys()].map((one) => element("option", { value: one }, graphName(one))));
  if (!offered.has(name)) notice(`There is no graph “${name}” on this server; it has ${[...offered.keys()].join(", ")}.`);
  choose(offered.has(name) ? name : [...offered.keys()][0]);
  byId("question").value ||= wanted.get("question") ?? "";
  await Promise.all([history.load(), library.load()]);
  drawConversation();
  if (wanted.has("source")) library.open(wanted.get("source"), linked(location.hash));
  return wanted.has("thread") && openThread(wanted.get("thread"), false);
}

/** Ask for the token where the address has none, or an old one. */
function askToken(message) {
  const field = element("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const onsubmit = (event) => {
    event.preventDefault();
    server.useToken(field.value);
    boot();
  };
  put(byId("notice"), element(
    "form.token", { onsubmit },
    element("p", message),
    element("label", { for: "token" }, "Token, or the whole address that crag serve printed"),
    field,
    element("button.primary", { type: "submit" }, "Use it"),
  ));
  show(byId("notice"), true);
  field.focus();
}

/** Say what is wrong, with a way to try again. */
function notice(message, again) {
  put(byId("notice"), element("span", message), again && element("button", { onclick: again }, "Try again"));
  show(byId("notice"), true);
}

/** Take another graph for the next question. */
function choose(name) {
  byId("graphs").value = name;
  const { description, settings: schema } = offered.get(name);
  settings.use(schema ?? {});
  byId("graphs").title = description;
  drawForm();
}

const newTurn = (run) => new Turn(run, offered.get(run.graph)?.drawing, actions);
const isIn = (run) => conversation.turns.findIndex((turn) => turn.run === run);

/**
 * Ask the chosen graph: a follow-up in the conversation that is shown, if it is one of that graph.
 * @param {string} question
 * @param {object|null} instead the run whose place the question takes, with all that came after it
 */
async function ask(question, instead = edited) {
  if (active || !offered.size || !question.trim()) return;
  show(byId("notice"), false);
  const graph = chosen();
  const goesOn = conversation.graph === graph && conversation.turns.length > 0;
  const at = goesOn && instead ? isIn(instead) : -1;
  const before = !goesOn ? [] : at < 0 ? conversation.turns : conversation.turns.slice(0, at);
  // The first question asked anew begins a conversation of its own, so that nothing answered is lost.
  const thread = goesOn && (before.length || !instead?.checkpoint) ? conversation.thread : null;
  const previous = thread && before.findLast(({ run }) => run.checkpoint && run.phase !== "waiting");
  const parent = previous?.run.checkpoint ?? null;
  const run = begin({ question: question.trim(), graph, settings: settings.context(), thread, parent }, Date.now());
  const turn = newTurn(run);
  conversation = { thread, graph, turns: [...before, turn], kept: thread ? conversation.kept : [] };
  edited = null;
  byId("question").value = "";
  drawConversation();
  turn.item.scrollIntoView({ block: "start" });
  await follow(turn, { graph, thread, question: run.question, checkpoint: parent, settings: run.settings });
}

/** Go on with a run that waits for a human. */
async function decide(turn, reply) {
  if (active) return;
  const { graph, thread, settings: context } = turn.run;
  resume(turn.run);
  turn.changed();
  await follow(turn, { graph, thread, resume: reply, settings: context });
}

/** Read a run to its end, whatever end that is. */
async function follow(turn, asked) {
  const { run } = turn;
  const own = conversation;
  active = { turn, conversation: own, stopping: new AbortController() };
  drawForm();
  try {
    await read(turn, asked, active.stopping.signal);
  } catch (error) {
    if (error.name !== "AbortError") server.expected(error);
    const phase = error.name === "AbortError" ? "cancelled" : error.kind === "broken" ? "broken" : "failed";
    if (error.kind === "down") notice(error.message, boot);
    close(run, phase, Date.now(), phase === "cancelled" ? "" : error.status === 404 ? GONE : error.message);
    if (error.status === 404) own.thread = null;
  }
  active = null;
  turn.changed();
  say(run);
  if (own === conversation) address(own.thread);
  drawForm();
  requestAnimationFrame(() => turn.reveal());
  otherTabs.postMessage(own.thread);
  await history.load();
}

/** Read the events; where the connection breaks, see whether the answer was kept, and else ask again. */
async function read(turn, asked, signal) {
  const { run } = turn;
  const own = conversation;
  const known = new Set([run.checkpoint, ...own.kept.map(({ checkpoint }) => checkpoint)]);
  for (const turnOfOwn of own.turns) known.add(turnOfOwn.run.checkpoint);
  for (let tries = 0; ; tries += 1) {
    try {
      if (tries > 0) {
        await pause(PAUSES[tries - 1], signal);
        const found = await keptOf(run, known);
        if (found) return void Object.assign(run, kept(found, run), { steps: run.steps, started: run.started, ended: Date.now() });
        if (asked.question) restart(run);
      }
      for await (const part of server.ask({ ...asked, thread: run.thread }, signal)) {
        take(run, part, Date.now());
        turn.changed();
        if (part.event !== "messages") say(run);
        if (part.event === "thread") own.thread = run.thread;
        if (part.event === "thread" && own === conversation) address(own.thread);
      }
      if (run.phase !== "running") return;
      throw new server.ServerError("broken", "The stream ended before the answer did.");
    } catch (error) {
      const mayHeal = error.kind === "broken" || (error.kind === "down" && tries > 0);
      if (!mayHeal || tries === PAUSES.length) throw error;
    }
    byId("status").textContent = "The connection broke. Asking again…";
  }
}

const pause = (wait, signal) => new Promise((resolve, reject) => {
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  setTimeout(resolve, 1000 * wait);
});

/** Return the turn that the server has kept of a run, if it has; who cannot look must not ask again. */
async function keptOf({ thread, question }, known) {
  const turns = thread ? await server.turns(thread) : [];
  return turns.find(({ checkpoint, values }) => !known.has(checkpoint) && values.asked === question);
}

/** Show a conversation of the server, up to its newest turn. */
async function openThread(thread, pushes = true) {
  byId("columns").dataset.side = "folded";
  edited = null;
  if (active?.conversation.thread === thread) {
    conversation = active.conversation;
  } else {
    try {
      const turns = await server.turns(thread);
      const graph = history.graphOf(thread) ?? chosen();
      const runs = lineage(turns).map((turn) => kept(turn, { thread, graph }));
      conversation = { thread, graph, turns: runs.map(newTurn), kept: turns };
    } catch (error) {
      server.expected(error);
      return notice(error.status === 404 ? GONE : error.message);
    }
  }
  if (pushes) address(thread);
  if (offered.has(conversation.graph)) choose(conversation.graph);
  drawConversation();
  return conversation.turns.at(-1)?.item.scrollIntoView({ block: "start" });
}

/** Give the conversation that is shown its address. */
function address(thread) {
  const url = new URL(location.href);
  const before = url.searchParams.get("thread");
  url.search = thread ? new URLSearchParams({ thread }) : "";
  url.hash = "";
  if (before !== thread) window.history.pushState(null, "", url);
  history.show(thread);
}

/** Begin with nothing; a run that is under way goes on in its conversation. */
function renew() {
  conversation = { thread: null, graph: chosen(), turns: [], kept: [] };
  edited = null;
  address(null);
  drawConversation();
  byId("question").value = "";
  byId("question").focus();
}

/** Leave a conversation that was deleted, with a run of it that is under way. */
function deleted(thread) {
  if (active?.conversation.thread === thread) active.stopping.abort();
  if (conversation.thread === thread) renew();
  otherTabs.postMessage(null);
}

/** Put a question back into its field; asked again, it takes the place of the old one. */
function edit(run) {
  edited = run;
  byId("question").value = run.question;
  byId("question").focus();
  drawForm();
}

function drawConversation() {
  const { turns } = conversation;
  put(byId("turns"), ...turns.map(({ item }) => item));
  show(byId("welcome"), !turns.length);
  put(byId("lead"), first.model === undefined ? "" : connected(first));
  const examples = (library.told?.examples ?? []).filter((question) => question.endsWith("?"));
  put(byId("examples"), ...examples.map((question) => element("li", element("button", { onclick: () => ask(question) }, question))));
  drawForm();
}

/** Say in one line what answers, and whether anything leaves the machine. */
function connected({ model, web }) {
  const answers = model ? `${model} writes the answers` : "Answers are quoted from your documents; no model writes them";
  return `${answers}. ${web ? `${web} is searched where they do not suffice` : "The web is not searched"}.`;
}

/** Say what the form asks, and switch between asking and cancelling without losing the focus. */
function drawForm() {
  const goesOn = conversation.turns.length > 0 && conversation.graph === chosen();
  const waits = conversation.turns.at(-1)?.run.phase === "waiting";
  const lost = document.activeElement === byId("cancel") && !active;
  byId("asks").textContent = edited ? "Edit the question" : goesOn ? "Your follow-up question" : "Your question";
  show(byId("cancel"), active !== null || waits);
  byId("send").setAttribute("aria-disabled", String(active !== null));
  if (lost) byId("question").focus();
}

/** Tell screen readers how far a run is. */
function say(run) {
  if (byId("status").textContent !== spoken(run)) byId("status").textContent = spoken(run);
}

/** Stop reading, which stops the run; or leave one that waits. */
function cancel() {
  const last = conversation.turns.at(-1);
  if (active) return active.stopping.abort();
  if (last && !isEnded(last.run)) close(last.run, "cancelled", Date.now());
  last?.changed();
  return drawForm();
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
byId("graphs").addEventListener("change", () => choose(chosen()));
byId("cancel").addEventListener("click", cancel);
byId("new").addEventListener("click", renew);
byId("side").addEventListener("click", () => {
  const { dataset } = byId("columns");
  dataset.side = dataset.side === "open" ? "folded" : "open";
});
byId("question").addEventListener("input", ({ target }) => {
  if (target.value || !edited) return;
  edited = null; // Who empties the field leaves the question as it was.
  drawForm();
});
window.addEventListener("popstate", () => {
  const thread = new URLSearchParams(location.search).get("thread");
  return thread ? openThread(thread, false) : renew();
});
otherTabs.onmessage = async ({ data }) => {
  await history.load();
  const isKept = conversation.turns.at(-1)?.run.checkpoint;
  if (data && data === conversation.thread && !active && isKept) openThread(data, false);
};
byId("question").focus();
server.takeToken();
boot();
