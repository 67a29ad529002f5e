// The way of a deployment from its commit to active, as a row of stages: found, those of the build, the smoke run.

import { h, statusBadge, when } from "../dom.js";
import { duration, waitingText } from "../format.js";
import { linkTo } from "../router.js";

const TITLES = { queued: "Waiting", fetch: "Fetch", plan: "Plan", dependencies: "Dependencies", assemble: "Assemble" };
// Where a build fails with a reason; with another one it fails in the last stage that began.
const STAGE_OF_REASON = {
  GitAuthFailed: "fetch", GitNotFound: "fetch", VerificationFailed: "fetch", ContextTooLarge: "fetch", ContextInvalid: "fetch",
  ConfigInvalid: "plan", EntrypointNotFound: "plan", UnsupportedFramework: "plan", DependencyResolution: "dependencies", RegistryPush: "assemble",
};

/** Create the stages of a deployment of the API. */
export function stages(details) {
  return h("ol", { class: "stages", "aria-label": "Stages" }, stagesOf(details).map(({ title, state, note, run, at }) =>
    h("li", { class: state, "aria-current": state === "now" ? "step" : null }, h("b", {}, title),
      run ? h("a", { href: linkTo("runs", run) }, note) : h("span", { class: "quiet" }, at ? when(at) : note))));
}

/** Return the stages, `{title, state, note, run, at}`: the state is done, now, next or failed. Pure. */
export function stagesOf(details) {
  const { status, smoke_run: run, activated_at: activated } = details;
  const built = status === "active" || status === "superseded";
  const row = [{ title: "Found", state: "done", note: "", at: details.created_at }, ...(status === "pending" ? queue(details) : build(details, built || Boolean(run)))];
  if (run) row.push({ title: "Smoke run", run, note: smokeResult(details), state: built ? "done" : "now" });
  if (status === "failed") fail(row, details);
  if (details.is_preview) return [...row, { title: "Ready", state: built ? "done" : "next", note: "" }];
  return [...row, { title: "Active", state: built ? "done" : "next", note: "", at: built ? activated : null }];
}

/** Create the badges of a deployment's status; a preview is built and can be run, but never becomes active. */
export function deploymentBadges({ status, is_preview: isPreview }) {
  if (!isPreview) return statusBadge(status);
  return [statusBadge(status === "superseded" ? "built" : status), h("span", { class: "chip quiet", title: "Never becomes active; run it by its id" }, "preview")];
}

/** Create the badge of a deployment's smoke run, a link to it. */
export function smokeBadge(details) {
  const result = smokeResult(details), { smoke_run: run } = details;
  return h("a", { class: `chip ${{ passed: "succeeded" }[result] ?? result}`, href: linkTo("runs", run) }, `smoke run ${result}`);
}

/** Return how a smoke run of a deployment went: passed, running, failed or canceled. Pure. */
export function smokeResult({ status, error }) {
  if (status === "failed") return error?.reason === "SmokeFailed" ? "failed" : "canceled";
  return status === "building" ? "running" : "passed";
}

function queue({ queue_position: position, waiting }) {
  return [{ title: TITLES.queued, state: "now", note: position ? `position ${position}` : waitingText(waiting) ?? "" }, { title: "Build", state: "next", note: "" }];
}

function build({ status, waiting, stages: known = [] }, built) {
  const cause = waitingText(waiting) ?? "";
  const row = known.map(({ name, seconds }) => ({ title: TITLES[name] ?? name, state: seconds === undefined ? "now" : "done",
    note: seconds === undefined ? cause : duration(seconds * 1000) }));
  if (!row.length && built) return [{ title: "Build", state: "done", note: "image reused" }];
  const begins = status === "building" && !built && row.every(({ state }) => state === "done");
  return begins ? [...row, { title: "Build", state: "now", note: cause }] : row;
}

/** Mark the stage in which a deployment failed. */
function fail(row, { error }) {
  const title = TITLES[STAGE_OF_REASON[error?.reason]];
  let failed = row.find((stage) => stage.title === title) ?? row.at(-1);
  if (failed === row[0] || (title && failed.title !== title)) row.push(failed = { title: title ?? "Build", note: "" });
  Object.assign(failed, { state: "failed", note: [error?.reason, failed.run ? null : failed.note].filter(Boolean).join(", ") });
}
