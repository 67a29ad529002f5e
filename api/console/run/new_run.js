// The form that starts a run: the fields of the deployment's input.

import { ApiError, change, randomHex } from "../api.js";
import { fill, h, notify } from "../dom.js";
import { InputEditor, inputSchema } from "../form/input_editor.js";
import { linkTo } from "../router.js";

/**
 * Create the form that starts a run of `target`, a project or a deployment, with the first `input`.
 * `deployment`: whose schema makes the fields; null where another one applies. `path` is that of the call.
 */
export function newRun({ target, deployment, input = {}, path = "/v1/runs" }) {
  const area = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "…"));
  inputSchema(deployment).then((found) => {
    area.removeAttribute("aria-busy");
    fill(area, form(target, found, input, path));
  });
  return area;
}

/** Create a section with that form, which is made once it is opened. */
export function newRunSection(title, options, open = false) {
  const section = h("details", { open, ontoggle: () => {
    if (section.childElementCount === 1) section.append(newRun(options));
  } }, h("summary", {}, title));
  return section;
}

function form(target, schema, input, path) {
  const editor = new InputEditor(schema, input);
  const button = h("button", { class: "main" }, "Start run");
  let lastRequest = null;
  return h("form", { class: "box", onsubmit: async (event) => {
    event.preventDefault();
    const text = editor.attempt(() => JSON.stringify(editor.read()));
    if (text === undefined) return;
    button.disabled = true;
    // Retrying the same input after a lost response must not start a second run.
    if (lastRequest?.text !== text) lastRequest = { text, key: randomHex() };
    try {
      const run = await change("POST", path, { deployment: target, input: JSON.parse(text) }, { "Idempotency-Key": lastRequest.key });
      lastRequest = null;
      notify(`${run.id} is ${run.status}.`);
      location.hash = linkTo("runs", run.id);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) lastRequest = null;
      editor.showError(error);
    } finally {
      button.disabled = false;
    }
  } }, editor.element, h("p", { class: "row" }, button, editor.switchButton));
}
