// Form fields made from a JSON Schema and a value: text, number, check box, choice, or JSON for the rest.
// A field is {element, read(), mark(path, text)}: `read` returns the value, undefined for an optional field left empty,
// or throws an Error whose `path` names the field; `mark` shows a text beside the field at `path`, if it has that one;
// `clear` removes what `mark` has shown.

import { errorBox, fill, h } from "../dom.js";
import { parseExact } from "../exact_json.js";

const PLAIN = { string: (value) => typeof value === "string", number: Number.isFinite, integer: Number.isInteger, boolean: (value) => typeof value === "boolean" };

/** Create a field with the accessible name `label`; `value` is its first value, else the default of the schema. */
export function field(schema, options) {
  const { value = schema.default, required = true } = options, plain = withoutNull(schema);
  // A schema that also allows null, as of Python's Optional: the empty field is null.
  if (!controls[plain?.type] || (value !== null && value !== undefined && !isValueOf(plain, value))) return fieldOf(schema, options);
  const inner = fieldOf(plain, { ...options, value: value ?? undefined, required: false }), empty = required || options.value === null ? null : undefined;
  return { ...inner, read: () => inner.read() ?? empty };
}

/** Return a schema of one type or null without its null; undefined if it is none, or a check box could not tell both. Pure. */
function withoutNull({ anyOf, default: _default, ...schema }) {
  const types = anyOf ?? (Array.isArray(schema.type) ? schema.type.map((type) => ({ type })) : []);
  const others = types.filter(({ type }) => type !== "null");
  return types.length === 2 && others.length === 1 && others[0].type !== "boolean" ? { ...schema, ...others[0] } : undefined;
}

function fieldOf(schema, { id, label, value = schema.default, required = true }) {
  const kind = Array.isArray(schema.enum) ? choice : controls[schema.type], fits = value === undefined || isValueOf(schema, value);
  const { control, read, more } = (fits && kind ? kind : json)(schema, { id, value, required, label });
  const error = h("div", { id: `${id}-error` }), note = schema.description && h("div", { id: `${id}-note`, class: "quiet" }, schema.description);
  control.setAttribute("aria-describedby", note ? `${id}-note ${id}-error` : `${id}-error`);
  const text = required ? label : `${label} (optional)`, isBox = control.type === "checkbox";
  return {
    element: h("div", { class: "field" }, isBox ? h("label", { class: "check" }, control, text) : [h("label", { for: id }, text), control], note, more, error),
    read,
    mark: (_path, problem) => {
      fill(error, h("span", { class: "failed", role: "alert" }, problem));
      control.setAttribute("aria-invalid", "true");
      control.focus();
      return true;
    },
    clear: () => {
      fill(error);
      control.removeAttribute("aria-invalid");
    },
  };
}

/** Create the fields of an object: those of its schema, then the other parts of the value. */
export function objectFields(schema, { id, value = {} }) {
  const parts = schema.properties ?? {}, required = schema.required ?? [];
  const others = Object.keys(value).filter((name) => !Object.hasOwn(parts, name));
  const fields = new Map([...Object.entries(parts), ...others.map((name) => [name, schemaOf(value[name])])].map(([name, part], index) =>
    [name, field(part, { id: `${id}-${index}`, label: part.title ?? name, value: value[name], required: required.includes(name) || others.includes(name) })]));
  return {
    element: [...fields.values()].map(({ element }) => element),
    count: fields.size,
    read: () => Object.fromEntries([...fields].map(([name, part]) => [name, inPath(name, part.read)]).filter(([, found]) => found !== undefined)),
    mark: ([name, ...rest], problem) => fields.get(name)?.mark(rest, problem) ?? false,
    clear: () => fields.forEach((part) => part.clear()),
  };
}

/** Show an error beside the field that its `path` or the `details.field` of the API names, else in the area. */
export function showError(error, part, area) {
  const path = error.path ?? error.details?.field?.split(".").slice(1) ?? [];
  if (!part.mark(path, error.message)) fill(area, errorBox(error.message, error.details?.field));
}

function inPath(name, read) {
  try {
    return read();
  } catch (error) {
    throw Object.assign(error, { path: [name, ...(error.path ?? [])] });
  }
}

function schemaOf(value) {
  const type = ["string", "number", "boolean"].find((name) => PLAIN[name](value));
  return type ? { type } : {};
}

function isValueOf(schema, value) {
  if (Array.isArray(schema.enum)) return schema.enum.some((one) => JSON.stringify(one) === JSON.stringify(value));
  return PLAIN[schema.type]?.(value) ?? true;
}

const controls = {
  string(_schema, { id, value = "", required }) {
    const control = h("textarea", { id, class: "text", rows: 1 }, value);
    return { control, read: () => (control.value === "" && !required ? undefined : control.value) };
  },
  boolean(_schema, { id, value, required }) {
    const control = h("input", { id, type: "checkbox", checked: value === true });
    // One that was neither given nor checked is left to the crew, whose code may have a default.
    return { control, read: () => (control.checked || required || value !== undefined ? control.checked : undefined) };
  },
  number: number("any"),
  integer: number(1),
};

function number(step) {
  return (schema, { id, value = "", required }) => {
    const control = h("input", { id, type: "number", step, min: schema.minimum, max: schema.maximum, required, value });
    return { control, read: () => (control.value === "" ? undefined : numberOf(control.value)) };
  };
}

function numberOf(text) {
  return /^-?[1-9]\d*$/.test(text) ? parseExact(text) : Number(text);
}

function choice(schema, { id, value, required }) {
  const first = required ? [] : [h("option", { value: "" }, "–")];
  const control = h("select", { id }, first, schema.enum.map((one, index) => h("option", { value: index, selected: JSON.stringify(one) === JSON.stringify(value) },
    typeof one === "string" ? one : JSON.stringify(one))));
  return { control, read: () => (control.value === "" ? undefined : schema.enum[control.value]) };
}

function json(schema, { id, value, required, label }) {
  const control = h("textarea", { id, spellcheck: "false", placeholder: "JSON" }, value === undefined ? "" : JSON.stringify(value, null, 2));
  const more = Object.keys(schema).length > 0 && h("details", {}, h("summary", {}, "Its schema"), h("pre", { tabindex: 0 }, JSON.stringify(schema, null, 2)));
  return { control, more, read: () => (control.value.trim() === "" && !required ? undefined : parseJson(label, control.value)) };
}

/** Return the value of a JSON text; raise what is wrong with `name`. */
export function parseJson(name, text) {
  try {
    return parseExact(text);
  } catch (error) {
    throw Object.assign(new Error(`${name} is not JSON: ${error.message}`), { path: [] });
  }
}
