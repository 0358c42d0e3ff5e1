/** What went wrong or was decided, what a run has spent, and the whole of it to keep. */

import { element, fill, longText } from "./dom.js";
import { trace } from "./run.js";
import { seconds, sentence, spelled } from "./words.js";

/** Draw the events of a run in plain words. */
export function events({ values }) {
  if (!values.events?.length) return null;
  const list = fill(element("ol.rows"), values.events, ({ kind, node, detail, fallback }) => element(
    "li",
    element("strong", sentence(spelled(kind))),
    element("span.place", ` at ${spelled(node)}`),
    element("p", longText(detail ?? "")),
    fallback && element("p.hint", `So: ${fallback}.`),
  ));
  return element("section.events", element("h3", "What happened on the way"), list);
}

/** Draw what a run has spent, with a button to keep its trace. */
export function numbers(run) {
  const { usage = {} } = run.values;
  if (run.phase === "running") return null;
  const spent = Object.entries(usage).filter(([, number]) => number);
  const time = run.started && run.ended ? [["time", seconds(run.ended - run.started)]] : [];
  const told = [...time, ...spent.map(([name, number]) => [spelled(name), number.toLocaleString("en")])];
  return element(
    "section.numbers",
    element("h3", "The whole trace"),
    element("dl", ...told.map(([name, words]) => element("div", element("dt", name), element("dd", words)))),
    element("button", { onclick: () => download(run) }, "Download the trace as JSON"),
  );
}

/** Hand the trace to the browser as a file. */
function download(run) {
  const address = URL.createObjectURL(new Blob([JSON.stringify(trace(run), null, 2)], { type: "application/json" }));
  element("a", { href: address, download: `crag-${run.thread?.slice(0, 8) || "trace"}.json` }).click();
  URL.revokeObjectURL(address);
}
