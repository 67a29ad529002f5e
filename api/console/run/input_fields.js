// A field for each part of an input: text, number, check box, or JSON for the rest.

import { h } from "../dom.js";

const LONG_TEXT = 80;

/** Return the fields of an input, `{element, read}`; `read` returns the edited input or raises what is wrong. */
export function inputFields(input) {
  const fields = Object.entries(input).map(([name, value], index) => field(name, value, `input-${index}`));
  return {
    element: fields.map(({ element }) => element),
    read: () => Object.fromEntries(fields.map(({ name, read }) => [name, read()])),
  };
}

function field(name, value, id) {
  if (typeof value === "boolean") {
    const box = h("input", { id, type: "checkbox", checked: value });
    return { name, element: h("p", {}, h("label", { class: "check" }, box, name)), read: () => box.checked };
  }
  if (typeof value === "number") return labelled(name, id, h("input", { id, type: "number", step: "any", required: true, value }), Number);
  if (typeof value === "string") {
    const long = value.length > LONG_TEXT || value.includes("\n");
    return labelled(name, id, long ? h("textarea", { id }, value) : h("input", { id, value, size: 60 }), String);
  }
  const text = h("textarea", { id, spellcheck: "false" }, JSON.stringify(value, null, 2));
  return labelled(`${name}, JSON`, id, text, (found) => parseJson(name, found), name);
}

function labelled(label, id, control, convert, name = label) {
  return { name, element: [h("label", { for: id }, label), control], read: () => convert(control.value) };
}

/** Return the value of a JSON text; raise what is wrong with `name`. */
export function parseJson(name, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw Object.assign(new Error(`${name} is not JSON.`), { detail: error.message });
  }
}
