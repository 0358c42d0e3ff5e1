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
    this.status = element("div", { id: "adding", role: "status" });
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

  /** Draw the list; who is in it with the keyboard stays at the same place. */
  #draw() {
    const controls = () => [...byId("library").querySelectorAll("button, input, summary")];
    const focused = controls().indexOf(document.activeElement);
    const open = byId("library").querySelector("details")?.open;
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
      this.status,
      element("details", { open: open ?? files.length <= 20 }, element("summary", "List"), list),
    );
    if (focused >= 0) (controls()[focused] ?? controls().at(-1)).focus();
  }

  #entry(file) {
    const { name, path, title, chunks, uploaded } = file;
    const told = [title === name ? "" : title, count(chunks, "chunk"), uploaded ? "uploaded" : ""].filter(Boolean).join(" · ");
    const remove = element("button.plain.remove", { "aria-label": `Remove ${name}`, onclick: () => this.#ask(remove, file, name) }, "Remove");
    const open = element("button.plain", { onclick: () => this.open(path) }, name);
    return element("li", open, element("span.told", told), this.told.edits && remove);
  }

  /** Remove at the second click: the first says what will be gone. */
  async #ask(button, { path, uploaded }, name) {
    const isSure = button.dataset.sure;
    const label = (text) => {
      button.textContent = text;
      button.setAttribute("aria-label", `${text} ${name}`);
    };
    const begin = () => {
      delete button.dataset.sure;
      label("Remove");
    };
    begin();
    if (isSure) {
      const problem = await this.#work(name, `Removing ${name}`, () => server.removeDocument(path));
      return this.#say(problem || `${name} was removed.`);
    }
    button.dataset.sure = "yes";
    label(uploaded ? "Remove and delete the file?" : "Remove from the index?");
    // A click elsewhere takes it back: as it ends, or what is clicked would move away beneath it.
    return document.addEventListener("click", ({ target }) => target === button || begin(), { once: true, capture: true });
  }

  /** Upload files one after the other, and say what became of each. */
  async add(files) {
    const problems = [];
    for (const file of [...files]) {
      if (file.size > this.told.most_bytes) {
        problems.push(`${file.name} has more than ${this.told.most_bytes.toLocaleString("en")} bytes.`);
        continue;
      }
      const problem = await this.#work(file.name, `Indexing ${file.name}`, () => server.addDocument(file));
      if (problem) problems.push(problem);
    }
    this.#say(problems.length ? problems.join(" ") : `${count(files.length, "document")} added.`);
  }

  /** Do something that takes time, with a bar; return what went wrong, if anything. */
  async #work(name, label, work) {
    const bar = element("progress", { "aria-label": label });
    const told = element("div", element("p.hint", `${label}…`), bar);
    this.#say("");
    this.status.append(told);
    const watch = setInterval(() => this.#follow(name, bar), EVERY);
    let problem = "";
    try {
      await work();
    } catch (error) {
      server.expected(error);
      problem = error.message;
    }
    clearInterval(watch);
    told.remove();
    await this.load();
    return problem;
  }

  async #follow(name, bar) {
    const now = await server.documentProgress().catch(() => null);
    if (!now?.total || now.file !== name) return;
    bar.max = now.total;
    bar.value = now.done;
  }

  /** Say something in the place of what was said before, beside the bars of what is under way. */
  #say(message) {
    this.status.querySelector(":scope > p")?.remove();
    if (message) this.status.append(element("p.hint", message));
  }
}
