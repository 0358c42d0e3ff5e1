/** What went wrong or was decided, what a run has spent, and the whole of it to keep. */

import { byId, element, fill, longText, put, show } from "./dom.js";
import { trace } from "./run.js";
import { eventWords, seconds, spelled } from "./words.js";

/** Draw the events of a run in plain words. */
export function drawEvents(run) {
  const { events = [] } = run.values;
  const section = byId("events");
  show(section, events.length > 0);
  const list = element("ol.events");
  fill(list, events, ({ kind, node, detail, fallback }) => element(
    "li",
    element("strong", eventWords(kind)),
    element("span.where", ` at ${node}`),
    element("p", longText(detail)),
    fallback && element("p.fallback", `So: ${fallback}.`),
  ));
  section.replaceChildren(element("h2", { id: "events-title" }, "What happened on the way"), list);
}

/** Draw what a run has spent, with a button to keep its trace. */
export function drawNumbers(run) {
  const section = byId("numbers");
  const { usage = {}, knowledge } = run.values;
  show(section, run.phase !== "running" && Object.keys(run.values).length > 0);
  if (section.hidden) return;
  const spent = Object.entries(usage).filter(([, number]) => number);
  const time = run.ended ? [["time", seconds(run.ended - run.started)]] : [];
  const entries = [...time, ...spent.map(([name, number]) => [spelled(name), figure(number)])];
  put(
    section,
    element("h2", { id: "numbers-title" }, "The whole trace"),
    element("dl.numbers", ...entries.map(([name, told]) =>
      element("div", element("dt", name), element("dd", told)))),
    timesOf(run),
    knowledge && given(knowledge),
    element("button", { onclick: () => download(run) }, "Download the trace as JSON"),
  );
}

/** Write a count, or a sum of money, which may be very small. */
const figure = (number) => number.toLocaleString("en", Number.isInteger(number) ? {} : { maximumSignificantDigits: 3 });

/** How long each node took, the longest first. */
function timesOf(run) {
  const steps = run.steps.filter(({ id, ended }) => ended !== null && !run.outer.has(id));
  const sums = new Map();
  for (const { node, started, ended } of steps) sums.set(node, (sums.get(node) ?? 0) + ended - started);
  const rows = [...sums].sort(([, one], [, other]) => other - one).map(([node, took]) =>
    element("div", element("dt", spelled(node.replace(":", ": "))), element("dd", seconds(took))));
  return element("details.times", element("summary", "Time by node"), element("dl.numbers", ...rows));
}

function given(knowledge) {
  const text = longText(knowledge, "p");
  text.classList.add("whole");
  return element("details", element("summary", "What the model was given, under its own numbers"), text);
}

/** Hand the trace to the browser as a file. */
function download(run) {
  const text = JSON.stringify(trace(run), null, 2);
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: `crag-${run.thread.slice(0, 8) || "trace"}.json` }).click();
  URL.revokeObjectURL(address);
}
