// The console: puts views, session and navigation together.

import { ApiError } from "./api.js";
import { fill, h, problem } from "./dom.js";
import { present, route, to } from "./router.js";
import { end, key } from "./session.js";
import { deployment } from "./deployment.js";
import { keys } from "./keys.js";
import { project } from "./project.js";
import { projects } from "./projects.js";
import { run } from "./run.js";
import { runs } from "./runs.js";
import { signIn } from "./signin.js";

route("/projects", projects);
route("/projects/:name", project);
route("/projects/:name/:tab", project);
route("/deployments/:id", deployment);
route("/runs", runs);
route("/runs/:id", run);
route("/settings/api-keys", keys);

const main = document.getElementById("main");
const top_ = document.getElementById("top");
let stop = new AbortController();

function navigation(path) {
  const link = (text, hash) => h("a", { href: hash, "aria-current": path.startsWith(hash.slice(1)) ? "page" : null }, text);
  fill(top_, h("a", { class: "name", href: to("projects") }, "Crewyard"),
    h("nav", { class: "row", "aria-label": "Main" }, link("Projects", "#/projects"), link("Runs", "#/runs"),
      link("Settings", "#/settings/api-keys")),
    h("span", { class: "end" }, h("a", { href: "/docs" }, "API"),
      h("button", { onclick: () => { end(); show(); } }, "Sign out")));
}

async function show() {
  stop.abort();
  stop = new AbortController();
  const { signal } = stop;
  top_.hidden = !key();
  if (!key()) {
    document.title = "Sign in · Crewyard";
    document.getElementById("said").textContent = "";
    fill(main, signIn(show));
    return;
  }
  const found = present();
  if (!found) {
    fill(main, problem("There is no such page.", h("a", { href: "#/projects" }, "To the projects")));
    return;
  }
  navigation(found.path);
  const place = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, "…"));
  fill(main, place);
  try {
    await found.view(place, found.parameters, found.query, signal);
  } catch (error) {
    if (signal.aborted) return;
    const known = error instanceof ApiError;
    fill(place, problem(known ? error.message : "The service cannot be reached.",
      known ? error.code : String(error), h("button", { onclick: show }, "Try again")));
  } finally {
    place.removeAttribute("aria-busy");
  }
}

addEventListener("hashchange", () => { scrollTo(0, 0); show().then(() => main.focus({ preventScroll: true })); });
addEventListener("signed-out", show);
show();
dispatchEvent(new Event("ready"));
