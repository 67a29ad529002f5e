// Entry point of the console: views, session and navigation.

import { ApiError, Unreachable } from "./api.js";
import { fill, h, errorBox, refreshAges } from "./dom.js";
import { keepDraft, restoreDraft } from "./form/drafts.js";
import { finishSignIn } from "./oidc.js";
import { currentRoute, route, linkTo } from "./router.js";
import { removeKey, key } from "./session.js";
import { caller, isAdmin, knownCaller } from "./caller.js";
import { deployment } from "./deployment/deployment.js";
import { installation } from "./installation/installation.js";
import { project } from "./project/project.js";
import { projects } from "./project/projects.js";
import { compare } from "./run/compare.js";
import { run } from "./run/run.js";
import { runs } from "./run/runs.js";
import { openSearch, watchShortcut } from "./search.js";
import { signIn } from "./signin.js";

route("/projects", projects);
route("/projects/:name", project);
route("/projects/:name/:tab", project);
route("/deployments/:id", deployment);
route("/runs", runs);
route("/runs/:id", run);
route("/runs/:id/compare", compare);
route("/installation", installation);
route("/installation/:tab", installation);
// The address of the keys in earlier versions.
route("/settings/api-keys", () => location.replace("#/installation/api-keys"));

const main = document.getElementById("main");
const top_ = document.getElementById("top");
const AGES_REFRESH_MS = 5000;
let stop = new AbortController(), principal = null;

function navigation(path, who) {
  const link = (text, hash) => h("a", { href: hash, "aria-current": path.startsWith(hash.slice(1)) ? "page" : null }, text);
  fill(top_, h("a", { class: "name", href: linkTo("projects") }, "Crewyard"),
    h("nav", { class: "row", "aria-label": "Main" }, link("Projects", "#/projects"), link("Runs", "#/runs"),
      who && isAdmin(who) && link("Settings", "#/installation")),
    h("span", { class: "end" }, who && h("span", { class: "quiet" }, who.principal), h("button", { title: "Ctrl+K or /", onclick: openSearch }, "Search"), h("a", { href: "/docs" }, "API"),
      h("button", { onclick: () => { removeKey(); show(); } }, "Sign out")));
}

async function show(failure) {
  document.querySelector("dialog[open]")?.close();
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  top_.hidden = !key();
  if (!key()) {
    document.title = "Sign in · Crewyard";
    document.getElementById("notification").textContent = "";
    fill(main, signIn(() => show(), failure));
    return;
  }
  const match = currentRoute();
  if (!match) {
    document.title = "Page not found · Crewyard";
    fill(main, errorBox("Page not found.", h("a", { href: "#/projects" }, "Show projects")));
    return;
  }
  const before = knownCaller();
  navigation(match.path, before);
  const container = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "…"));
  fill(main, container);
  try {
    const who = await caller(signal);
    if (signal.aborted) return;
    if (who !== before) navigation(match.path, who);
    principal = who.principal;
    restoreDraft(container, principal, signal);
    await match.view(container, match.parameters, match.query, signal);
  } catch (error) {
    if (signal.aborted) return;
    const known = error instanceof ApiError || error instanceof Unreachable;
    fill(container, errorBox(known ? error.message : "The page failed.",
      error.code ?? String(error.cause ?? error), h("button", { onclick: () => show() }, "Try again")));
    if (error instanceof Unreachable) addEventListener("online", () => show(), { once: true, signal });
  } finally {
    container.removeAttribute("aria-busy");
  }
}

// The focus moves at once: a view may last as long as its run, and the focus is the user's by then.
addEventListener("hashchange", () => { scrollTo(0, 0); show(); main.focus({ preventScroll: true }); });
addEventListener("signed-out", () => {
  if (principal) keepDraft(main, principal);
  show(new Error("The session has ended: the key or token is expired or revoked. Sign in again."));
});
// The hash is the address of a view: as a link to a part of the page, it would lead to no page.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
setInterval(refreshAges, AGES_REFRESH_MS);
watchShortcut();
// A view may last as long as its run: the page is ready before.
const failure = await finishSignIn().then(() => null, (error) => error);
show(failure);
dispatchEvent(new Event("ready"));
