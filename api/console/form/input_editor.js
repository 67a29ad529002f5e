// The editor of a crew's input: a field for each part that its schema names, or the whole input as JSON.

import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { objectFields, parseJson, showError } from "./fields.js";

/** Return the schema of a deployment's input; null without one, or if the service does not tell it. */
export async function inputSchema(deployment) {
  if (!deployment) return null;
  return (await get(`/v1/deployments/${encodeURIComponent(deployment)}/inputs`).catch(() => null))?.schema ?? null;
}

/** Create the editor; `value` is the input that it shows first. */
export class InputEditor {
  constructor(schema, value = {}, id = "input") {
    Object.assign(this, { schema, id, area: h("div"), errorArea: h("div") });
    this.switchButton = h("button", { type: "button", onclick: () => this.attempt(() => this.show(!this.asJson, this.read())) });
    this.element = [this.area, this.errorArea];
    this.show(this.fields(value).count === 0, value);
  }

  fields(value) {
    return objectFields(this.schema ?? {}, { id: this.id, value });
  }

  show(asJson, value) {
    this.asJson = asJson;
    this.parts = asJson ? jsonText(this.id, value) : this.fields(value);
    fill(this.area, this.parts.element);
    this.switchButton.textContent = asJson ? "Edit as fields" : "Edit as JSON";
    this.switchButton.hidden = asJson && this.fields(value).count === 0;
  }

  /** Return the input; raise an Error if a part of it is none. */
  read() {
    return this.parts.read();
  }

  /** Return what `work` returns, or undefined after showing its error. */
  attempt(work) {
    fill(this.errorArea);
    this.parts.clear();
    try {
      return work();
    } catch (error) {
      this.showError(error);
      return undefined;
    }
  }

  /** Show an error beside the field that it names, else below all. */
  showError(error) {
    showError(error, this.parts, this.errorArea);
  }
}

function jsonText(id, value) {
  const text = h("textarea", { id, spellcheck: "false" }, JSON.stringify(value, null, 2));
  return {
    element: [h("label", { for: id }, "Input, a JSON object"), text],
    read: () => {
      const found = parseJson("The input", text.value || "{}");
      if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("The input is not a JSON object.");
      return found;
    },
    mark: () => false,
    clear: () => {},
  };
}
