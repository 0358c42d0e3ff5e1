/** The settings of a run as a form, made from the schema that the server validates them by. */

import { byId, element, show } from "./dom.js";
import { count, spelled } from "./words.js";

const LEVELS = { basic: "Basic", advanced: "Advanced", ablations: "Ablations of the papers" };

/**
 * Read one property of a JSON schema.
 * @returns {{name: string, title: string, group: string, level: string, about: string, kind: string, nullable: boolean,
 *   options?: string[], items?: string[], min?: number, max?: number, above?: number, preset: any}}
 */
export function fieldOf(name, schema) {
  const kinds = schema.anyOf ?? [schema];
  const told = kinds.find((kind) => kind.type !== "null") ?? {};
  const options = told.enum ?? (told.const === undefined ? undefined : [told.const]);
  return {
    name,
    title: titleOf(name, schema.title),
    group: schema.group ?? "",
    level: schema.level in LEVELS ? schema.level : "basic",
    about: (schema.description ?? "").replaceAll("`", ""),
    kind: options ? "choice" : told.type,
    items: told.items?.enum,
    nullable: kinds.some((kind) => kind.type === "null"),
    options,
    min: told.minimum,
    max: told.maximum,
    above: told.exclusiveMinimum,
    preset: schema.default ?? null,
  };
}

/** A title that only repeats the name says nothing more than the name. */
function titleOf(name, title = "") {
  return title.toLowerCase() === spelled(name).toLowerCase() || !title ? spelled(name) : title;
}

/** Say what is allowed, such as "1 to 50". */
export function bounds({ kind, min, max, above, nullable }) {
  if (kind !== "number" && kind !== "integer") return "";
  const from = above === undefined ? min : `above ${above}`;
  const range = [from, max].every((end) => end !== undefined) ? `${from} to ${max.toLocaleString("en")}` : "";
  return [range, nullable ? "or empty" : ""].filter(Boolean).join(", ");
}

/** Read the value of a control; as `read` for those that hold text. */
function valueOf(field, input) {
  if (input.type === "checkbox") return { value: input.checked };
  if (input.multiple) return { value: [...input.selectedOptions].map((option) => option.value) };
  if (field.kind === "array") return { value: input.value.split("\n").map((line) => line.trim()).filter(Boolean) };
  return read(field, input.value);
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * Read a value from its text.
 * @returns {{value?: any, problem?: string}} the problem in words where it is not allowed
 */
export function read(field, text) {
  if (field.kind === "choice" || field.kind === "string") return { value: text === "" && field.nullable ? null : text };
  if (text.trim() === "") return field.nullable ? { value: null } : { problem: `${field.title} cannot be empty` };
  const value = Number(text);
  const whole = field.kind !== "integer" || Number.isInteger(value);
  const within = value >= (field.min ?? -Infinity) && value <= (field.max ?? Infinity) && value > (field.above ?? -Infinity);
  if (Number.isFinite(value) && whole && within) return { value };
  const number = field.kind === "integer" ? "a whole number" : "a number";
  return { problem: `${field.title} has to be ${number}, ${bounds(field)}; “${text}” is not` };
}

/** Keeps what was changed, and shows it. */
export class Settings {
  /** @param {() => void} changed called when the values changed */
  constructor(changed) {
    this.dialog = byId("settings");
    this.changed = changed;
    this.fields = [];
    this.values = {};
    byId("open-settings").addEventListener("click", () => this.open());
  }

  /** Take the schema of another graph; changes that it does not know are put aside. */
  use(schema) {
    this.fields = Object.entries(schema.properties ?? {}).map(([name, property]) => fieldOf(name, property));
    byId("open-settings").disabled = this.fields.length === 0;
    this.#showChanged();
  }

  /** Return what is sent with a run: what differs from the defaults. */
  context() {
    const known = new Set(this.fields.map((field) => field.name));
    return Object.fromEntries(Object.entries(this.values).filter(([name]) => known.has(name)));
  }

  /** Open the form. */
  open() {
    this.dialog.replaceChildren(this.#form());
    this.dialog.showModal();
  }

  /** Draw one level as something that opens, with its fields in their groups. */
  #level([level, title]) {
    const fields = this.fields.filter((field) => field.level === level);
    if (!fields.length) return [];
    const groups = new Map();
    for (const field of fields) {
      if (!groups.has(field.group)) groups.set(field.group, element("div.fields"));
      groups.get(field.group).append(control(field, this.values[field.name] ?? (field.name in this.values ? null : field.preset)));
    }
    const sets = [...groups].map(([name, drawn]) =>
      name ? element("fieldset", element("legend", name), drawn) : drawn);
    const changed = fields.some(({ name }) => name in this.values);
    const summary = element("summary", title, " ", element("span.hint", count(fields.length, "setting")));
    return [element("details.level", { open: level === "basic" || changed, data: { level } }, summary, ...sets)];
  }

  /** Show only the settings whose name, title or meaning holds every word. */
  #search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const level of this.dialog.querySelectorAll(".level")) {
      for (const field of level.querySelectorAll(".field")) {
        const said = field.textContent.toLowerCase();
        show(field, words.every((word) => said.includes(word)));
        found += field.hidden ? 0 : 1;
      }
      for (const set of level.querySelectorAll("fieldset")) show(set, set.querySelector(".field:not([hidden])"));
      show(level, level.querySelector(".field:not([hidden])"));
      if (words.length) level.open = true;
    }
    this.dialog.querySelector(".found").textContent = words.length ? `${count(found, "setting")} found` : "";
  }

  #form() {
    const search = element("input", {
      type: "search", id: "search-settings", placeholder: "Search the settings", "aria-label": "Search the settings",
      oninput: () => this.#search(search.value),
      // Enter is for the search, not for the whole form.
      onkeydown: (event) => event.key === "Enter" && event.preventDefault(),
    });
    const reset = () => this.#keep({});
    return element(
      "form",
      { method: "dialog", novalidate: true, onsubmit: (event) => this.#submit(event) },
      element("h2", { id: "settings-title" }, "Settings of the next run"),
      element("p.hint", "The server checks them again. Only what you change is sent."),
      element("div.searching", search, element("span.found.hint", { role: "status" })),
      element("p.problem", { role: "alert" }),
      element("div.scrolls-down", ...Object.entries(LEVELS).flatMap((level) => this.#level(level))),
      element(
        "div.buttons",
        element("button.primary", { type: "submit" }, "Apply"),
        element("button", { onclick: () => this.dialog.close() }, "Leave as they were"),
        element("button", { onclick: reset }, "Back to the defaults"),
      ),
    );
  }

  #submit(event) {
    event.preventDefault();
    const values = {};
    const problems = [];
    for (const field of this.fields) {
      const input = event.target.elements.namedItem(field.name);
      const { value, problem } = valueOf(field, input);
      input.setAttribute("aria-invalid", String(problem !== undefined));
      if (problem) problems.push([input, problem]);
      else if (!same(value, field.preset)) values[field.name] = value;
    }
    if (values.lower > (values.upper ?? Infinity)) {
      problems.push([event.target.elements.namedItem("lower"), "lower cannot be above upper"]);
    }
    if (!problems.length) return this.#keep(values);
    this.dialog.querySelector(".problem").textContent = `${problems.map(([, problem]) => problem).join(". ")}.`;
    problems[0][0].closest(".level").open = true;
    problems[0][0].focus();
  }

  #keep(values) {
    this.values = values;
    this.dialog.close();
    this.#showChanged();
    this.changed();
  }

  #showChanged() {
    const chips = Object.entries(this.context()).map(([name, value]) => {
      const onclick = () => {
        delete this.values[name];
        this.#showChanged();
        byId("open-settings").focus();
      };
      const label = `${name} = ${shown(value)}`;
      return element("li", element("button.chip", { onclick, "aria-label": `Undo ${label}` }, label));
    });
    byId("changed").replaceChildren(...chips);
  }
}

function control(field, value) {
  const id = `setting-${field.name}`;
  const allowed = [field.name, bounds(field), `default: ${shown(field.preset)}`].filter(Boolean).join("; ");
  const input = INPUTS[field.kind]?.(field, value) ?? INPUTS.string(field, value);
  input.id = id;
  input.name = field.name;
  input.setAttribute("aria-describedby", `${id}-about`);
  return element(
    "div.field",
    element("label", { for: id }, field.title),
    input,
    element("p.hint", { id: `${id}-about` }, field.about, " ", element("span.allowed", `(${allowed})`)),
  );
}

function shown(value) {
  if (typeof value === "boolean") return value ? "on" : "off";
  return value === null || value.length === 0 ? "empty" : String(value);
}

const INPUTS = {
  boolean: (_, value) => element("input", { type: "checkbox", checked: value === true }),
  choice: ({ options, nullable }, value) => element(
    "select",
    nullable && element("option", { value: "", selected: value === null }, "none"),
    ...options.map((name) => element("option", { value: name, selected: name === value }, spelled(name))),
  ),
  number: (field, value) => numeric(field, value, "decimal"),
  integer: (field, value) => numeric(field, value, "numeric"),
  array: ({ items }, value) => (items ? several(items, value) : element("textarea", { rows: 2 }, value.join("\n"))),
  string: (_, value) => element("input", { type: "text", value: value ?? "" }),
};

const several = (items, value) => element(
  "select",
  { multiple: true, size: 4 },
  ...items.map((name) => element("option", { value: name, selected: value.includes(name) }, spelled(name))),
);

// A text field: where a number field cannot read what was typed, it hides it from the page.
const numeric = (_, value, inputmode) => element("input", { type: "text", inputmode, value: value ?? "" });
