// The search for ids and names: Ctrl+K or / opens it on every page.

import { list } from "./api.js";
import { fill, h, statusBadge } from "./dom.js";
import { ago } from "./format.js";
import { linkTo } from "./router.js";
import { key } from "./session.js";

const PER_KIND = 100, MAX_RESULTS = 20;
const IDS = [[/^run[_-][a-z0-9-]+$/, "runs", "Run"], [/^dep[_-][a-z0-9-]+$/, "deployments", "Deployment"]];
const PROJECT_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** Open the search. */
export function openSearch() {
  if (!key() || document.querySelector("dialog[open]")) return;
  const results = h("ul", { class: "results" }), status = h("p", { class: "quiet", role: "status" });
  let found = [], hasMore = false;
  const input = h("input", { type: "search", "aria-label": "Search", placeholder: "Id or name of a project, a deployment, a run",
    autocomplete: "off", oninput: () => show() });
  const show = () => {
    const rows = matching(found, input.value, hasMore).slice(0, MAX_RESULTS);
    fill(results, rows.map((row) => h("li", {}, h("a", { href: row.address, onclick: () => dialog.close() },
      h("span", { class: "quiet" }, row.kind), " ", row.name, " ", row.status && statusBadge(row.status), h("span", { class: "quiet" }, ` ${row.note}`)))));
    status.textContent = rows.length ? "" : "None of the newest 100 projects and runs has this in its name. A whole id or name always opens.";
  };
  const dialog = h("dialog", { class: "search", "aria-label": "Search", onclose: () => dialog.remove(), onkeydown: (event) => move(event, dialog) },
    h("form", { onsubmit: (event) => { event.preventDefault(); results.querySelector("a")?.click(); } }, input), results, status);
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
  everything().then((all) => { [found, hasMore] = all; show(); }, () => { status.textContent = "The service is unreachable."; });
}

/** Open the search at Ctrl+K, and at / outside of fields. */
export function watchShortcut() {
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
    if (!((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing))) return;
    event.preventDefault();
    openSearch();
  });
}

/** Return the rows of all kinds, and whether there are more projects. */
async function everything() {
  const [{ data: projects, pagination }, { data: runs }] = await Promise.all(["/v1/projects", "/v1/runs"].map((path) => list(path, { per_page: PER_KIND })));
  const active = projects.filter((project) => project.active_deployment_id);
  return [[
    ...projects.map(({ name }) => ({ kind: "Project", name, address: linkTo("projects", name), note: "" })),
    ...active.map(({ name, active_deployment_id: id }) => ({ kind: "Deployment", name: id, address: linkTo("deployments", id), note: `active in ${name}` })),
    ...runs.map((run) => ({ kind: "Run", name: run.id, address: linkTo("runs", run.id), status: run.status, note: [run.project, ago(run.created_at)].join(" · ") })),
  ], pagination.has_more];
}

/**
 * Return the rows whose name or note has each word of a text; an id that is not listed is a row of its own, and so is the
 * name of a project, if there are more than the listed ones. Pure.
 */
export function matching(rows, text, hasMore = false) {
  const alike = (words) => words.toLowerCase().replaceAll("-", "_");
  const words = alike(text).split(/\s+/);
  const some = rows.filter((row) => words.every((word) => alike(`${row.name} ${row.note}`).includes(word)));
  const id = text.trim().toLowerCase(), known = IDS.find(([expression]) => expression.test(id));
  if (some.length) return some;
  if (!known) return hasMore && PROJECT_NAME.test(id) ? [{ kind: "Project", name: id, address: linkTo("projects", id), note: "" }] : [];
  const name = `${id.slice(0, 3)}_${id.slice(4)}`;
  return [{ kind: known[2], name, address: linkTo(known[1], name), note: "" }];
}

function move(event, dialog) {
  // A browser would only empty the field at the first Escape.
  if (event.key === "Escape") dialog.close();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const places = [...dialog.querySelectorAll("input, a")], next = places.indexOf(document.activeElement) + step;
  places[Math.min(places.length - 1, Math.max(0, next))]?.focus();
  event.preventDefault();
}
