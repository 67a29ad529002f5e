// The form that starts a run: a field for each part of a known input, or the whole input as JSON.

import { ApiError, change, randomHex } from "../api.js";
import { errorBox, fill, h, notify } from "../dom.js";
import { linkTo } from "../router.js";
import { inputFields, parseJson } from "./input_fields.js";

/** Create the form that starts a run of `target`, with the initial `input`. */
export function newRun(target, input = {}) {
  const errorArea = h("div"), inputArea = h("div");
  const button = h("button", { class: "main" }, "Start run");
  const switchButton = h("button", { type: "button" });
  const errors = (title, detail) => fill(errorArea, errorBox(title, detail));
  let read = null, lastRequest = null;
  const show = (asJson, value) => {
    const editor = asJson ? jsonEditor(value) : inputFields(value);
    read = editor.read;
    fill(inputArea, editor.element);
    switchButton.textContent = asJson ? "Edit as fields" : "Edit as JSON";
    switchButton.onclick = () => attempt(errors, () => show(!asJson, read()));
    switchButton.hidden = Object.keys(value).length === 0 && asJson;
  };
  show(Object.keys(input).length === 0, input);
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    let text;
    if (!attempt(errors, () => { text = JSON.stringify(read()); })) return;
    button.disabled = true;
    // Retrying the same input after a lost response must not start a second run.
    if (lastRequest?.text !== text) lastRequest = { text, key: randomHex() };
    try {
      const run = await change("POST", "/v1/runs", { deployment: target, input: JSON.parse(text) }, { "Idempotency-Key": lastRequest.key });
      lastRequest = null;
      notify(`${run.id} is ${run.status}.`);
      location.hash = linkTo("runs", run.id);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) lastRequest = null;
      errors(error.message, error.details?.field);
    } finally {
      button.disabled = false;
    }
  } }, inputArea, h("p", { class: "row" }, button, switchButton), errorArea);
}

function attempt(errors, work) {
  try {
    work();
    return true;
  } catch (error) {
    errors(error.message, error.detail);
    return false;
  }
}

function jsonEditor(value) {
  const text = h("textarea", { id: "input", spellcheck: "false" }, JSON.stringify(value, null, 2));
  return { element: [h("label", { for: "input" }, "Input, a JSON object"), text], read: () => {
    const found = parseJson("The input", text.value || "{}");
    if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("The input is not a JSON object.");
    return found;
  } };
}
