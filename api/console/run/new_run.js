// The form that starts a run: its entrypoint, if the deployment names several, and the fields of its input.

import { ApiError, change, get, randomHex } from "../api.js";
import { fill, h, notify } from "../dom.js";
import { InputEditor, inputSchema } from "../form/input_editor.js";
import { linkTo } from "../router.js";

/**
 * Create the form that starts a run of `target`, a project or a deployment, with the first `input`.
 * `deployment`: whose entrypoints and schema make the fields. `entrypoint`: that of the run which is repeated, null for
 * the deployment's own. `path` is that of the call.
 */
export function newRun({ target, deployment, input = {}, entrypoint = null, path = "/v1/runs" }) {
  const area = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "…"));
  Promise.all([inputSchema(deployment), entrypointsOf(deployment)]).then(([schema, names]) => {
    area.removeAttribute("aria-busy");
    fill(area, new RunForm({ target, input, entrypoint, path, schema, names }).element);
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

/** Return the names of a deployment's entrypoints; none if the service does not tell them. */
async function entrypointsOf(deployment) {
  return (await get(`/v1/deployments/${encodeURIComponent(deployment)}`).catch(() => null))?.entrypoints ?? [];
}

class RunForm {
  constructor({ target, input, entrypoint, path, schema, names }) {
    Object.assign(this, { target, path, schema, before: entrypoint, lastRequest: null, editorArea: h("div"), switchArea: h("span") });
    const others = entrypoint && !names.includes(entrypoint) ? [entrypoint, ...names] : names;
    this.entrypoint = h("select", { id: "entrypoint", onchange: () => this.edit(this.input()) },
      h("option", { value: "" }, "the deployment's own"), others.map((name) => h("option", { value: name, selected: name === entrypoint }, name)));
    this.button = h("button", { class: "main" }, "Start run");
    this.element = h("form", { class: "box", onsubmit: (event) => {
      event.preventDefault();
      this.start();
    } }, others.length > 0 && h("div", { class: "field" }, h("label", { for: "entrypoint" }, "Entrypoint"), this.entrypoint),
    this.editorArea, h("p", { class: "row" }, this.button, this.switchArea));
    this.edit(input);
  }

  /** Show the fields of the chosen entrypoint; the schema is that of the deployment's own. */
  edit(input) {
    this.editor = new InputEditor(this.entrypoint.value ? null : this.schema, input);
    fill(this.editorArea, this.editor.element);
    fill(this.switchArea, this.editor.switchButton);
  }

  /** Return the input as far as it is one; an unfinished one is left behind. */
  input() {
    try {
      return this.editor.read();
    } catch {
      return {};
    }
  }

  async start() {
    const input = this.editor.attempt(() => this.editor.read());
    if (input === undefined) return;
    const chosen = this.entrypoint.value || null, body = { deployment: this.target, input, ...(chosen === this.before ? {} : { entrypoint: chosen }) };
    const text = JSON.stringify(body);
    this.button.disabled = true;
    // Retrying the same input after a lost response must not start a second run.
    if (this.lastRequest?.text !== text) this.lastRequest = { text, key: randomHex() };
    try {
      const run = await change("POST", this.path, body, { "Idempotency-Key": this.lastRequest.key });
      this.lastRequest = null;
      notify(`${run.id} is ${run.status}.`);
      location.hash = linkTo("runs", run.id);
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) this.lastRequest = null;
      this.editor.showError(error);
    } finally {
      this.button.disabled = false;
    }
  }
}
