// Sign-in by OpenID Connect: authorization code with PKCE. State, verifier and nonce stay in this tab.

import { callWithoutKey, randomHex } from "./api.js";
import { saveKey } from "./session.js";

const PATH = "/console/sign-in", STARTED = "crewyard.sign-in", RANDOM_BYTES = 32;

/** Return the provider's settings; null if the installation has none, or it is unreachable. */
export async function provider() {
  return callWithoutKey("GET", PATH).catch(() => null);
}

/** Go to the provider's page. */
export async function startSignIn({ authorization_endpoint: endpoint, client_id, scope, redirect_uri }) {
  if (!crypto.subtle) throw new Error("Browsers allow this over HTTPS only; use an API key here.");
  const [state, nonce, verifier] = [randomHex(RANDOM_BYTES), randomHex(RANDOM_BYTES), randomHex(RANDOM_BYTES)];
  sessionStorage.setItem(STARTED, JSON.stringify({ state, nonce, verifier, view: location.hash }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const url = new URL(endpoint);
  for (const [name, value] of Object.entries({
    response_type: "code", client_id, scope, redirect_uri, state, nonce, code_challenge: base64Url(new Uint8Array(digest)), code_challenge_method: "S256",
  })) url.searchParams.set(name, value);
  location.assign(url);
}

/** Finish the sign-in if the provider has just sent the browser back; throws an Error if it failed. */
export async function finishSignIn() {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state")) return;
  const started = JSON.parse(sessionStorage.getItem(STARTED) ?? "null");
  sessionStorage.removeItem(STARTED);
  // The code leaves the address, and the history, before anything else happens.
  history.replaceState(null, "", location.pathname + (started?.view ?? ""));
  // Another site can send a browser here with a code of its own, but does not know the state of this tab.
  if (!started || answer.get("state") !== started.state) throw new Error("This tab did not start the sign-in; start it again.");
  if (!answer.has("code")) throw new Error(answer.get("error_description") ?? answer.get("error") ?? "The provider sent no code.");
  const { token } = await callWithoutKey("POST", PATH, { code: answer.get("code"), code_verifier: started.verifier, nonce: started.nonce });
  saveKey(token);
}

function base64Url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
