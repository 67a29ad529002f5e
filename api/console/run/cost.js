// The tokens of a run by model, and their cost by the prices of the installation.

import { h, table } from "../dom.js";
import { money } from "../format.js";

const MILLION = 1e6, MS_PER_HOUR = 3.6e6;

/** Return the cost of a model's tokens, as the API server prices them (api/prices.py). Pure. */
export function costOfTokens({ name, promptTokens, completionTokens }, prices) {
  const rates = { ...prices, ...pricesOf(name, prices.models ?? {}) };
  return (promptTokens * (rates.per_million_prompt_tokens ?? 0) + completionTokens * (rates.per_million_completion_tokens ?? 0)) / MILLION;
}

function pricesOf(name, models) {
  if (!name) return {};
  const [entry] = Object.keys(models).filter((start) => name.startsWith(start)).sort((a, b) => b.length - a.length);
  return entry === undefined ? pricesOf(name.split("/").slice(1).join("/"), models) : models[entry];
}

/** Return the cost of a run that is not accounted yet: itself, its time and its tokens. Pure. */
export function costOfRun(milliseconds, models, prices) {
  return (prices.per_run ?? 0) + (milliseconds * (prices.per_run_hour ?? 0)) / MS_PER_HOUR + costOfModels(models, prices);
}

const costOfModels = (models, prices) => models.reduce((sum, model) => sum + costOfTokens(model, prices), 0);

/** Create the section of tokens and cost of a run; null for a run without a model call and without prices. */
export function costs(details, steps, prices) {
  const models = [...steps.models.values()], { run } = steps;
  if (!models.length && !prices) return null;
  const accounted = prices && (details.usage?.cost ?? null) !== null;
  const cost = accounted ? details.usage.cost : prices && details.duration_ms !== null ? costOfRun(details.duration_ms, models, prices) : null;
  return h("section", { "aria-label": "Tokens and cost" }, h("h3", {}, "Tokens and cost"),
    models.length > 0 && table([
      ["Model", (row) => row.name, "code"],
      ["Calls", (row) => row.calls.toLocaleString(), "number"],
      ["In", (row) => row.promptTokens.toLocaleString(), "number"],
      ["Out", (row) => row.completionTokens.toLocaleString(), "number"],
      ...(prices ? [["Cost", (row) => money(costOfModels(row.models ?? [row], prices), prices.currency), "number"]] : []),
    ], models.length > 1 ? [...models, { name: "all", models, calls: run.modelCalls, promptTokens: run.promptTokens, completionTokens: run.completionTokens }] : models, ""),
    cost !== null && h("p", {}, `The run cost ${money(cost, prices.currency)}, `, h("span", { class: "quiet" }, accounted ? "with its time and artifacts, without its build." : "with its time, without its build; its artifacts are added some seconds after its end.")));
}
