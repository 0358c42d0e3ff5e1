/** The API of the server that this page came from. */

import { eventsOf } from "./sse.js";
import { keep, recall } from "./stored.js";

/** The server refused, or did not answer at all. */
export class ServerError extends Error {
  /**
   * @param {"down"|"broken"|"refused"} kind not reached, lost midway, or answered with an error
   * @param {string} message
   * @param {number} status of HTTP; 0 without an answer
   */
  constructor(kind, message, status = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

/** Throw what is not an error of the server again. */
export function expected(error) {
  if (!(error instanceof ServerError)) throw error;
}

const TOKEN = "crag-token";
let token = null;

/**
 * Take the token out of the address, so that no picture or copy of the address holds it, or the one
 * of an earlier visit. It is kept for this very server: unlike a cookie, neither a server on another
 * port nor a page of another site ever comes by it.
 */
export function takeToken() {
  const address = new URL(location.href);
  token = address.searchParams.get("token");
  if (token) keep(TOKEN, token);
  else token = recall(TOKEN);
  if (!address.searchParams.has("token")) return;
  address.searchParams.delete("token");
  history.replaceState(history.state, "", address);
}

/** Keep a token that somebody has pasted; an address that holds one will do. */
export function useToken(pasted) {
  token = /[?&]token=([^&#]+)/.exec(pasted)?.[1] ?? pasted.trim();
  keep(TOKEN, token);
}

const STREAMED = ["tasks", "messages-tuple"];

async function call(path, options = {}) {
  const headers = { ...options.headers, ...(token && { "x-api-key": token }) };
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("down", "The server does not answer.");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const text = await response.text().catch(() => "");
  let message = text;
  try {
    message = JSON.parse(text).detail ?? text;
  } catch {
    // Not JSON: a proxy's own words serve.
  }
  if (typeof message !== "string") message = JSON.stringify(message);
  return new ServerError("refused", message || `status ${response.status}`, response.status);
}

const get = async (path) => (await call(path)).json();

function post(path, body, signal, method = "POST") {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method, headers, body: JSON.stringify(body), signal });
}

/** Return the assistants that the server made of its graphs, by name. */
export async function graphs() {
  const found = await (await post("/assistants/search", { limit: 100 })).json();
  return found
    .filter((assistant) => assistant.metadata?.created_by === "system")
    .sort((one, other) => one.graph_id.localeCompare(other.graph_id));
}

export const drawing = (assistant) => get(`/assistants/${assistant}/graph?xray=1`);

/**
 * Return the JSON schema of the settings, without properties where the graph takes none, and
 * whether the graph takes a question as a message of a chat.
 */
export async function schemas(assistant) {
  const { context_schema: settings, input_schema: input } = await get(`/assistants/${assistant}/schemas`);
  return { settings: settings ?? { properties: {} }, chats: "messages" in (input?.properties ?? {}) };
}

/** Return the status that the server gives a run; one that is just ending is waited for. */
export async function statusOf(thread, run, most = 10) {
  for (let tries = most; ; tries -= 1) {
    const { status } = await get(`/threads/${thread}/runs/${run}`);
    if (!tries || !["pending", "running"].includes(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/**
 * Return what the server kept of a run, and at which checkpoint; null if it kept nothing.
 * @returns {Promise<{values: object, asked: any, checkpoint: string}|null>} `asked` is what a human
 *   was asked, null if nothing
 */
export async function kept(thread, run) {
  const wanted = { limit: 1, metadata: { run_id: run } };
  const [state] = await (await post(`/threads/${thread}/history`, wanted)).json();
  if (!state) return null;
  const interrupts = state.tasks.flatMap((task) => task.interrupts ?? []);
  const { values, checkpoint } = state;
  return { values, asked: interrupts[0]?.value ?? null, checkpoint: checkpoint.checkpoint_id };
}

const PAGE = "page";

/** Return the threads of this page's conversations, the latest first. */
export async function threads() {
  const wanted = { metadata: { shown_by: PAGE }, limit: 50, sort_by: "updated_at", sort_order: "desc" };
  return (await post("/threads/search", { ...wanted, select: ["thread_id", "metadata"] })).json();
}

/** Keep conversations with their thread. */
export const describe = (thread, conversations) =>
  post(`/threads/${thread}`, { metadata: { shown_by: PAGE, conversations } }, undefined, "PATCH");

/** Delete a thread with all its runs. */
export const removeThread = (thread) => call(`/threads/${thread}`, { method: "DELETE" });

export async function newThread() {
  return (await (await post("/threads", {})).json()).thread_id;
}

/**
 * Start a run on a thread, or go on with it, and yield its events with parsed data.
 * A client that goes away cancels its run: nobody is left to read the answer.
 * @param {{thread?: string, graph: string, input?: object, resume?: any, context: object,
 *   checkpoint?: string}} run goes on from a checkpoint of the thread, or from its latest
 * @param {AbortSignal} signal
 */
export async function* stream({ thread, graph, input, resume, context, checkpoint }, signal) {
  const asked = resume === undefined ? { input } : { command: { resume } };
  const response = await post(`${thread ? `/threads/${thread}` : ""}/runs/stream`, {
    assistant_id: graph,
    ...asked,
    context,
    ...(checkpoint && { checkpoint: { checkpoint_id: checkpoint, checkpoint_ns: "" } }),
    stream_mode: STREAMED,
    stream_subgraphs: true,
    on_disconnect: "cancel",
    ...(thread && { multitask_strategy: "interrupt" }),  // One that was cancelled may still be ending.
  }, signal);
  try {
    for await (const { event, data } of eventsOf(response.body)) yield { event, data: JSON.parse(data) };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error instanceof SyntaxError) throw new ServerError("broken", "The stream ended within an event.");
    throw new ServerError("broken", "The connection to the server broke.");
  }
}

/** Return the names of the graphs, and what is connected. */
export const about = () => get("/about");

/** Return which strips correction dropped, shortened and added, from the states of both graphs. */
export async function compare({ strips = [] }, { strips: own = [] }) {
  return (await post("/compare", { plain: { strips }, corrected: { strips: own } })).json();
}

/** Return the files of the index, and what may be uploaded; refused where the server has none. */
export const documents = () => get("/documents");

/** Return what is being indexed now, or null. */
export const documentProgress = () => get("/documents/progress");

/** Return the text of a source of the index. */
export const source = (path) => get(`/documents/source?source=${encodeURIComponent(path)}`);

/** Return a page of a PDF as a picture with quotations marked, and how far down the first one stands. */
export async function picture(path, page, quotations) {
  const asked = new URLSearchParams([["source", path], ["page", page], ...quotations.map((words) => ["mark", words])]);
  const response = await call(`/documents/picture?${asked}`);
  return { image: await createImageBitmap(await response.blob()), marked: Number(response.headers.get("x-marked-at")) };
}

/** Upload a file, and wait until it is indexed. */
export const addDocument = (file) => call(`/documents/${encodeURIComponent(file.name)}`, {
  method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: file,
});

/** Remove a file from the index. */
export const removeDocument = (path) => call(`/documents?path=${encodeURIComponent(path)}`, { method: "DELETE" });

/** Cancel a run; one that has ended already is left as it is. */
export async function cancel(thread, run) {
  await post(`/threads/${thread}/runs/${run}/cancel?wait=0&action=interrupt`, {});
}
