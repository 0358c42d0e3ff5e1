/** Elements without HTML: all text is set as text, and links lead only to web pages. */

export const byId = (id) => document.getElementById(id);

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

function set(made, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
  else if (key === "data") Object.assign(made.dataset, value);
  else made.setAttribute(key, value === true ? "" : value);
}

/** Give an element other children, as above: what is null, undefined, false or 0 is none. */
export function put(holder, ...children) {
  holder.replaceChildren(...children.filter((child) => child || child === ""));
  return holder;
}

/** Give an element other children; what somebody has opened in it, by its `data-key`, stays open. */
export function redraw(holder, ...children) {
  const details = () => [...holder.querySelectorAll("details[data-key]")];
  const open = new Map(details().map((one) => [one.dataset.key, one.open]));
  put(holder, ...children);
  for (const one of details()) one.open = open.get(one.dataset.key) ?? one.open;
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

/** Fill a list; what is out of view costs nothing, by `content-visibility` of the styles. */
export function fill(list, items, make) {
  list.append(...items.map(make));
  return list;
}

/** Show or hide an element. */
export function show(shown, visible) {
  shown.hidden = !visible;
}

/** Keep a text for the next visit; where the browser may keep nothing, it is forgotten. */
export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage is forbidden, or full.
  }
}

/** Return the text that was kept under a name, or null. */
export function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
