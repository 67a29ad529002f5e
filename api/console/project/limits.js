// The limits of a project with what it uses of each.

import { errorBox, h, table } from "../dom.js";
import { money, size } from "../format.js";

const NAMES = {
  concurrent_runs: "Concurrent runs", queue: "Waiting runs", deployment_queue: "Waiting deployments", deployments_per_minute: "Deployments in this minute",
  project_requests_per_minute: "Requests in this minute", project_keys: "API keys", project_bytes: "Stored bytes", kept_upload_bytes: "Bytes of uploads",
};
const NEARLY_FULL = 0.8;

/** Create the table of limits of a usage report. */
export function limitTable(limits) {
  return h("div", { class: "limits" }, table([
    ["Limit", ({ name }) => NAMES[name] ?? name],
    ["Used", (use) => textOf(use)],
    ["", (use) => use.limit !== null && meter(use)],
  ], limits, "No limits."));
}

/** Create the budgets of a project: the one of each run, and that of this month with what is used of it. */
export function budgets(usage) {
  return [monthBudget(usage.budget, usage.currency), runBudget(usage.run_budget, usage.currency)];
}

function runBudget(budget, currency) {
  if (!budget) return null;
  const amounts = [budget.tokens !== null && `${budget.tokens.toLocaleString()} tokens`, budget.cost !== null && (currency ? money(budget.cost, currency) : `a cost of ${budget.cost} (no prices)`)];
  return [h("h2", {}, "Budget of each run"), h("p", {}, `${amounts.filter(Boolean).join(", ")}. A run above it is stopped.`)];
}

function monthBudget(budget, currency) {
  if (!budget) return null;
  const rows = [["Tokens", budget.tokens, (value) => value.toLocaleString()], ["Cost", budget.cost, (value) => money(value, currency)]]
    .filter(([, { limit }]) => limit !== null);
  return [h("h2", {}, `Budget for ${budget.month}`),
    budget.message && errorBox(budget.exceeded ? "BudgetExceeded" : "BudgetWarning", budget.message),
    table([
      ["Budget", ([name]) => name],
      ["Used", ([, { used, limit }, text]) => (used === null ? "no prices" : `${text(used)} of ${text(limit)}`)],
      ["", ([name, { used, limit }]) => h("meter", { min: 0, max: limit || 1, high: limit * NEARLY_FULL, optimum: 0, value: Math.min(used ?? 0, limit), "aria-label": `Budget: ${name}` })],
    ], rows, "No budget.")];
}

function textOf({ name, used, limit }) {
  const text = name.endsWith("_bytes") ? size : (value) => value.toLocaleString();
  return limit === null ? text(used) : `${text(used)} of ${text(limit)}`;
}

function meter({ name, used, limit }) {
  return h("meter", { min: 0, max: limit || 1, high: limit * NEARLY_FULL, optimum: 0, value: Math.min(used, limit), "aria-label": NAMES[name] ?? name });
}
