/** Markdown as elements. No HTML: tags stay text, and links lead to web pages only. */

import { element, link } from "./dom.js";

const FENCE = /^\s*(`{3,}|~{3,})/;
const HEADING = /^(“?)#{1,6}\s+(.*?)\s*#*$/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)(“?)(?:[-*+]|(\d{1,4})[.)])\s+(.*)$/;
const ROW = /^\s*\|(.*)\|\s*$/;
const DASHES = /^[\s|:-]+$/;
const QUOTED = /^\s*>\s?/;
const INLINE = new RegExp([
  /\\([\\`*_{}[\]()#+.!|<>~-])/, // 1: escaped
  /(`+)(.+?)\2(?!`)/, // 2, 3: code
  /!\[([^\]]*)\]\([^)\n]*\)/, // 4: a picture, by its text
  /\[([^\]\n]+)\]\(\s*<?([^\s)>]*)[^)\n]*\)/, // 5, 6: a link
  /<(https?:\/\/[^\s>]+)>/, // 7: an address
  /\*\*(?=\S)(.+?)\*\*(?!\*)/, // 8: strong
  /(?<!\w)__(?=\S)(.+?)__(?!\w)/, // 9
  /(?<![\w*])\*(?=[^\s*])([^*\n]+?)\*(?![\w*])/, // 10: emphasis
  /(?<!\w)_(?=[^\s_])([^_\n]+?)_(?!\w)/, // 11
].map(({ source }) => source).join("|"), "s");
const LONGEST = 20_000;

/** Whether a text from this address or path is written in Markdown. */
export const isMarkdown = (address) => /\.(md|markdown|mdown|mdx|qmd|rmd)(#.*)?$/i.test(address ?? "");

/**
 * Draw a text.
 * @param {string} text
 * @param {(words: string) => (Node|string)[]} say draws plain words, such as those with citations
 * @returns {Node[]} blocks
 */
export function markdown(text, say = (words) => [words]) {
  if (text.length > LONGEST) return [element("p", {}, ...say(text))];
  const lines = text.split("\n");
  const blocks = [];
  while (lines.length) {
    if (!lines[0].trim()) lines.shift();
    else blocks.push(block(lines, say));
  }
  return blocks;
}

/** Take the lines of one block away from the front, and draw them. */
function block(lines, say) {
  const fence = FENCE.exec(lines[0]);
  if (fence) return code(lines, fence[1]);
  if (RULE.test(lines[0])) return lines.shift() && element("hr");
  const heading = HEADING.exec(lines[0]);
  if (heading) return lines.shift() && element("p.heading", {}, ...inline(heading[1] + heading[2], say));
  if (ROW.test(lines[0])) return table(taken(lines, (line) => ROW.test(line)), say);
  if (ITEM.test(lines[0])) return list(taken(lines, (line) => line.trim() && !begins(line)), say);
  if (QUOTED.test(lines[0])) {
    const quoted = taken(lines, (line) => QUOTED.test(line)).map((line) => line.replace(QUOTED, ""));
    return element("blockquote", {}, ...markdown(quoted.join("\n"), say));
  }
  const words = taken(lines, (line) => line.trim() && !begins(line) && !ITEM.test(line) && !QUOTED.test(line));
  return element("p", {}, ...inline(words.map((line) => line.trim()).join(" "), say));
}

const begins = (line) => [FENCE, HEADING, ROW, RULE].some((one) => one.test(line));

/** Take the first line, and those after it as long as they belong to it. */
function taken(lines, belongs) {
  const found = [lines.shift()];
  while (lines.length && belongs(lines[0])) found.push(lines.shift());
  return found;
}

function code(lines, fence) {
  lines.shift();
  const end = lines.findIndex((line) => line.trim().startsWith(fence));
  const body = lines.splice(0, end < 0 ? lines.length : end);
  // A quotation that ends with code has its citation behind the fence.
  const rest = (lines.shift() ?? "").trim().replace(/^[`~]+/, "").trim();
  if (rest) lines.unshift(rest);
  return element("pre", {}, element("code", {}, body.join("\n")));
}

function list(lines, say) {
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push({ deep: item[1].length > 1, number: item[3], text: item[2] + item[4] });
    else items.at(-1).text += ` ${line.trim()}`;
  }
  const made = items.map(({ deep, number, text }) => element(
    deep ? "li.deep" : "li", number ? { data: { number } } : {}, ...inline(text, say),
  ));
  return element("ul.listed", {}, ...made);
}

function table(lines, say) {
  const rows = lines.filter((line) => !DASHES.test(line)).map((line) => ROW.exec(line)[1].split(/(?<!\\)\|/));
  const cells = (row) => row.map((cell) => element("td", {}, ...inline(cell.trim(), say)));
  return element("table", {}, element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))));
}

function inline(text, say) {
  const found = INLINE.exec(text);
  if (!found) return text ? say(text) : [];
  const before = text.slice(0, found.index);
  const after = text.slice(found.index + found[0].length);
  return [...(before ? say(before) : []), ...marked(found, say), ...inline(after, say)];
}

function marked([, escaped, , codeText, picture, label, address, bare, ...emphasised], say) {
  if (escaped) return [escaped];
  if (codeText) return [element("code", {}, codeText)];
  if (picture !== undefined) return picture ? say(picture) : [];
  if (label) return [link(address, label)];
  if (bare) return [link(bare, bare)];
  const at = emphasised.findIndex((words) => words !== undefined);
  return [element(at < 2 ? "strong" : "em", {}, ...inline(emphasised[at], say))];
}
