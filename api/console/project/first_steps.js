// What a new installation and a new project need next, up to the first result. Each step has a button or the command.

import { may } from "../caller.js";
import { definitionList, errorBox, h } from "../dom.js";
import { linkTo } from "../router.js";
import { newRun } from "../run/new_run.js";

const STEPS = ["Create a project", "Wait for its first deployment", "Start a run", "Read the result"];

/** Create the list of the steps to a first result, of which step `number` (from 0) is the next one. */
export function walk(number) {
  return h("ol", { class: "stages", "aria-label": "Steps to the first result" }, STEPS.map((title, index) =>
    h("li", { class: index < number ? "done" : index === number ? "now" : "next", "aria-current": index === number ? "step" : null },
      h("b", {}, `${index + 1}. ${title}`))));
}

/** Return the next step of a project that has no run yet, or null. */
export function firstSteps(details, active, newest, runCount) {
  if (active && runCount > 0) return null;
  const { name } = details;
  if (active) {
    return step(2, "Start the first run", h("p", {}, "Here, or with ", h("code", {}, `crewyard run ${name}`), ". Its page then shows what its agents do, and the result."),
      may("run", name) && newRun({ target: name, deployment: active.id }));
  }
  if (!newest) return step(1, "Deploy a crew", details.source?.git ? fromRepository(details) : fromDirectory(name));
  const link = (text) => h("a", { href: linkTo("deployments", newest.id) }, text);
  if (newest.status === "failed") {
    return step(1, "The first deployment failed", errorBox(newest.error?.reason ?? "Failed", newest.error?.message), h("p", {}, link("See why, and what to do.")));
  }
  return step(1, "The first deployment is on its way", h("p", {}, link("Follow its build."), " You can start a run here once it is active."), keys(name));
}

function step(number, title, ...body) {
  return h("section", { class: "box" }, h("h2", {}, title), walk(number), body);
}

function fromRepository({ name, source, ready }) {
  const { url, ref } = source.git;
  return [
    h("p", {}, ready.status === false ? "The repository cannot be read; the reason is above. The service tries again."
      : "The service reads the repository now. The deployment of its newest commit appears here, without a reload."),
    definitionList([["Repository", h("code", {}, url)], ["Branch or tag", Object.values(ref ?? {})[0]]]), keys(name),
  ];
}

function fromDirectory(name) {
  return [h("p", {}, "Run in the directory of a crew:"), h("pre", { tabindex: 0 }, `crewyard deploy -p ${name}`), keys(name)];
}

function keys(name) {
  return h("p", {}, "Does the crew need keys, such as that of its model? ", h("a", { href: linkTo("projects", name, "variables") }, "Set them as variables"), " meanwhile.");
}
