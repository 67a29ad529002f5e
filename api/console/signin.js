// Sign-in with an API key, or by the installation's OpenID provider.

import { ApiError, checkKey } from "./api.js";
import { fill, h, errorBox } from "./dom.js";
import { provider, startSignIn } from "./oidc.js";
import { saveKey } from "./session.js";

/** Create the form; call `done` after a key was verified. `failure`: the Error of a sign-in before. */
export function signIn(done, failure) {
  const errorArea = h("div", {}, failure && errorBox(failure.message)), providerArea = h("div");
  provider().then((found) => {
    if (found) fill(providerArea, h("p", {}, h("button", { type: "button", class: "main", onclick: () =>
      startSignIn(found).catch((error) => fill(errorArea, errorBox(error.message))) }, `Sign in with ${new URL(found.authorization_endpoint).host}`)));
  });
  const field = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, autofocus: true });
  const button = h("button", { class: "main" }, "Sign in");
  const form = h("form", { class: "box signin", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const key = field.value.trim();
    try {
      // No header can carry another character.
      if (!/^[!-~]+$/.test(key)) throw new ApiError(401, null);
      await checkKey(key);
      saveKey(key);
      done();
    } catch (error) {
      const isInvalidKey = error instanceof ApiError && error.status === 401;
      fill(errorArea, errorBox(isInvalidKey ? "Invalid API key." : error.message,
        isInvalidKey ? "It is unknown, expired or revoked; ask the operator for a new one." : null));
    } finally {
      button.disabled = false;
    }
  } }, h("h1", {}, "Crewyard"), providerArea, h("label", { for: "key" }, "API key"), h("div", { class: "row" }, field, button), errorArea,
    h("p", { class: "quiet" }, "The key is stored only in this tab, until you sign out or close it."));
  return form;
}
