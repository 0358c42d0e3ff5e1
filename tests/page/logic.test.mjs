/* What the page computes, without a browser: `python -m pytest tests/page/test_logic.py`. */

import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

const load = (name) => import(pathToFileURL(join(process.env.PAGE, name)).href);

const { atSpans } = await load("answer.js");
const { cited, quotations } = await load("citations.js");
const { lineage } = await load("history.js");
const { layout } = await load("layout.js");
const { numbered } = await load("passages.js");
const { begin, close, kept, restart, resume, take } = await load("run.js");
const { eventsOf } = await load("server.js");
const { cut, lineNumbers, placeOf, placesOf } = await load("source.js");
const { placeNamer } = await load("sources.js");
const { score } = await load("words.js");

const drawing = JSON.parse(process.env.DRAWING);

async function all(chunks) {
  const body = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const found = [];
  for await (const event of eventsOf(body)) found.push(event);
  return found;
}

test("events are read however the stream is cut, within a letter too", async () => {
  const bytes = new TextEncoder().encode(
    'event: tasks|web:1\r\ndata: {"text":"größer → ✓"}\r\n\r\n: a comment\n\ndata: one\ndata: two\n\n',
  );
  const expected = [
    { event: "tasks|web:1", data: '{"text":"größer → ✓"}' },
    { event: "message", data: "one\ntwo" },
  ];
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const chunks = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.slice(at, at + size));
    assert.deepEqual(await all(chunks), expected);
  }
});

const started = (id, name, space = "") => ({ event: `tasks${space}`, data: { id, name, input: {} } });
const finished = (id, name, result, space = "") => ({
  event: `tasks${space}`, data: { id, name, result, error: null, interrupts: [] },
});
const usage = (calls) => ({ llm_calls: calls });
const event = (kind) => ({ kind, node: "rewrite", detail: "", fallback: "" });
const end = (waits = false) => ({ event: "end", data: { checkpoint: "c1", waits } });

function told(...parts) {
  const run = begin({ question: "Why?", graph: "crag" }, 0);
  parts.forEach((part, at) => take(run, part, 10 * (at + 1)));
  return run;
}

test("a graph within tells its events and counts once, and what is opened anew is cleared", () => {
  const cleared = { type: "__overwrite__", value: [] };
  const strip = (kind, text) => ({ kind, text });
  const run = told(
    { event: "thread", data: "t1" },
    started("o", "open_run"),
    finished("o", "open_run", { question: "Why?", events: cleared, strips: cleared, reflection: null }),
    started("r", "refine"),
    finished("r", "refine", { strips: [strip("document", "a")], reflection: { choices: [1] } }),
    started("a", "web"),
    started("b", "select", "|web:a"),
    finished("b", "select", { strips: [strip("web", "b")], events: [event("rewrite_skipped")], usage: usage(1) }, "|web:a"),
    finished("a", "web", { strips: [strip("web", "b")], events: [event("rewrite_skipped")], usage: usage(1) }),
    started("c", "generate"),
    finished("c", "generate", { answer: "A [1].", outcome: "likely", events: [event("own_knowledge")], usage: usage(1), reflection: { answer: "A" } }),
    end(),
  );
  assert.deepEqual([run.thread, run.checkpoint, run.phase], ["t1", "c1", "likely"]);
  assert.deepEqual(run.values.events.map((one) => one.kind), ["rewrite_skipped", "own_knowledge"]);
  assert.deepEqual(run.values.usage, { llm_calls: 2 });
  assert.deepEqual(run.values.strips.map(({ text }) => text), ["a", "b"]);
  assert.deepEqual(run.values.reflection, { choices: [1], answer: "A" });
  assert.deepEqual(run.steps.map((step) => step.node), ["open_run", "refine", "web", "web:select", "generate"]);
});

test("a run waits for a human, goes on, and keeps what had been done before", () => {
  const asked = { kind: "confirm_web", query: "q" };
  const waits = { id: "f", name: "confirm_search", result: {}, error: null, interrupts: [{ value: asked }] };
  const run = told(
    started("r", "refine"), finished("r", "refine", { strips: [] }),
    started("w", "web"), started("f", "confirm_search", "|web:w"), { event: "tasks|web:w", data: waits }, end(true),
  );
  assert.equal(run.phase, "waiting");
  assert.deepEqual(run.asked, asked);
  resume(run);
  for (const part of [started("r", "refine"), started("w", "web"), started("f", "confirm_search", "|web:w")]) take(run, part, 70);
  assert.equal(run.steps.find((step) => step.node === "refine").state, "done");
  assert.equal(run.steps.find((step) => step.node === "web:confirm_search").state, "running");
  close(run, "cancelled", 80);
  assert.equal(run.steps.find((step) => step.node === "web:confirm_search").state, "cancelled");
});

test("only what the last node says is the draft of the answer, and a second reply takes its place", () => {
  const chunk = (id, content) => ({ type: "AIMessageChunk", id, content });
  const from = (node) => ({ langgraph_node: node });
  const run = told(
    { event: "messages|web:1", data: [chunk("0", "query"), from("rewrite")] },
    { event: "messages", data: [chunk("1", "[4]"), from("generate")] },
    { event: "messages", data: [chunk("2", "An "), from("generate")] },
    { event: "messages", data: [chunk("2", [{ type: "text", text: "answer" }]), from("generate")] },
    { event: "messages", data: [{ type: "ai", content: "An answer, whole" }, from("generate")] },
  );
  assert.equal(run.draft, "An answer");
  restart(run);
  assert.deepEqual([run.draft, run.steps, run.values, run.phase], ["", [], {}, "running"]);
});

test("every end is told apart", () => {
  const failed = (error) => told(started("a", "retrieve"), { event: "error", data: { error, message: "why" } });
  assert.deepEqual([failed("QuestionError").phase, failed("QuestionError").problem], ["failed", "why"]);
  assert.equal(failed("replaced").phase, "cancelled");
  assert.equal(failed("replaced").steps[0].state, "cancelled");
  for (const outcome of ["answered", "likely", "not_found", "nothing_asked"]) {
    const turn = { checkpoint: "c", parent: null, values: { asked: "Why?", outcome }, interrupts: [] };
    assert.equal(kept(turn, { thread: "t", graph: "crag" }).phase, outcome);
  }
  const waiting = kept({ checkpoint: "c", parent: null, values: {}, interrupts: [{ query: "q" }] }, {});
  assert.deepEqual([waiting.phase, waiting.asked], ["waiting", { query: "q" }]);
});

test("a node that had nothing to do is told apart from one that did", () => {
  const web = (name, result) => told(
    started("a", "retrieve"), finished("a", "retrieve", { question: "Why?" }),
    started("s", name, "|web:w"), finished("s", name, result, "|web:w"),
  ).steps.at(-1).state;
  assert.equal(web("rewrite", { query: "Why?", usage: {} }), "passed");
  assert.equal(web("rewrite", { query: "why", usage: {} }), "done");
  assert.equal(web("search", { pages: [], usage: {} }), "passed");
  assert.equal(web("search", { pages: [], usage: { searches: 1 } }), "done");
  assert.equal(web("select", { strips: [] }), "passed");
});

test("a conversation is the way to its newest turn, and what waited is shown once", () => {
  const turn = (checkpoint, parent, interrupts = []) => ({ checkpoint, parent, interrupts });
  const turns = [turn("5", "2"), turn("4", "2"), turn("3", "1"), turn("2", "1", ["asks"]), turn("1", null)];
  const names = (path) => path.map(({ checkpoint }) => checkpoint);
  assert.deepEqual(names(lineage(turns)), ["1", "5"]);
  assert.deepEqual(names(lineage(turns.slice(3))), ["1", "2"]);
  assert.deepEqual(lineage([]), []);
});

test("a rounded score stands on the right side of its limit", () => {
  assert.equal(score(0.5), "+0.50");
  assert.equal(score(0.4999, [-0.9, 0.5]), "+0.4999");
  assert.equal(score(0.496, [0.5]), "+0.496");
  assert.equal(score(-0.9, [-0.9, 0.5]), "−0.90");
  assert.equal(score(0.595, [0.595]), "+0.595");
  assert.equal(score(null), "none");
});

test("citations are numbered anew, in the order of the answer", () => {
  const values = { answer: "A [4]. B [2, 4]; [9].", citations: [{ number: 2, text: "b" }, { number: 4, text: "a" }] };
  assert.deepEqual(cited(values), {
    of: values.answer, answer: "A [1]. B [2, 1]; [9].",
    citations: [{ number: 1, text: "a" }, { number: 2, text: "b" }],
  });
  assert.deepEqual(cited({ answer: "A [7].", citations: [{ number: 7 }] }).answer, "A [1].");
  assert.equal(cited({}).answer, "");
});

test("the answer itself is set off within a quotation, once", () => {
  assert.deepEqual(atSpans("In 1815, in London, in 1815.", ["London", "1815"]), ["In 1815, in ", "London", ", in ", "1815", "."]);
  assert.deepEqual(atSpans("nothing", ["1815"]), ["nothing"]);
  assert.deepEqual(atSpans("", []), [""]);
});

test("a quotation is found in its file, whatever the white space", () => {
  const text = "One.\nTwo words,\n  and (more).\nTwo words, and (more).";
  assert.deepEqual(placeOf("words, and (more)", text, 0), [9, 28]);
  assert.deepEqual(placeOf("words, and (more)", text, 12), [34, 51]);
  assert.equal(placeOf("nowhere", text, 0), null);
  assert.equal(placeOf(" ", text, 0), null);
  assert.deepEqual(lineNumbers("10-12 30"), [10, 11, 12, 30]);
  assert.deepEqual(cut("abcdef", 10, [[14, 99], [11, 12]]), ["a", "b", "cd", "ef", ""]);
  assert.deepEqual(cut("abc", 10, [[0, 5]]), ["abc"]);
  const quoted = { text: "😀 Two words, and (more).", quotes: [{ start: 2, end: 12, span: [6, 11] }] };
  assert.deepEqual(placesOf(quoted, text, 0), { ranges: [[5, 15]], focus: 9 });
  assert.deepEqual(placesOf({ text: "(more)" }, text, 30), { ranges: [[45, 51]], focus: 45 });
  assert.deepEqual(placesOf({ text: "gone" }, text, 3), { ranges: [], focus: 3 });
});

test("an answer is cut at its quotations, whatever stands within them", () => {
  const cuts = (answer) => quotations(answer).map(({ words, marks }) => words + marks);
  assert.deepEqual(cuts("“a `b” [1] “c` d” [2]"), ["a `b[1]", "c` d[2]"]);
  assert.deepEqual(cuts("Close:\n\n“\n```\nx\n” [3]\n\n“y” [4][5]"), ["Close:\n\n", "\n```\nx\n[3]", "y[4][5]"]);
  assert.deepEqual(cuts("Ada said “so” [1]."), ["Ada said “so” [1]."]);
  assert.deepEqual(cuts("Ada said “so” [1]"), ["Ada said “so” [1]"]);
  assert.deepEqual(cuts("“open"), ["“open"]);
  assert.deepEqual(cuts(""), []);
});

test("a citation leads to the first kept strip of its text and source", () => {
  const strip = (text, id, kept) => ({ text, kept, source: { id } });
  const strips = [strip("a", "1", false), strip("a", "2", true), strip("a", "1", true), strip("a", "1", true)];
  const found = numbered(strips, [{ number: 4, text: "a", source: { id: "1" } }, { number: 5, text: "b", source: { id: "1" } }]);
  assert.deepEqual([...found], [[strips[2], 4]]);
});

test("files are named by their place in the folder that was indexed", () => {
  const documents = ["/home/me/docs/a.md", "/home/me/docs/b/c.md", "https://example.org/d"].map((source) => ({ metadata: { source, root: "/home/me/docs" } }));
  const name = placeNamer(documents);
  assert.equal(name("/home/me/docs/b/c.md", "line 3"), "b/c.md, line 3");
  assert.equal(name("https://example.org/d", ""), "https://example.org/d");
  const upload = "/home/me/.crag/index-uploads/a.md";
  assert.equal(placeNamer([{ metadata: { source: upload, root: upload } }])(upload, ""), "a.md");
  assert.equal(placeNamer([{ metadata: { source: upload } }])(upload, ""), "a.md");
  assert.equal(placeNamer([{ metadata: null }, {}])("x", "page 1"), "x, page 1");
});

const inside = (node, box) =>
  node.x >= 0 && node.y >= 0 && node.x + node.width <= box.width && node.y + node.height <= box.height;
const apart = (one, other) =>
  one.x + one.width <= other.x || other.x + other.width <= one.x
  || one.y + one.height <= other.y || other.y + other.height <= one.y;

test("every graph is laid out without overlap", () => {
  for (const [name, graph] of Object.entries(drawing)) {
    const placed = layout(graph);
    assert.equal(placed.nodes.length, graph.nodes.length);
    placed.nodes.forEach((node, at) => {
      assert.ok(inside(node, placed), `${name}: ${node.id}`);
      for (const other of placed.nodes.slice(at + 1)) assert.ok(apart(node, other), `${name}: ${node.id}, ${other.id}`);
    });
    const at = new Map(placed.nodes.map((node) => [node.id, node.x]));
    for (const { source, target, back } of placed.edges) assert.ok(back || at.get(source) < at.get(target));
  }
});
