// What a new project needs next: a deployment, then a run. Each step has a button or the command.

import { h } from "../dom.js";
import { linkTo } from "../router.js";
import { newRun } from "../run/new_run.js";

/** Return the next step of a project that has no run yet, or null. */
export function firstSteps(name, active, newest, runCount) {
  if (active && runCount > 0) return null;
  if (active) {
    return h("section", { class: "box" }, h("h2", {}, "Start the first run"),
      h("p", {}, "Here, or with ", h("code", {}, `crewyard run ${name}`), "."), newRun(name));
  }
  if (!newest) {
    return h("section", { class: "box" }, h("h2", {}, "Deploy a crew"),
      h("p", {}, "Push a commit to the repository of the project, or run in the directory of a crew:"),
      h("pre", { tabindex: 0 }, `crewyard deploy -p ${name}`));
  }
  if (newest.status === "failed") {
    return h("section", { class: "box" }, h("h2", {}, "The first deployment failed"),
      h("p", {}, h("a", { href: linkTo("deployments", newest.id) }, "See why, and what to do.")));
  }
  return h("section", { class: "box" }, h("h2", {}, "The first deployment is on its way"),
    h("p", {}, h("a", { href: linkTo("deployments", newest.id) }, "Follow its build."), " You can start a run once it is active."));
}
