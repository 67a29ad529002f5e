// The settings of the installation, for callers with the scope admin: health, usage, API keys, audit log.

import { caller, isAdmin, isOperator } from "../caller.js";
import { errorBox, fill, h } from "../dom.js";
import { linkTo } from "../router.js";
import { audit } from "./audit.js";
import { health } from "./health.js";
import { keys } from "./keys.js";
import { usageByProject } from "./usage_by_project.js";

const TABS = [["health", "Health", health], ["usage", "Usage", usageByProject], ["api-keys", "API Keys", keys], ["audit", "Audit log", audit]];

/** Show a tab; a caller for single projects has those that concern projects. */
export async function installation(container, { tab }, query, signal) {
  const who = await caller(signal);
  const tabs = !isAdmin(who) ? [] : TABS.filter(([id]) => isOperator(who) || id !== "health");
  const chosen = tabs.find(([id]) => id === (tab ?? tabs[0]?.[0]));
  if (!chosen) return void fill(container, errorBox("Page not found.", h("a", { href: "#/projects" }, "Show projects")));
  const [id, title, view] = chosen, body = h("div");
  document.title = `${title} · Crewyard`;
  fill(container, h("h1", {}, title), h("nav", { class: "tabs", "aria-label": "Settings" }, tabs.map(([other, text]) =>
    h("a", { href: linkTo("installation", other), "aria-current": other === id ? "page" : null }, text))), body);
  return view(body, query, signal);
}
