/** Server-sent events, read from the body of a response. */

/**
 * Yield `{event, data}` for each event of a stream; `data` is the text as it was sent.
 * @param {ReadableStream<Uint8Array>} body
 */
export async function* eventsOf(body) {
  let event = "message";
  let data = [];
  for await (const line of linesOf(body)) {
    if (line === "") {
      if (data.length) yield { event, data: data.join("\n") };
      [event, data] = ["message", []];
    } else if (line.startsWith("event:")) {
      event = line.slice(6).trim();
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}

/** Yield the lines of a body. Only what is new is searched, so that a long line costs no more. */
async function* linesOf(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let begun = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const pieces = decoder.decode(value, { stream: !done }).split("\n");
      for (const piece of pieces.slice(0, -1)) {
        begun.push(piece);
        yield begun.join("").replace(/\r$/, "");
        begun = [];
      }
      begun.push(pieces.at(-1));
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
