/** Markdown as elements, parsed by marked. No HTML: tags stay text, and links lead to web pages only. */

import { MARK } from "./citations.js";
import { element, link } from "./dom.js";
import { Lexer, Tokenizer } from "./marked.js";

const LONGEST = 20_000;
const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi;
const NAMED = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00A0" };
const CLOSED = /^ {0,3}(`{3,}|~{3,})[^]*\n {0,3}\1[`~]*\s*$/;

/** Reads tags and definitions of links as text: what follows them would not be seen. */
class Reading extends Tokenizer {
  html() {}
  tag() {}
  def() {}

  /** A block that nobody closes would take the citations after it along. */
  fences(text) {
    const block = super.fences(text);
    return block && !CLOSED.test(block.raw) && MARK.test(block.text) ? undefined : block;
  }
}

/**
 * Draw a text.
 * @param {string} text
 * @param {(words: string) => (Node|string)[]} say draws plain words, such as those with citations
 * @returns {Node[]} blocks
 */
export function markdown(text, say = (words) => [words]) {
  if (text.length > LONGEST) return [element("p", ...say(text))];
  let tokens;
  try {
    tokens = new Lexer({ gfm: true, tokenizer: new Reading() }).lex(text);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [element("p", ...say(text))]; // Nested deeper than the parser follows.
  }
  return tokens.flatMap((token) => block(token, say));
}

function block(token, say) {
  const { type, text, tokens = [] } = token;
  const all = () => tokens.flatMap((one) => block(one, say));
  if (["space", "checkbox"].includes(type)) return type === "space" ? [] : [token.checked ? "☑ " : "☐ "];
  if (type === "code") return [element("pre", element("code", text))];
  if (type === "hr") return [element("hr")];
  if (type === "heading") return [element("p.heading", ...inline(tokens, say))];
  if (type === "blockquote") return [element("blockquote", ...all())];
  if (type === "list") return [list(token, say)];
  if (type === "table") return [table([token.header, ...token.rows].map((row) => row.map((cell) => cell.tokens)), say)];
  if (type === "text") return inline(tokens.length ? tokens : [token], say);
  return [element("p", ...inline(tokens, say))];
}

function list({ ordered, start, items }, say) {
  const made = items.map((item) => element("li", ...item.tokens.flatMap((one) => block(one, say))));
  return element(ordered ? "ol.listed" : "ul.listed", ordered && start !== 1 ? { start } : {}, ...made);
}

function table(rows, say) {
  const made = rows.map((row, at) =>
    element("tr", ...row.map((tokens) => element(at ? "td" : "th", ...inline(tokens, say)))));
  return element("div.scrolls", { tabindex: "0", role: "group", "aria-label": "Table" }, element("table", element("tbody", ...made)));
}

const inline = (tokens, say) => tokens.flatMap((token) => part(token, say));

function part({ type, raw, text = raw, href, tokens, checked }, say) {
  const within = () => (tokens ? inline(tokens, say) : say(plain(text)));
  if (type === "escape") return [text];
  if (type === "br") return [element("br")];
  if (type === "checkbox") return [checked ? "☑ " : "☐ "];
  if (type === "codespan") return [element("code", text)];
  if (type === "link" && !MARK.test(text)) return [link(href, plain(text))];
  if (["strong", "em", "del"].includes(type)) return [element(type, {}, ...within())];
  return within();
}

const plain = (text) => text.replace(/\n/g, " ").replace(ENTITY, (whole, decimal, hex, name) => {
  if (name) return NAMED[name.toLowerCase()];
  const code = decimal ? Number(decimal) : parseInt(hex, 16);
  return code > 0 && code < 0x110000 ? String.fromCodePoint(code) : whole;
});
