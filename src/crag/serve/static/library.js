/** The documents of the index: listed, uploaded, and removed. */

import { asksTwice, byId, element, fill, put, show } from "./dom.js";
import * as server from "./server.js";
import { count } from "./words.js";

/** The list beside the page; it stays hidden where the server manages no documents. */
export class Library {
  /** @param {(path: string) => void} open called with the document that was chosen */
  constructor(open) {
    Object.assign(this, { open, paths: new Set(), told: null });
    this.status = element("div", { id: "adding", role: "status" });
  }

  /** Whether a source can be opened. */
  has(source) {
    return this.paths.has(source) || this.paths.has(withoutPart(source));
  }

  /** What a document is called: its path within the folder that was indexed. */
  nameOf(path) {
    return this.told?.files.find((one) => [path, withoutPart(path)].includes(one.path))?.name ?? path;
  }

  /** Ask the server what is in the index. */
  async load() {
    try {
      this.told = await server.documents();
    } catch (error) {
      server.expected(error);
      this.told = null;
    }
    this.paths = new Set(this.told?.files.map(({ path }) => path));
    if (this.told) this.#draw();
    show(byId("library"), this.told);
  }

  /** Draw the list; who is in it with the keyboard stays at the same place. */
  #draw() {
    const controls = () => [...byId("library").querySelectorAll("button, input, summary")];
    const focused = controls().indexOf(document.activeElement);
    const open = byId("library").querySelector("details")?.open;
    const { files, uploads, accepted } = this.told;
    const input = element("input", {
      id: "upload", type: "file", multiple: true, accept: accepted.join(","), onchange: () => this.add(input.files),
    });
    put(
      byId("library"),
      element("h2", { id: "library-title" }, "Documents"),
      uploads && element("div.adding", element("label", { for: "upload" }, "Add documents"), input),
      this.status,
      element(
        "details", { open: open ?? files.length <= 20 },
        element("summary", count(files.length, "document")), fill(element("ol.files"), files, (file) => this.#entry(file)),
      ),
    );
    if (focused >= 0) (controls()[focused] ?? controls().at(-1)).focus();
  }

  #entry({ name, path, title, chunks, uploaded }) {
    const told = [title === name ? "" : title, count(chunks, "passage"), uploaded ? "uploaded" : ""].filter(Boolean).join(" · ");
    const sure = uploaded ? "Delete it for good?" : "Take it out of the index?";
    const act = async () => {
      const problem = await this.#work(`Deleting ${name}`, () => server.removeDocument(path));
      this.#say(problem || `${name} was deleted.`);
    };
    const remove = this.told.edits && asksTwice({ label: "Delete", sure, name, act });
    return element("li", element("button.plain", { onclick: () => this.open(path) }, name), element("span.told", told), remove);
  }

  /** Upload files one after the other, and say what became of each. */
  async add(files) {
    const problems = [];
    for (const file of [...files]) {
      const problem = file.size > this.told.most_bytes
        ? `${file.name} has more than ${this.told.most_bytes.toLocaleString("en")} bytes.`
        : await this.#work(`Indexing ${file.name}`, () => server.addDocument(file));
      if (problem) problems.push(problem);
    }
    this.#say(problems.join(" ") || `${count(files.length, "document")} added.`);
  }

  /** Do something that takes time, with a bar; return what went wrong, if anything. */
  async #work(label, work) {
    const told = element("div", element("p.hint", `${label}…`), element("progress", { "aria-label": label }));
    this.#say("");
    this.status.append(told);
    let problem = "";
    try {
      await work();
    } catch (error) {
      server.expected(error);
      problem = error.message;
    }
    told.remove();
    await this.load();
    return problem;
  }

  /** Say something in the place of what was said before, beside the bars of what is under way. */
  #say(message) {
    this.status.querySelector(":scope > p")?.remove();
    if (message) this.status.append(element("p.hint", message));
  }
}

/** The path of a file, without what names a part of it. */
const withoutPart = (source) => (source?.includes("#") ? source.slice(0, source.lastIndexOf("#")) : source);
