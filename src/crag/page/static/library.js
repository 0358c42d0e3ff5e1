/** The documents of the index: listed, uploaded, and removed. */

import { byId, element, fill, put, show } from "./dom.js";
import * as server from "./server.js";
import { count } from "./words.js";

const EVERY = 400;

/** The list beside the page; it stays hidden where the server manages no documents. */
export class Library {
  /** @param {(path: string) => void} open called with the document that was chosen */
  constructor(open) {
    this.open = open;
    this.paths = new Set();
    this.busy = false;
  }

  /** Whether a source can be opened. */
  has(source) {
    return this.paths.has(source) || this.paths.has(source?.slice(0, source.lastIndexOf("#")));
  }

  /** Ask the server what is in the index. */
  async load() {
    try {
      this.told = await server.documents();
    } catch (error) {
      server.expected(error);
      this.paths = new Set();
      return show(byId("library"), false);
    }
    this.paths = new Set(this.told.files.map(({ path }) => path));
    this.#draw();
    return show(byId("library"), true);
  }

  /** What a document is called: its path within the folder that was indexed. */
  nameOf(path) {
    const file = path.lastIndexOf("#") < 0 ? path : path.slice(0, path.lastIndexOf("#"));
    return this.told?.files.find((one) => [path, file].includes(one.path))?.name ?? path;
  }

  #draw() {
    const { files, uploads, accepted } = this.told;
    const list = element("ol.files");
    fill(list, files, (file) => this.#entry(file));
    const input = element("input", {
      id: "upload", type: "file", multiple: true, accept: accepted.join(","), onchange: () => this.add(input.files),
    });
    const adding = element("div.adding", element("label", { for: "upload" }, "Add documents"), input);
    put(
      byId("library"),
      element("h2", { id: "library-title" }, "Documents"),
      element("p.hint", count(files.length, "document")),
      uploads && adding,
      element("div", { id: "adding", role: "status" }),
      element("details", { open: files.length <= 20 }, element("summary", "List"), list),
    );
  }

  #entry(file) {
    const { name, path, title, chunks, uploaded } = file;
    const told = [title === name ? "" : title, count(chunks, "chunk"), uploaded ? "uploaded" : ""].filter(Boolean).join(" · ");
    const remove = element("button.plain.remove", { "aria-label": `Remove ${name}`, onclick: () => this.#ask(remove, file, name) }, "Remove");
    const open = element("button.plain", { onclick: () => this.open(path) }, name);
    return element("li", open, element("span.told", told), this.told.edits && remove);
  }

  /** Remove at the second click: the first says what will be gone. */
  #ask(button, { path, uploaded }, name) {
    if (button.dataset.sure) return this.#work(`Removing ${name}`, () => server.removeDocument(path));
    button.dataset.sure = "yes";
    button.textContent = uploaded ? "Remove and delete the file?" : "Remove from the index?";
    button.setAttribute("aria-label", `${button.textContent} ${name}`);
    button.addEventListener("blur", () => this.#draw(), { once: true });
    return undefined;
  }

  /** Upload files one after the other, and say what became of each. */
  async add(files) {
    const problems = [];
    for (const file of [...files]) {
      if (file.size > this.told.most_bytes) {
        problems.push(`${file.name} has more than ${this.told.most_bytes.toLocaleString("en")} bytes.`);
        continue;
      }
      const problem = await this.#work(`Indexing ${file.name}`, () => server.addDocument(file));
      if (problem) problems.push(problem);
    }
    this.#say(problems.length ? problems.join(" ") : `${count(files.length, "document")} added.`);
  }

  /** Do something that takes time, with a bar; return what went wrong, if anything. */
  async #work(label, work) {
    if (this.busy) return "Another document is being worked on.";
    this.busy = true;
    const bar = element("progress", { "aria-label": label });
    byId("adding").replaceChildren(element("p.hint", `${label}…`), bar);
    const watch = setInterval(() => this.#follow(bar), EVERY);
    let problem = "";
    try {
      await work();
    } catch (error) {
      server.expected(error);
      problem = error.message;
    }
    clearInterval(watch);
    this.busy = false;
    await this.load();
    this.#say(problem);
    return problem;
  }

  async #follow(bar) {
    const now = await server.documentProgress().catch(() => null);
    if (!now?.total) return;
    bar.max = now.total;
    bar.value = now.done;
  }

  #say(message) {
    if (byId("adding")) put(byId("adding"), message && element("p.hint", message));
  }
}
