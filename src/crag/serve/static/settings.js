/** The settings of a question as a form, made from the schema that the server validates them by. */

import { byId, element, put } from "./dom.js";
import { spelled } from "./words.js";

/**
 * Read one property of a JSON schema.
 * @returns {{name: string, group: string, about: string, kind: string, nullable: boolean,
 *   options?: string[], min?: number, max?: number, preset: any}}
 */
export function fieldOf(name, schema) {
  const kinds = schema.anyOf ?? [schema];
  const told = kinds.find((kind) => kind.type !== "null") ?? {};
  const options = told.enum ?? (told.const === undefined ? undefined : [told.const]);
  return {
    name,
    group: schema.group ?? "",
    about: (schema.description ?? "").replaceAll("`", ""),
    kind: options ? "choice" : told.type,
    nullable: kinds.some((kind) => kind.type === "null"),
    options,
    min: told.minimum ?? told.exclusiveMinimum,
    max: told.maximum,
    preset: schema.default ?? null,
  };
}

/** Read the value of a control, which the browser has found valid. */
export function valueOf({ kind, nullable }, { type, checked, value }) {
  if (type === "checkbox") return checked;
  if (kind === "array") return value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (value.trim() === "" && (nullable || type === "number")) return null;
  return type === "number" ? Number(value) : value;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Keeps what was changed, and shows it. */
export class Settings {
  /** @param {() => void} changed called when the values changed */
  constructor(changed) {
    Object.assign(this, { dialog: byId("settings"), changed, fields: [], values: {} });
    byId("open-settings").addEventListener("click", () => this.open());
  }

  /** Take the schema of another graph; changes that it does not know are put aside. */
  use(schema) {
    this.fields = Object.entries(schema.properties ?? {}).map(([name, property]) => fieldOf(name, property));
    byId("open-settings").disabled = this.fields.length === 0;
    this.#showChanged();
  }

  /** Return what is sent with a question: what differs from the defaults. */
  context() {
    const known = this.fields.filter(({ name }) => Object.hasOwn(this.values, name));
    return Object.fromEntries(known.map(({ name }) => [name, this.values[name]]));
  }

  /** Open the form. */
  open() {
    put(this.dialog, element(
      "form",
      { method: "dialog", onsubmit: (event) => this.#submit(event) },
      element("h2", { id: "settings-title" }, "Settings of the next question"),
      element("div.scrolls-down", ...this.#groups()),
      element(
        "div.buttons",
        element("button.primary", { type: "submit" }, "Apply"),
        element("button", { onclick: () => this.dialog.close() }, "Cancel"),
        element("button", { onclick: () => this.#keep({}) }, "Back to the defaults"),
      ),
    ));
    this.dialog.showModal();
  }

  #groups() {
    const names = [...new Set(this.fields.map(({ group }) => group))];
    return names.map((group) => element(
      "fieldset",
      group && element("legend", group),
      element("div.fields", ...this.fields.filter((field) => field.group === group).map((field) =>
        control(field, Object.hasOwn(this.values, field.name) ? this.values[field.name] : field.preset))),
    ));
  }

  #submit(event) {
    event.preventDefault();
    const { elements } = event.target;
    const values = this.fields.map((field) => [field, valueOf(field, elements.namedItem(field.name))]);
    this.#keep(Object.fromEntries(values.filter(([{ preset }, value]) => !same(value, preset)).map(([{ name }, value]) => [name, value])));
  }

  #keep(values) {
    this.values = values;
    this.dialog.close();
    this.#showChanged();
    this.changed();
  }

  #showChanged() {
    const changed = Object.keys(this.context()).length;
    byId("open-settings").textContent = changed ? `Settings (${changed} changed)` : "Settings";
  }
}

function control(field, value) {
  const id = `setting-${field.name}`;
  const input = inputFor(field, value);
  for (const [name, text] of [["id", id], ["name", field.name], ["aria-describedby", `${id}-about`]]) input.setAttribute(name, text);
  const about = element("p.hint", { id: `${id}-about` }, field.about, " ", `(default: ${shown(field.preset)})`);
  return element("div.field", element("label", { for: id }, spelled(field.name)), input, about);
}

function shown(value) {
  if (typeof value === "boolean") return value ? "on" : "off";
  return value === null || value.length === 0 ? "empty" : String(value);
}

function inputFor({ kind, options, nullable, min, max }, value) {
  if (kind === "boolean") return element("input", { type: "checkbox", checked: value === true });
  if (kind === "array") return element("textarea", { rows: 2 }, (value ?? []).join("\n"));
  if (kind === "choice") {
    const names = [...(nullable ? [""] : []), ...options];
    return element("select", ...names.map((name) => element("option", { value: name, selected: name === (value ?? "") }, spelled(name) || "none")));
  }
  if (kind !== "number" && kind !== "integer") return element("input", { type: "text", value: value ?? "" });
  const step = kind === "integer" ? 1 : "any";
  return element("input", { type: "number", value: value ?? "", step, min, max, required: !nullable });
}
