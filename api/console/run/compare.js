// Two runs of a project side by side: status, durations, tokens, steps, input and output.

import { ApiError, followStream, get, list } from "../api.js";
import { errorBox, fill, h, statusBadge, table, when } from "../dom.js";
import { ago, duration, formatValue, money } from "../format.js";
import { linkTo } from "../router.js";
import { OUTPUT_IS_FILE, isFile } from "./panel.js";
import { Steps, isLast, rowsOf } from "./steps.js";

const CHOICES = 50, SEPARATOR = " › ";

export async function compare(container, { id }, query, signal) {
  document.title = `Compare ${id} · Crewyard`;
  const first = await get(`/v1/runs/${encodeURIComponent(id)}`, {}, signal);
  const { data } = await list("/v1/runs", { project: first.project, per_page: CHOICES }, signal);
  const others = data.filter((run) => run.id !== id && run.completed_at);
  const older = others.find((run) => run.created_at < first.created_at) ?? others[0];
  const other = query.with ?? older?.id;
  const choice = h("select", { "aria-label": "Compare with", onchange: () => { location.hash = `${linkTo("runs", id, "compare")}?with=${choice.value}`; } },
    [!others.some((run) => run.id === other) && h("option", { value: other, selected: true }, other), ...others.map((run) => h("option", { value: run.id, selected: run.id === other }, `${run.id}, ${run.status}, ${duration(run.duration_ms)}, ${ago(run.created_at)}`))]);
  const body = h("div");
  fill(container, h("h1", {}, "Compare runs"), h("p", { class: "row" }, h("a", { href: linkTo("runs", id) }, id), "with", other ? choice : ""), body);
  if (!other) return void fill(body, h("p", { class: "quiet" }, "The project has no other run that has ended."));
  if (!first.completed_at) return void fill(body, errorBox("The run has not ended yet.", h("a", { href: linkTo("runs", id) }, "Follow it")));
  const second = await get(`/v1/runs/${encodeURIComponent(other)}`, {}, signal);
  if (second.project !== first.project) throw new ApiError(400, { error: { message: "The runs are of different projects.", code: "invalid" } });
  const trees = await Promise.all([first, second].map((run) => stepsOf(run.id, signal)));
  fill(body, sideBySide([first, second], trees));
}

async function stepsOf(id, signal) {
  const steps = new Steps();
  await followStream(`/v1/runs/${encodeURIComponent(id)}/events`, signal, (message) => steps.add(message), isLast);
  return steps;
}

function sideBySide(runs, trees) {
  const cells = (title, value) => [title, value(runs[0], trees[0]), value(runs[1], trees[1]), ""];
  const numbers = (title, value, text) => {
    const [a, b] = runs.map((run, index) => value(run, trees[index]));
    return [title, ...[a, b].map((each) => (isNumber(each) ? text(each) : null)), isNumber(a) && isNumber(b) ? signed(b - a, text) : null];
  };
  const count = (value) => value.toLocaleString(), currency = runs.map(({ usage }) => usage?.currency).find(Boolean);
  const rows = [
    cells("Status", (run) => statusBadge(run.status)), numbers("Duration", (run) => run.duration_ms, duration),
    numbers("Tokens in", (_, tree) => tree.run.promptTokens, count), numbers("Tokens out", (_, tree) => tree.run.completionTokens, count),
    ...(currency ? [numbers("Cost", ({ usage }) => usage?.cost, (value) => money(value, currency))] : []),
    cells("Created", (run) => when(run.created_at)),
    cells("Deployment", (run) => run.deployment_id && h("a", { href: linkTo("deployments", run.deployment_id) }, run.deployment_id)),
    ...(runs.some(({ error }) => error) ? [cells("Error", (run) => run.error && `${run.error.reason}: ${run.error.message ?? ""}`)] : []),
  ];
  const columns = (title) => [[title, (row) => row[0]], [runs[0].id, (row) => row[1]], [runs[1].id, (row) => row[2]], ["Difference", (row) => row[3]]];
  return [
    table(columns(""), rows, ""), h("h2", {}, "Steps"), table(columns("Step"), stepRows(...trees).map(([path, ...texts]) => [pathCell(path), ...texts.map(lines)]), "No steps."),
    ...["Input", "Output"].map((title) => [h("h2", {}, title), values(runs, title, trees)]),
  ];
}

/**
 * Return rows `[name, first, second, difference]`: steps of the same path and place among those of that path. Each
 * but the name is a list of texts: the time and, with model calls, the tokens. Pure.
 */
export function stepRows(first, second) {
  const [left, right] = [first, second].map(pathsOf);
  return [...new Set([...left.keys(), ...right.keys()])].map((path) => {
    const [a, b] = [left.get(path), right.get(path)], times = [a, b].map(timeOf), tokens = [a, b].map(tokensOf);
    const change = times[0] === null || times[1] === null ? [] : [signed(times[1] - times[0], duration)];
    if (a && b && tokens[0] !== tokens[1]) change.push(signed(tokens[1] - tokens[0], tokenText));
    return [path, cell(a), cell(b), change];
  });
}

/** Return a difference with its sign. Pure. */
export function signed(change, text) {
  if (change === 0) return "same";
  return `${change < 0 ? "−" : "+"}${text(Math.abs(change))}`;
}

function isNumber(value) {
  return typeof value === "number";
}

/** Create a path: the steps around the last one are quiet. */
function pathCell(path) {
  const parts = path.split(SEPARATOR), name = parts.pop();
  return [h("span", { class: "quiet" }, parts.map((part) => part + SEPARATOR)), name];
}

function lines(texts) {
  return texts.length ? texts.map((text, index) => h("div", { class: index ? "quiet" : null }, text)) : null;
}

function tokensOf(step) {
  return step ? step.promptTokens + step.completionTokens : 0;
}

function tokenText(count) {
  return `${count.toLocaleString()} tokens`;
}

function pathsOf(steps) {
  const paths = new Map(), counts = new Map(), names = [];
  for (const { step, level, name, text } of rowsOf(steps.run)) {
    names.length = level - 1;
    names.push(text ? `${name}: ${text}` : name);
    const path = names.slice(level > 1 ? 1 : 0).join(SEPARATOR), count = (counts.get(path) ?? 0) + 1;
    counts.set(path, count);
    paths.set(count > 1 ? `${path} (${count})` : path, step);
  }
  return paths;
}

function timeOf(step) {
  return !step || step.start === null || step.end === null ? null : step.end - step.start;
}

function cell(step) {
  if (!step) return [];
  const time = `${duration(timeOf(step))}${step.status === "succeeded" ? "" : `, ${step.status}`}`;
  return tokensOf(step) ? [time, tokenText(tokensOf(step))] : [time];
}

function values(runs, title, trees) {
  const areFiles = runs.map((run, index) => title === "Output" && isFile(run, trees[index]));
  const [a, b] = runs.map((run, index) => (areFiles[index] ? OUTPUT_IS_FILE : formatValue(run[title.toLowerCase()] ?? null)));
  const text = a === b && !areFiles[0] ? [h("pre", { tabindex: 0 }, a), h("p", { class: "quiet" }, "The same in both.")] : [a, b].map((value, index) =>
    h("section", {}, h("h3", {}, runs[index].id), h("pre", { tabindex: 0 }, value)));
  return a === b && !areFiles[0] ? text : h("div", { class: "pair" }, text);
}
