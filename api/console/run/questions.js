// Questions of a run: a form for each, made from its schema or choices.

import { change } from "../api.js";
import { fill, h, notify } from "../dom.js";
import { parseExact } from "../exact_json.js";
import { field, objectFields, showError } from "../form/fields.js";

/** The open questions of a run. A form stays as it is while its question is open, also what is typed into it. */
export class Questions {
  constructor(path, onAnswered) {
    Object.assign(this, { path, onAnswered, forms: new Map() });
    this.element = h("section", { "aria-label": "Questions", "aria-live": "polite" });
  }

  /** Show exactly these `input_requests`; a caller that may not answer sees their texts. */
  show(requests, mayAnswer) {
    const make = (request) => (mayAnswer ? this.form(request) : h("div", { class: "box" }, question(request), h("p", { class: "quiet" }, "The scope run is needed to answer.")));
    const forms = new Map(requests.map((request) => [request.request_id, this.forms.get(request.request_id) ?? make(request)]));
    if (forms.size === this.forms.size && [...forms.keys()].every((id) => this.forms.has(id))) return;
    this.forms = forms;
    fill(this.element, [...forms.values()]);
  }

  form(request) {
    const answer = answerField(request.schema ?? null, request.choices ?? null, `answer-${request.request_id}`);
    const errorArea = h("div"), send = h("button", { class: "main" }, "Answer");
    const submit = async (event) => {
      event.preventDefault();
      send.disabled = true;
      fill(errorArea);
      answer.clear();
      try {
        await change("POST", `${this.path}/inputs/${request.request_id}`, { value: answer.read() });
        notify("The crew has the answer.");
      } catch (failure) {
        showError(failure, answer, errorArea);
        send.disabled = false;
        if (failure.status !== 409) return;
      }
      await this.onAnswered();
    };
    return h("form", { class: "box", onsubmit: submit },
      question(request), answer.element, errorArea, h("div", { class: "row" }, send));
  }
}

function question({ prompt }) {
  return [h("h2", {}, "The crew asks"), h("pre", {}, prompt)];
}

/** Create the field of an answer: from its choices or its schema, else a text that may be JSON. */
function answerField(schema, choices, id) {
  if (choices) return field({ enum: choices }, { id, label: "Answer" });
  if (schema?.type === "object" && schema.properties) return objectFields(schema, { id });
  if (schema) return field(schema, { id, label: "Answer" });
  const area = h("textarea", { id, "aria-label": "Answer (text or JSON)", spellcheck: "false" });
  return { element: area, mark: () => false, clear: () => {}, read: () => {
    try {
      return parseExact(area.value);
    } catch {
      return area.value;
    }
  } };
}
