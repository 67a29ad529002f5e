// Signing in with an API key.

import { ApiError, prove } from "./api.js";
import { fill, h, problem } from "./dom.js";
import { begin } from "./session.js";

/** The form; `done` is called once a key holds. */
export function signIn(done) {
  const said = h("div");
  const field = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, autofocus: true });
  const button = h("button", { class: "main" }, "Sign in");
  const form = h("form", { class: "box signin", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await prove(field.value.trim());
      begin(field.value.trim());
      done();
    } catch (error) {
      const wrong = error instanceof ApiError && error.status === 401;
      fill(said, problem(wrong ? "This key does not hold." : error.message,
        wrong ? "It is unknown, expired or revoked; ask for another one." : null));
    } finally {
      button.disabled = false;
    }
  } }, h("h1", {}, "Crewyard"), h("label", { for: "key" }, "API key"), h("div", { class: "row" }, field, button), said,
    h("p", { class: "quiet" }, "It is kept in this tab alone, until you sign out or close it."));
  return form;
}
