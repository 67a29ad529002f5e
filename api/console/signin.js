// Sign-in with an API key.

import { ApiError, checkKey } from "./api.js";
import { fill, h, errorBox } from "./dom.js";
import { saveKey } from "./session.js";

/** Create the form; call `done` after a key was verified. */
export function signIn(done) {
  const errorArea = h("div");
  const field = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, autofocus: true });
  const button = h("button", { class: "main" }, "Sign in");
  const form = h("form", { class: "box signin", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await checkKey(field.value.trim());
      saveKey(field.value.trim());
      done();
    } catch (error) {
      const isInvalidKey = error instanceof ApiError && error.status === 401;
      fill(errorArea, errorBox(isInvalidKey ? "Invalid API key." : error.message,
        isInvalidKey ? "It is unknown, expired or revoked; ask an administrator for a new one." : null));
    } finally {
      button.disabled = false;
    }
  } }, h("h1", {}, "Crewyard"), h("label", { for: "key" }, "API key"), h("div", { class: "row" }, field, button), errorArea,
    h("p", { class: "quiet" }, "The key is stored only in this tab, until you sign out or close it."));
  return form;
}
