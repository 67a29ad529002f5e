// Who is signed in, and what the key or token may do. Read once for each key.

import { get } from "./api.js";
import { key } from "./session.js";

let known = { key: null, caller: null };

/** Return the caller: {principal, scopes, projects, expires_at}. */
export async function caller(signal) {
  const current = key();
  if (known.key !== current) known = { key: current, caller: await get("/v1/whoami", {}, signal) };
  return known.caller;
}

/** Return the caller if it was read before, else null. */
export function knownCaller() {
  return known.key === key() ? known.caller : null;
}

/** Return whether the caller has a scope in a project; what the page shows depends on it, the service decides. */
export function may(scope, project) {
  const { scopes, projects } = knownCaller() ?? { scopes: ["admin"], projects: [] };
  const granted = [...scopes ?? [], ...projects.filter((one) => one.project === project).flatMap((one) => one.scopes)];
  return granted.includes(scope) || granted.includes("admin");
}

/** Return whether a caller is admin of all projects. */
export function isOperator({ scopes }) {
  return Boolean(scopes?.includes("admin"));
}

/** Return whether a caller is admin of any project. */
export function isAdmin(who) {
  return isOperator(who) || who.projects.some(({ scopes }) => scopes.includes("admin"));
}
