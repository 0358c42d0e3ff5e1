/** The documents of the index: listed, uploaded, and removed. */

import { byId, element, fill, put, show } from "./dom.js";
import * as server from "./server.js";
import { count } from "./words.js";

/** The list beside the page; it stays hidden where the server manages no documents. */
export class Library {
  /** @param {(path: string) => void} open called with the document that was chosen */
  constructor(open) {
    Object.assign(this, { open, paths: new Set(), told: null });
    this.status = element("p.hint", { id: "adding", role: "status" });
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

  #draw() {
    const open = byId("library").querySelector("details")?.open;
    const { files, edits, accepted } = this.told;
    const input = element("input", {
      id: "upload", type: "file", multiple: true, accept: accepted.join(","), onchange: () => this.add(input.files),
    });
    put(
      byId("library"),
      element("h2", { id: "library-title" }, "Documents"),
      edits && element("div.adding", element("label", { for: "upload" }, "Add documents"), input),
      this.status,
      element(
        "details", { open: open ?? files.length <= 20 },
        element("summary", count(files.length, "document")), fill(element("ol.files"), files, (file) => this.#entry(file)),
      ),
    );
  }

  #entry({ name, path, title, chunks, uploaded }) {
    const told = [title === name ? "" : title, count(chunks, "passage"), uploaded ? "uploaded" : ""].filter(Boolean).join(" · ");
    const sure = uploaded ? `Delete ${name} for good?` : `Take ${name} out of the index?`;
    const onclick = async () => {
      if (!confirm(sure)) return;
      const problem = await problemOf(server.removeDocument(path));
      await this.load();
      this.status.textContent = problem || `${name} was deleted.`;
    };
    const remove = this.told.edits && element("button.plain.remove", { onclick, "aria-label": `Delete ${name}` }, "Delete");
    return element("li", element("button.plain", { onclick: () => this.open(path) }, name), element("span.told", told), remove);
  }

  /** Upload files one after the other, and say what became of each. */
  async add(files) {
    const problems = [];
    for (const file of [...files]) {
      this.status.textContent = `Indexing ${file.name}…`;
      const isTooLarge = file.size > this.told.most_bytes;
      if (isTooLarge) problems.push(`${file.name} has more than ${this.told.most_bytes.toLocaleString("en")} bytes.`);
      else problems.push(await problemOf(server.addDocument(file)));
    }
    await this.load();
    this.status.textContent = problems.filter(Boolean).join(" ") || `${count(problems.length, "document")} added.`;
  }
}

/** Wait for the server; return what went wrong, if anything. */
async function problemOf(work) {
  try {
    await work;
  } catch (error) {
    server.expected(error);
    return error.message;
  }
  return "";
}

/** The path of a file, without what names a part of it. */
const withoutPart = (source) => (source?.includes("#") ? source.slice(0, source.lastIndexOf("#")) : source);
