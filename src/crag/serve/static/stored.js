/** What the browser keeps for the next visit; where it may keep nothing, it lasts as long as the page. */

/** Keep a text under a name. */
export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Storage is forbidden, or full.
  }
}

/** Return the text under a name, or null. */
export function recall(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
