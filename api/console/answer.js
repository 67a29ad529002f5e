// Questions of a run: a form for each, made from its schema or choices.

import { change } from "./api.js";
import { errorBox, fill, h, notify } from "./dom.js";

const FIELD_TYPES = ["string", "integer", "number", "boolean"];

/** The open questions of a run. A form stays as it is while its question is open, also what is typed into it. */
export class Questions {
  constructor(path, onAnswered) {
    Object.assign(this, { path, onAnswered, forms: new Map() });
    this.element = h("section", { "aria-label": "Questions", "aria-live": "polite" });
  }

  /** Show exactly these `input_requests`. */
  show(requests) {
    const forms = new Map(requests.map((request) => [request.request_id, this.forms.get(request.request_id) ?? this.form(request)]));
    if (forms.size === this.forms.size && [...forms.keys()].every((id) => this.forms.has(id))) return;
    this.forms = forms;
    fill(this.element, [...forms.values()]);
  }

  form(request) {
    const field = answerField(request.schema ?? null, request.choices ?? null, `answer-${request.request_id}`);
    const errorArea = h("div"), send = h("button", { class: "main" }, "Answer");
    const submit = async (event) => {
      event.preventDefault();
      send.disabled = true;
      fill(errorArea);
      try {
        await change("POST", `${this.path}/inputs/${request.request_id}`, { value: field.value() });
        notify("The crew has the answer.");
      } catch (failure) {
        fill(errorArea, errorBox(failure.message));
        send.disabled = false;
        if (failure.status !== 409) return;
      }
      await this.onAnswered();
    };
    return h("form", { class: "box", onsubmit: submit },
      h("h2", {}, "The crew asks"), h("pre", {}, request.prompt), field.element, errorArea, h("div", { class: "row" }, send));
  }
}

/** Return {element, value()} for an answer, with the accessible name `label`; `value` throws an Error for text that is none. */
export function answerField(schema, choices, id, label = "Answer") {
  const values = choices ?? schema?.enum;
  if (Array.isArray(values)) return choiceField(values, id, label);
  if (schema?.type === "object" && isFlat(schema.properties)) return objectField(schema, id);
  if (FIELD_TYPES.includes(schema?.type)) return plainField(schema, id, label);
  return jsonField(schema, id);
}

function isFlat(properties) {
  const parts = Object.values(properties ?? {});
  return parts.length > 0 && parts.every((part) => Array.isArray(part.enum) || FIELD_TYPES.includes(part.type));
}

function choiceField(values, id, label) {
  const select = h("select", { id, "aria-label": label },
    values.map((value, index) => h("option", { value: index }, typeof value === "string" ? value : JSON.stringify(value))));
  return { element: select, value: () => values[select.value] };
}

function objectField(schema, id) {
  const fields = Object.entries(schema.properties).map(([name, part]) => [name, answerField(part, null, `${id}-${name}`, part.title ?? name)]);
  const required = schema.required ?? [];
  const element = h("div", {}, fields.map(([name, field]) => [
    h("label", { for: `${id}-${name}` }, schema.properties[name].title ?? name, required.includes(name) ? "" : " (optional)"), field.element]));
  const entries = () => fields.map(([name, field]) => [name, field.value()]).filter(([name, value]) => required.includes(name) || value !== "");
  return { element, value: () => Object.fromEntries(entries()) };
}

function plainField(schema, id, label) {
  if (schema.type === "boolean") {
    const box = h("input", { id, type: "checkbox", "aria-label": label, checked: schema.default === true });
    return { element: box, value: () => box.checked };
  }
  if (schema.type === "string") {
    const area = h("textarea", { id, "aria-label": label }, schema.default ?? "");
    return { element: area, value: () => area.value };
  }
  const number = h("input", {
    id, type: "number", "aria-label": label, step: schema.type === "integer" ? 1 : "any",
    min: schema.minimum, max: schema.maximum, value: schema.default ?? "",
  });
  return { element: number, value: () => (number.value === "" ? "" : Number(number.value)) };
}

function jsonField(schema, id) {
  const area = h("textarea", { id, "aria-label": schema ? "Answer (JSON)" : "Answer (text or JSON)", spellcheck: "false" });
  const value = () => {
    try {
      return JSON.parse(area.value);
    } catch (error) {
      if (schema === null) return area.value;
      throw new Error(`The answer is not JSON: ${error.message}`);
    }
  };
  return { element: [area, schema && h("details", {}, h("summary", {}, "Its schema"), h("pre", {}, JSON.stringify(schema, null, 2)))], value };
}
