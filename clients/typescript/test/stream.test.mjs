// Event streams against a small server: `node --test test` after `npm run build`.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Crewyard, CrewyardError, isEvent, ok } from "../dist/index.js";
import { MOST, Parser } from "../dist/sse.js";

/** Gives events 1 to `count`, `each` per connection, the last one terminal. */
async function service(t, count, each, before = () => false) {
  const asked = [];
  const server = createServer((request, response) => {
    const last = request.headers["last-event-id"] ?? "";
    asked.push(last);
    if (before(response, asked.length)) return;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("retry: 1\n\n: keepalive\n\n");
    const from = Number(last);
    for (let id = from + 1; id <= Math.min(from + each, count); id++) {
      const type = id === count ? "run.completed" : "log";
      response.write(`id: ${id}\nevent: ${type}\ndata: {"message": "line ${id}"}\n\n`);
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/`;
  return { crewyard: new Crewyard({ url, apiKey: "crw_key" }), asked, url };
}

async function read(events) {
  const ids = [];
  for await (const event of events) ids.push(event.id);
  return ids;
}

const refuse = (response, status, code) => {
  response.writeHead(status, { "X-Request-Id": "req_1", "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { code, message: "No.", details: { field: "id" } } }));
  return true;
};

test("following goes on where it broke", async (t) => {
  const { crewyard, asked } = await service(t, 5, 2);
  assert.deepEqual(await read(crewyard.followRun("run_a")), [1, 2, 3, 4, 5]);
  assert.deepEqual(asked, ["", "2", "4"]);
});

test("following begins behind what is known", async (t) => {
  const { crewyard } = await service(t, 5, 9);
  assert.deepEqual(await read(crewyard.followRun("run_a", { after: 3 })), [4, 5]);
});

test("nothing more ends it", async (t) => {
  const { crewyard } = await service(t, 5, 9, (response) => response.writeHead(204).end());
  assert.deepEqual(await read(crewyard.followRun("run_a", { after: 5 })), []);
});

test("a refusal is an error at once", async (t) => {
  const { crewyard, asked } = await service(t, 5, 9, (response) => refuse(response, 404, "not_found"));
  const right = (error) =>
    error instanceof CrewyardError && error.code === "not_found" && error.requestId === "req_1" && error.details.field === "id";
  await assert.rejects(read(crewyard.followRun("run_a")), right);
  assert.equal(asked.length, 1);
  await assert.rejects(ok(crewyard.api.GET("/v1/runs/{id}", { params: { path: { id: "run_a" } } })), right);
});

const page = (response) => {
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end("<html>Sign in</html>");
  return true;
};
const foreign = (error) => error instanceof CrewyardError && error.code === "foreign_answer" && !error.passing && /text\/html/.test(error.message);

test("a page where JSON or a stream is expected is an error that says so", async (t) => {
  const { crewyard, asked } = await service(t, 5, 9, page);
  await assert.rejects(ok(crewyard.api.GET("/v1/runs")), foreign);
  await assert.rejects(ok(crewyard.api.POST("/v1/runs", { body: { deployment: "research" } })), foreign);
  await assert.rejects(read(crewyard.followRun("run_a")), foreign);
  assert.equal(asked.length, 3);
  // A crew's file may be a page.
  const place = { path: { id: "run_a", artifact: "report.html" } };
  const file = await ok(crewyard.api.GET("/v1/runs/{id}/artifacts/{artifact}", { params: place, parseAs: "text" }));
  assert.match(file, /Sign in/);
});

test("what claims to be JSON and is none is an error of ours", async (t) => {
  const cut = (response) => response.writeHead(200, { "Content-Type": "application/json" }).end('{"data": ');
  const { crewyard } = await service(t, 5, 9, cut);
  await assert.rejects(ok(crewyard.api.GET("/v1/runs")), { name: "CrewyardError", code: "foreign_answer" });
});

const build = (response, number) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  response.write("retry: 1\n\n");
  if (number === 1) response.end('id: 1.4\nevent: log\ndata: {"message": "ab", "continues": true}\n\n');
  else {
    response.write('id: 1.6\nevent: log\ndata: {"message": "cd"}\n\nid: 2.0\nevent: log\ndata: {"message": ""}\n\n');
    response.end('id: end\nevent: end\ndata: {"status": "failed", "error": {"reason": "BuildFailed", "message": "No."}}\n\n');
  }
  return true;
};

test("a build's log is lines, and tells how the build ended", async (t) => {
  const { crewyard, asked } = await service(t, 5, 9, build);
  const lines = [];
  const end = await crewyard.waitForBuild("dep_a", (line) => lines.push(line));
  assert.deepEqual(lines, ["abcd", ""]);
  assert.deepEqual(end, { status: "failed", error: { reason: "BuildFailed", message: "No." } });
  assert.deepEqual(asked, ["", "1.4"]);
});

test("what passes is tried again", async (t) => {
  const { crewyard, asked } = await service(t, 2, 9, (response, n) => n === 1 && refuse(response, 503, "unavailable"));
  assert.deepEqual(await read(crewyard.followRun("run_a")), [1, 2]);
  assert.equal(asked.length, 2);
});

test("what never passes is given up", async (t) => {
  const { crewyard, asked } = await service(t, 2, 0);
  await assert.rejects(read(crewyard.followRun("run_a", { attempts: 3 })), { code: "connection_lost" });
  assert.equal(asked.length, 4);
});

test("a proxy that cuts every connection does not end a silent run", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => (now += 10_000));
  const cut = (response, number) => number <= 30 && Boolean(response.end("retry: 1\n\n: keepalive\n\n"));
  const { crewyard, asked } = await service(t, 1, 9, (response, number) => {
    response.setHeader("Content-Type", "text/event-stream");
    return cut(response, number);
  });
  assert.deepEqual(await read(crewyard.followRun("run_a")), [1]);
  assert.equal(asked.length, 31);
});

test("a browser's fetch, which takes no object to be called on, follows too", async (t) => {
  const { asked, url } = await service(t, 2, 9);
  const strict = function (...given) {
    if (this !== undefined && this !== globalThis) throw new TypeError("Illegal invocation");
    return fetch(...given);
  };
  const crewyard = new Crewyard({ url, apiKey: "crw_key", fetch: strict });
  assert.deepEqual(await read(crewyard.followRun("run_a", { attempts: 0 })), [1, 2]);
  const upload = { method: "PUT", headers: {}, upload_url: url };
  await crewyard.sendUpload(upload, new Uint8Array(1));
  assert.equal(asked.length, 2);
});

test("a redirect makes no other call of one that changes something", async (t) => {
  const moved = (response) => response.writeHead(301, { Location: "/v1/runs" }).end();
  const { crewyard, asked } = await service(t, 2, 9, moved);
  const started = ok(crewyard.api.POST("/v1/runs", { body: { deployment: "research" } }));
  await assert.rejects(started, { name: "CrewyardError", code: "redirected", status: 301, message: /\/v1\/runs/ });
  assert.equal(asked.length, 1);
});

test("no answer at all is an error of ours, which says why", async (t) => {
  const { crewyard } = await service(t, 2, 9, (response) => response.destroy() || true);
  const asked = ok(crewyard.api.GET("/v1/runs"));
  await assert.rejects(asked, (error) => error instanceof CrewyardError && error.status === 0 && error.passing && error.cause instanceof TypeError);
  const aborted = ok(crewyard.api.GET("/v1/runs", { signal: AbortSignal.abort(new RangeError("enough")) }));
  await assert.rejects(aborted, RangeError);
  const upload = { method: "PUT", headers: {}, upload_url: "http://127.0.0.1:9/" };
  await assert.rejects(crewyard.sendUpload(upload, new Uint8Array(1)), (error) => error instanceof CrewyardError && error.status === 0);
});

test("a caller who stops is not called again", async (t) => {
  const { crewyard, asked } = await service(t, 5, 9);
  for await (const event of crewyard.followRun("run_a")) {
    assert.ok(isEvent(event, "log"));
    break;
  }
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(read(crewyard.followRun("run_a", { signal })), /enough/);
  assert.equal(asked.length, 1);
});

test("messages come out whole however they are cut", () => {
  const text = "\r\nid: 1\r\nevent: log\r\ndata: a\r\ndata:b\r\n\r\n:x\nid: 2\rdata:\r\rdata: ü\n\nretry: 7\ndata: cut";
  for (let size = 1; size <= text.length; size++) {
    const parser = new Parser("");
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(found, [
      { id: "1", type: "log", data: "a\nb" },
      { id: "2", type: "message", data: "" },
      { id: "2", type: "message", data: "ü" },
    ]);
    assert.equal(parser.retry, 7);
  }
});

test("a message without end is refused", () => {
  assert.throws(() => [...new Parser("").push("x".repeat(MOST + 1))], RangeError);
});
