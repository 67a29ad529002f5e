// From an archive to an artifact, told as lines of JSON. Called by tests/clients/test_whole.py.
import { readFile } from "node:fs/promises";
import { Crewyard, CrewyardError, isEvent, ok } from "crewyard";

const [name, archive] = process.argv.slice(2);
const crewyard = new Crewyard({ url: process.env.CREWYARD_URL, apiKey: process.env.CREWYARD_API_KEY });
const { api } = crewyard;
const tell = (what, value) => console.log(JSON.stringify([what, value]));
const refused = async (answer) => {
  const error = await ok(answer).then(() => undefined, (found) => found);
  tell("refused", error instanceof CrewyardError ? [error.status, error.code, error.details.field ?? null] : String(error));
};

await ok(api.POST("/v1/projects", { body: { name } }));
await refused(api.POST("/v1/projects", { body: { name } }));
await refused(api.GET("/v1/runs", { params: { query: { per_page: 1000 } } }));
await refused(api.GET("/v1/runs/{id}", { params: { path: { id: "run_none" } } }));
await refused(new Crewyard({ url: process.env.CREWYARD_URL, apiKey: "crw_no" }).api.GET("/v1/projects"));

const content = await readFile(archive);
const { data: upload } = await ok(api.POST("/v1/uploads", { body: { project: name, size: content.length } }));
await crewyard.sendUpload(upload, content);
const made = { project: name, build_context_url: upload.build_context_url, message: "By a client" };
const { data: deployment } = await ok(api.POST("/v1/deployments", { body: made }));
const lines = [];
const end = await crewyard.waitForBuild(deployment.id, (line) => lines.push(line));
tell("log", lines.length > 0 && lines.every((line) => !line.startsWith("{") && !line.includes("\n")));
tell("build", end.status);
const deployments = await ok(api.GET("/v1/deployments", { params: { query: { project: name } } }));
tell("deployments", deployments.data.map((found) => [found.status, found.message]));

const { data: run } = await ok(api.POST("/v1/runs", { body: { deployment: name, input: { name: "Ada" } } }));
const ids = [];
for await (const event of crewyard.followRun(run.id)) {
  ids.push(event.id);
  if (isEvent(event, "log")) tell("line", event.data.message);
  if (isEvent(event, "run.completed")) tell("output", event.data.output);
}
tell("in order", ids.every((id, place) => id === place + 1));
const again = [];
for await (const event of crewyard.followRun(run.id, { after: ids.length })) again.push(event);
tell("after the end", again.length);

const { data: files } = await ok(api.GET("/v1/runs/{id}/artifacts", { params: { path: { id: run.id } } }));
tell("artifacts", files.map((file) => [file.name, file.size]));
const place = { path: { id: run.id, artifact: "nested/report.md" } };
tell("artifact", await ok(api.GET("/v1/runs/{id}/artifacts/{artifact}", { params: place, parseAs: "text" })));
const { data: ended } = await ok(api.GET("/v1/runs/{id}", { params: { path: { id: run.id } } }));
tell("status", ended.status);
const events = await ok(api.GET("/v1/runs/{id}/events", { params: { path: { id: run.id }, query: { per_page: 1 } } }));
tell("page", [events.data.length, events.pagination.total === ids.length]);
await refused(api.POST("/v1/runs/{id}/cancel", { params: { path: { id: run.id } } }));
await ok(api.DELETE("/v1/projects/{name}", { params: { path: { name } } }));
