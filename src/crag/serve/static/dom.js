/** Elements without HTML: all text is set as text, and links lead only to web pages. */

/**
 * Make an element.
 * @param {string} name a tag, with its class after a dot, such as "p.hint"
 * @param {object} [attributes] `on…` listeners, properties of `data`, everything else as attributes;
 *   null, undefined and false leave an attribute out
 * @param {...(Node|string|number|null|undefined|false)} children
 */
export function element(name, ...children) {
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag);
  if (classes.length) made.className = classes.join(" ");
  if (tag === "button") made.type = "button"; // Unless the attributes say otherwise.
  for (const [key, value] of Object.entries(attributes)) set(made, key, value);
  return put(made, ...children);
}

/** Give an element other children, as above: what is null, undefined, false or 0 is none. */
export function put(holder, ...children) {
  holder.replaceChildren(...children.filter((child) => child || child === ""));
  return holder;
}

function set(made, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
  else if (key === "data") Object.assign(made.dataset, value);
  else made.setAttribute(key, value === true ? "" : value);
}

/** Make an SVG element; children as above. */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return the address if it is one of the web, else an empty text. */
export function webAddress(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:"].includes(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}

/** Make a link to a page of the web; what has another address becomes text. */
export function link(address, label) {
  const href = webAddress(address);
  if (!href) return element("span", label);
  return element("a", { href, rel: "noopener noreferrer", target: "_blank" }, label);
}

const LONGEST = 3000;

/** Put text on the page; of a very long one the beginning, and a button for the rest. */
export function longText(text, name = "span", drawnAs = (words) => [words]) {
  if (text.length <= LONGEST) return element(name, ...drawnAs(text));
  const holder = element(name, ...drawnAs(`${text.slice(0, LONGEST)}… `));
  const label = `Show all ${text.length.toLocaleString("en")} characters`;
  const more = element("button.plain", { onclick: () => holder.replaceChildren(...drawnAs(text)) }, label);
  holder.append(more);
  return holder;
}

const AT_ONCE = 100;

/**
 * Fill a list with at most a hundred entries at once, and a button for the next hundred.
 * @param {HTMLElement} list
 * @param {Array} items
 * @param {(item: any, index: number) => Node} make
 * @param {number} reach how many entries have to be there from the start
 */
export function fill(list, items, make, reach = 0) {
  list.replaceChildren();
  extend(list, items, make, 0, Math.max(AT_ONCE, reach));
}

function extend(list, items, make, from, to) {
  list.append(...items.slice(from, to).map((item, offset) => make(item, from + offset)));
  if (to >= items.length) return;
  const next = Math.min(AT_ONCE, items.length - to);
  const onclick = () => {
    const before = list.children.length - 1;
    more.remove();
    extend(list, items, make, to, to + AT_ONCE);
    list.children[before].tabIndex = -1;
    list.children[before].focus();
  };
  const label = `Show the next ${next} of ${items.length.toLocaleString("en")}`;
  const more = element("li.more", element("button.plain", { onclick }, label));
  list.append(more);
}

/** Show or hide an element. */
export function show(shown, visible) {
  shown.hidden = !visible;
}

export const byId = (id) => document.getElementById(id);
