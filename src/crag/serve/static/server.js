/** The API of the server that this page came from. */

import { keep, recall } from "./dom.js";

/** The server refused, or did not answer at all. */
export class ServerError extends Error {
  /**
   * @param {"down"|"broken"|"refused"} kind not reached, lost midway, or answered with an error
   * @param {string} message
   * @param {number} status of HTTP; 0 without an answer
   */
  constructor(kind, message, status = 0) {
    super(message);
    Object.assign(this, { kind, status });
  }
}

/** Throw what is not an error of the server again. */
export function expected(error) {
  if (!(error instanceof ServerError)) throw error;
}

const TOKEN = "crag-token";
const AS_FRAGMENT = /#token=(.+)$/;

/**
 * Take the token out of the fragment of the address, which no server ever sees, and keep it for this
 * very server: unlike a cookie, neither a server on another port nor a page of another site comes by it.
 */
export function takeToken() {
  if (!AS_FRAGMENT.test(location.hash)) return;
  useToken(location.hash);
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** Keep a token that somebody has pasted; an address that holds one will do. */
export const useToken = (pasted) => keep(TOKEN, AS_FRAGMENT.exec(pasted)?.[1] ?? pasted.trim());

async function call(path, options = {}) {
  const token = recall(TOKEN);
  const headers = { ...options.headers, ...(token && { "x-api-key": token }) };
  let response;
  try {
    response = await fetch(`/api/${path}`, { credentials: "same-origin", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("down", "The server does not answer. Is “crag serve” still running?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response) {
  const { message } = await response.json().catch(() => ({})); // A proxy may answer something else.
  const kind = response.status > 501 ? "down" : "refused"; // A proxy answers so for a server that is not there.
  return new ServerError(kind, message ?? `HTTP ${response.status}`, response.status);
}

const get = async (path) => (await call(path)).json();

/** Return the graphs, `{name, title, description, drawing, settings}`, and what is connected. */
export const offered = () => get("graphs");

/** Return the conversations, the latest first: `{thread, graph, changed, question}`. */
export const threads = () => get("threads");

/** Return the turns of a conversation, the latest first: `{checkpoint, parent, values, interrupts}`. */
export const turns = (thread) => get(`threads/${encodeURIComponent(thread)}`);

/** Delete a conversation, and stop what is being answered on it. */
export const removeThread = (thread) => call(`threads/${encodeURIComponent(thread)}`, { method: "DELETE" });

/**
 * Ask, or go on with what waits, and yield the events with parsed data. Who stops reading stops the run.
 * @param {{graph: string, thread?: string, question?: string, resume?: any, checkpoint?: string,
 *   settings: object}} asked
 * @param {AbortSignal} signal
 */
export async function* ask(asked, signal) {
  const given = Object.entries(asked).filter(([, value]) => value !== null && value !== undefined);
  const sent = JSON.stringify(Object.fromEntries(given));
  const headers = { "Content-Type": "application/json" };
  const { body } = await call("ask", { method: "POST", headers, body: sent, signal });
  try {
    for await (const { event, data } of eventsOf(body)) yield { event, data: event === "thread" ? data : JSON.parse(data) };
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("broken", "The connection to the server broke.");
  }
}

/** Yield `{event, data}` for each server-sent event; `data` is the text as it was sent. */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let [event, data, begun] = ["message", [], []];
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const [first, ...others] = part.value.split("\n"); // Only what is new is searched: a line may be long.
      begun.push(first);
      for (const next of others) {
        const line = begun.join("").replace(/\r$/, "");
        begun = [next];
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
        if (line !== "") continue;
        if (data.length) yield { event, data: data.join("\n") };
        [event, data] = ["message", []];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Return the files of the index, and what may be uploaded; refused where the server has none. */
export const documents = () => get("documents");

/** Return the text of a source of the index. */
export const source = (path) => get(`documents/source?source=${encodeURIComponent(path)}`);

/** Return a page of a PDF as a picture with quotations marked, and how far down the first one stands. */
export async function picture(path, page, quotations) {
  const marks = quotations.map((words) => ["mark", words]);
  const response = await call(`documents/picture?${new URLSearchParams([["source", path], ["page", page], ...marks])}`);
  return { image: await createImageBitmap(await response.blob()), marked: Number(response.headers.get("x-marked-at")) };
}

/** Upload a file, and wait until it is indexed. */
export const addDocument = (file) => call(`documents/${encodeURIComponent(file.name)}`, {
  method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: file,
});

/** Remove a file from the index. */
export const removeDocument = (path) => call(`documents?path=${encodeURIComponent(path)}`, { method: "DELETE" });
