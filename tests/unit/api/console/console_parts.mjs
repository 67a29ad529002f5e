// Tests of console modules outside a browser: `node console_parts.mjs DIRECTORY PART` exits with 0 on success.

import assert from "node:assert";
import { pathToFileURL } from "node:url";

const [directory, part] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${directory}/${name}`));

class Element {
  constructor(tag) {
    const classList = { add() {}, toggle() {} };
    Object.assign(this, { tag, children: [], attributes: {}, scrollTop: 0, clientHeight: 0, scrollHeight: 0, style: {}, dataset: {}, classList });
  }
  append(...children) { this.children.push(...children); }
  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute() {}
  querySelector() { return null; }
  replaceChildren(...children) { this.children = children; }
  addEventListener(name, work) { this.listeners = { ...this.listeners, [name]: work }; }
  remove() {}
  focus() {}
  contains() { return false; }
  get value() { return this.written ?? this.children.join(""); }
  set value(text) { this.written = text; }
  get childElementCount() { return this.children.length; }
  get lastChild() { return this.children.at(-1); }
}
globalThis.document = { createElement: (tag) => new Element(tag), getElementById: () => new Element("div"), hidden: true };
globalThis.sessionStorage = { getItem: () => "crw_key", setItem() {}, removeItem() {} };

const PARTS = {
  async markdown() {
    const { markdown } = await load("run/markdown.js");
    const many = 500000;
    const texts = ["|-", "|-\n", "-", "- -", "a|\n-|\n", "*", "[", "`", "_", "[a](", "`a`", "# a\n", "- a\n", "> a\n", "- ", "1", "**a", "![", "|"].map((text) => text.repeat(many));
    texts.push(`# ${" ".repeat(many)}\u2028x\u2028y`, `- ${" ".repeat(many)}\u2028x\u2028y`, `${" ".repeat(many)}x`);
    for (const text of texts) assert(markdown(text).length > 0);
    const text = (element) => (typeof element === "string" ? element : element.children.map(text).join(""));
    const lists = markdown("- a\n- b\n  c\n\n1. d\n\nsee [e](https://f) and **g**\n");
    assert.deepEqual(lists.map((element) => [element.tag, text(element)]),
      [["ul", "ab c"], ["ol", "d"], ["p", "see e (https://f) and g"]]);
    // An empty line between the items of a list makes several lists of it, which go on with its numbers.
    assert.deepEqual(markdown("1. a\n\n2. b\n\n- c\n\n10) d\n").map((element) => element.attributes.start), ["1", "2", undefined, "10"]);
    const tags = (element) => (typeof element === "string" ? element : `${element.tag}(${element.children.map(tags).join("")})`);
    const [one, rule, two] = markdown("| a | **b** |\n|:---|---:|\n| 1 | 2 | 3 |\n| 4 |\n\n---\n\nx | y\nno | rule\n");
    assert.equal(tags(one.children[0]), "table(thead(tr(th(a)th(b(b))))tbody(tr(td(1)td(2))tr(td(4)td())))");
    assert.deepEqual([rule.tag, two.tag, text(two)], ["hr", "p", "x | y no | rule"]);
    const [escaped] = markdown("| a \\| b | c |\n|---|---|\n| 1 | `x \\| y` \\|\n");
    assert.equal(tags(escaped.children[0]), "table(thead(tr(th(a | b)th(c)))tbody(tr(td(1)td(code(x | y) |))))");
  },

  // A silent connection is closed, and the next one resumes after the last message.
  async silence() {
    const real = setTimeout;
    globalThis.setTimeout = (work, time) => real(work, time / 1000);
    const requested = [];
    globalThis.fetch = async (path, { headers, signal }) => {
      requested.push(headers["Last-Event-ID"]);
      const first = requested.length === 1;
      const body = new ReadableStream({ start(stream) {
        const text = first ? "id: 1\nevent: log\ndata: {}\n\n" : "id: 2\nevent: run.completed\ndata: {}\n\n";
        stream.enqueue(new TextEncoder().encode(text));
        if (first) signal.addEventListener("abort", () => stream.error(new Error("aborted")));
        else stream.close();
      } });
      return { ok: true, status: 200, body };
    };
    const { followStream } = await load("api.js");
    const received = [];
    await followStream("/v1/runs/x/events", new AbortController().signal, (message) => received.push(message.id), ({ type }) => type === "run.completed");
    assert.deepEqual([received, requested], [["1", "2"], [undefined, "1"]]);
  },

  // A page stays through a long outage: its stream reconnects until the service is back, and then goes on.
  async outage() {
    const real = setTimeout, failures = 100;
    globalThis.setTimeout = (work, time) => real(work, time / 1e6);
    let requests = 0;
    globalThis.fetch = async () => {
      requests += 1;
      if (requests <= failures) throw new TypeError("unreachable");
      return { ok: true, status: 200, body: new ReadableStream({ start(stream) {
        stream.enqueue(new TextEncoder().encode("id: 1\nevent: run.completed\ndata: {}\n\n"));
        stream.close();
      } }) };
    };
    const { followStream } = await load("api.js"), received = [];
    await followStream("/v1/runs/x/events", new AbortController().signal, ({ id }) => received.push(id), () => true);
    assert.deepEqual([received, requests], [["1"], failures + 1]);
  },

  // Downloads use a range request, which the API never redirects to a bucket.
  async files() {
    const requested = [];
    globalThis.fetch = async (path, { headers }) => { requested.push(headers.Range); return { ok: true, blob: async () => "b" }; };
    const { fetchBlob, randomHex } = await load("api.js");
    await fetchBlob("/a", 5);
    await fetchBlob("/b", 0);
    await fetchBlob("/c", 5, undefined, 3);
    assert.deepEqual(requested, ["bytes=0-", undefined, "bytes=0-2"]);
    assert(/^[0-9a-f]{32}$/.test(randomHex()));
  },

  // Memory stays bounded with many events.
  async events() {
    globalThis.ResizeObserver = class { observe() {} };
    const { EventLog } = await load("run/event_log.js");
    const log = new EventLog(() => {});
    log.schedule = () => {};
    const count = 450000;
    for (let number = 1; number <= count; number += 1) log.add({ id: String(number), type: "log", data: { message: String(number) } });
    while (log.scanned < log.events.length) log.work();
    assert(log.events.length <= 200000 && log.events.length >= 180000);
    assert.equal(log.dropped + log.shown.length, count);
    assert.equal(log.shown.at(-1).data.message, String(count));
    assert(log.countText().includes(log.dropped.toLocaleString()));
    assert(log.list.space.children.length < 100);
  },

  // Events that have arrived together are handled in short tasks, by a clock that each look at it moves on.
  async pauses() {
    globalThis.ResizeObserver = class { observe() {} };
    const count = 20000, lookMs = 0.05, mostMs = 10;
    let now = 0, task = 0, longest = 0;
    globalThis.performance = { now: () => { now += lookMs; return now; } };
    const begin = () => { task = now; };
    globalThis.MessageChannel = class {
      constructor() {
        this.port1 = { close() {} };
        this.port2 = { postMessage: () => setImmediate(() => { begin(); this.port1.onmessage(); }) };
      }
    };
    const text = Array.from({ length: count }, (_, index) => `id: ${index + 1}\nevent: log\ndata: {"message": "x"}\n\n`).join("");
    globalThis.fetch = async () => ({ ok: true, status: 200, body: new ReadableStream({ start(stream) {
      stream.enqueue(new TextEncoder().encode(`${text}id: ${count + 1}\nevent: run.completed\ndata: {}\n\n`));
      stream.close();
    } }) });
    const { followStream } = await load("api.js");
    const { EventLog } = await load("run/event_log.js");
    const log = new EventLog(() => {});
    log.schedule = () => {};
    begin();
    await followStream("/v1/runs/x/events", new AbortController().signal, (message) => {
      log.add(message);
      longest = Math.max(longest, now - task);
    }, ({ type }) => type === "run.completed");
    assert.equal(log.events.length, count + 1);
    assert(longest > 0 && longest <= mostMs, `followed ${longest} ms at once`);
    for (const step of [1, 0.5]) {
      globalThis.performance = { now: () => { now += step; return now; } };
      log.setFilter({ text: "x" });
      const before = now;
      log.work();
      assert(log.scanned < log.events.length && now - before <= mostMs, `filtered ${now - before} ms at once`);
    }
    while (log.scanned < log.events.length) log.work();
    assert.equal(log.shown.length, count);
  },

  // Ends without starts, starts without ends, repeated and interleaved steps: no exception, and the tree stays bounded.
  async steps() {
    const { Steps, rowsOf } = await load("run/steps.js");
    const at = (second) => new Date(1e12 + second * 1000).toISOString();
    const tree = (events) => {
      const steps = new Steps();
      events.forEach(([type, data], index) => steps.add({ type, id: String(index + 1), data: { timestamp: at(index), ...data } }));
      return rowsOf(steps.run).map(({ step, level, name }) => [level, name, step.status]);
    };
    assert.deepEqual(tree([["run.started", {}], ["agent.completed", { agent: "a", task: "t" }], ["tool.error", { agent: null, tool: "x", error: "e" }],
      ["agent.started", { agent: "b", task: "u" }], ["tool.called", { agent: "b", tool: "y" }], ["run.failed", { error: { reason: "CrewError" } }]]),
    [[1, "Run", "failed"], [2, "a", "succeeded"], [2, "x", "failed"], [2, "b", "canceled"], [3, "y", "canceled"]]);
    assert.deepEqual(tree([["run.started", {}], ["tool.called", { agent: "a", tool: "x" }], ["tool.called", { agent: "a", tool: "x" }],
      ["tool.result", { agent: "a", tool: "x" }]]), [[1, "Run", "running"], [2, "x", "succeeded"], [2, "x", "running"]]);
    // Tasks may be any JSON: an end belongs to the start with an equal task, and the row shows it.
    const tasks = new Steps();
    tasks.add({ type: "run.started", id: "1", data: { timestamp: at(0) } });
    for (const [type, number] of [["agent.started", 1], ["agent.started", 2], ["agent.completed", 1]]) {
      tasks.add({ type, id: "2", data: { timestamp: at(1), agent: "a", task: { number }, output: number } });
    }
    assert.deepEqual(tasks.run.children[0].children.map(({ name, status }) => [name, status]), [['{"number":1}', "succeeded"], ['{"number":2}', "running"]]);
    // Only a model call with a valid duration has a row: it begins that time before its event, in the run.
    const calls = (...durations) => {
      const steps = new Steps();
      steps.add({ type: "run.started", id: "1", data: { timestamp: at(0) } });
      durations.forEach((took, index) => steps.add({ type: "usage", id: String(index + 2), data: { timestamp: at(10), model: "m", prompt_tokens: 3, completion_tokens: 4, duration_ms: took } }));
      assert.equal(steps.run.promptTokens, 3 * durations.length);
      return steps.run.children.map(({ kind, name, start, end, status, promptTokens, last }) => [kind, name, end - start, status, promptTokens, last]);
    };
    assert.deepEqual(calls(2500, 0), [["model", "m", 2500, "succeeded", 3, 2], ["model", "m", 0, "succeeded", 3, 3]]);
    assert.deepEqual(calls(undefined, null, -1, 1.5, "2500", true, [], NaN, 7 * 24 * 3.6e6 + 1, 1e300), []);
    assert.deepEqual(calls(7 * 24 * 3.6e6).map(([, , took]) => took), [10000]);
    // As for the accounting of the service, only integers from 0 to 1e9 are counts.
    const counted = new Steps();
    for (const tokens of ["12", true, -5, 1.5, 1e9 + 1, {}, null, 7]) {
      counted.add({ type: "usage", id: "1", data: { timestamp: at(0), model: "m", prompt_tokens: tokens, completion_tokens: tokens } });
    }
    assert.deepEqual([counted.run.promptTokens, counted.run.completionTokens, counted.models.get("m").promptTokens], [7, 7, 7]);
    // The prices of models are those of the API server.
    const { costOfRun, costOfTokens } = await load("run/cost.js");
    const prices = { per_run: 1, per_million_prompt_tokens: 1, models: { "gpt-4o": { per_million_prompt_tokens: 2.5, per_million_completion_tokens: 10 }, "gpt-4o-mini": { per_million_prompt_tokens: 0.15 }, "azure/gpt": { per_million_prompt_tokens: 0 } } };
    const million = (name) => ({ name, promptTokens: 1e6, completionTokens: 1e6 });
    const named = ["gpt-4o", "gpt-4o-mini-2024", "openrouter/openai/gpt-4o", "azure/gpt-4o", "gpt-4", "gpt-4/o", "", "toString"];
    assert.deepEqual(named.map((name) => costOfTokens(million(name), prices)), [12.5, 0.15, 12.5, 0, 1, 1, 1, 1]);
    assert.equal(costOfRun(0, [million("gpt-4o"), million("gpt-4")], prices), 14.5);
    assert.equal(costOfTokens(million("gpt-4o"), { per_million_completion_tokens: 3 }), 3);
    const { eventLine } = await load("run/event_text.js");
    const said = { model: "m", prompt_tokens: 3, completion_tokens: 4 };
    assert.deepEqual([2500, -1].map((took) => eventLine({ type: "usage", data: { ...said, duration_ms: took } })), ["m: 3 tokens in, 4 out, 2.5 s", "m: 3 tokens in, 4 out"]);
    const types = ["agent.started", "agent.completed", "agent.error", "tool.called", "tool.result", "tool.error", "usage", "run.started", "run.failed", "log"];
    const many = new Steps();
    for (let number = 0; number < 60000; number += 1) {
      const data = { timestamp: at(number), agent: [null, "a", "b"][number % 3], task: number % 5 ? "t" : undefined, tool: "x", duration_ms: number % 2 ? 10 : undefined };
      many.add({ type: types[(number * 7 + (number >> 3)) % types.length], id: String(number), data });
    }
    assert(rowsOf(many.run).length <= 20001);
    for (let number = 0; number < 30000; number += 1) many.add({ type: "tool.called", id: "1", data: { timestamp: at(0), tool: "z" } });
    assert(many.count <= 20000 && many.dropped > 0);
  },

  async csv() {
    const { parseCsv } = await load("run/csv.js");
    assert.deepEqual(parseCsv('a,"b ""c"", d"\r\n1,"x\ny"\n\n', ",", 10), { rows: [["a", 'b "c", d'], ["1", "x\ny"]], more: false });
    assert.equal(parseCsv("1\n".repeat(500000), ",", 10).more, true);
    for (const text of ['"', '""', ",", '"a', 'a"b'].map((part) => part.repeat(300000))) parseCsv(text, ",", 100);
  },

  async statistics() {
    const { runStatistics } = await load("project/statistics.js");
    const runs = [1, 2, 3, 4].map((duration) => ({ status: duration === 4 ? "failed" : "succeeded", duration_ms: duration }));
    assert.deepEqual(runStatistics([...runs, { status: "running", duration_ms: null }, { status: "canceled", duration_ms: 9 }]),
      { ended: 4, share: 0.75, median: 2, p95: 4 });
    assert.deepEqual(runStatistics([]), { ended: 0, share: null, median: null, p95: null });
    const { runsNow } = await load("project/statistics.js");
    assert.deepEqual(runsNow([{ name: "queue", used: 1250, limit: 2000 }, { name: "concurrent_runs", used: 2, limit: 2 }]), { running: "2", waiting: "1,250" });
    assert.deepEqual(runsNow([]), { running: "–", waiting: "–" });
    const { deploymentsBetween } = await load("deployment/rollback.js");
    const rows = ["d", "c", "b", "a"].map((id) => ({ id }));
    const names = ({ undone, between }) => [undone, between?.map(({ id }) => id).join("") ?? null];
    assert.deepEqual(["b", "d", "x"].map((target) => names(deploymentsBetween(rows, "c", target))), [[true, "c"], [false, "d"], [true, null]]);
  },

  // The page of a pending run shows why it waits, and asks for it again only while it waits and is in sight.
  async waiting() {
    const timers = new Map(), reads = [];
    globalThis.setInterval = (work, time) => { timers.set(time, work); return time; };
    globalThis.clearInterval = (time) => timers.delete(time);
    globalThis.ResizeObserver = class { observe() {} };
    globalThis.location = { hash: "" };
    document.hidden = false;
    const details = { id: "run_a", status: "pending", queue_position: 2, waiting: { reason: "Queued", message: "Position 2." } };
    globalThis.fetch = async (path) => {
      if (path.endsWith("/events")) return { ok: true, status: 200, body: new ReadableStream() };
      if (path === "/v1/runs/run_a") reads.push(path);
      return { ok: true, status: 200, text: async () => JSON.stringify(path === "/v1/runs/run_a" ? { data: { ...details } } : { data: [], pagination: { total: 0 } }) };
    };
    const text = (element) => element.children?.map(text).join(" ") ?? String(element);
    const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate); };
    const { run } = await load("run/run.js");
    const container = new Element("main"), page = new AbortController();
    run(container, { id: "run_a" }, {}, page.signal);
    await settle();
    assert(text(container).includes("Position 2."));
    const tick = async () => { timers.get(3000)?.(); await settle(); };
    const [header] = container.children, before = header.children;
    await tick();
    assert.equal(header.children, before);
    Object.assign(details, { queue_position: 1, waiting: { reason: "Queued", message: "Position 1." } });
    await tick();
    assert(text(container).includes("Position 1."));
    document.hidden = true;
    await tick();
    assert.equal(reads.length, 3);
    document.hidden = false;
    details.status = "running";
    await tick();
    await tick();
    assert.equal(reads.length, 4);
    page.abort();
    assert.equal(timers.size, 0);
  },

  // The pages of a project, a deployment and a run say who created it, where the service knows it.
  async creators() {
    globalThis.ResizeObserver = class { observe() {} disconnect() {} };
    globalThis.location = { hash: "" };
    const text = (element) => element.children?.map(text).join(" ") ?? String(element);
    const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate); };
    const common = { id: "a", name: "a", project: "a", created_at: "2026-11-29T10:00:00Z", ready: { status: true }, plan: "free" };
    for (const [module, page, status] of [["project/project.js", "project"], ["deployment/deployment.js", "deployment", "failed"], ["run/run.js", "run", "pending"]]) {
      const view = (await load(module))[page], shown = [];
      for (const creator of ["key:k1", null]) {
        globalThis.fetch = async (path) => {
          if (path.endsWith("/events") || path.endsWith("/logs")) return { ok: true, status: 200, body: new ReadableStream() };
          const data = path === `/v1/${page}s/a` ? { ...common, status, created_by: creator } : [];
          return { ok: true, status: 200, text: async () => JSON.stringify({ data, pagination: { total: 0 } }) };
        };
        const container = new Element("main"), open = new AbortController();
        view(container, { id: "a", name: "a", tab: "variables" }, {}, open.signal);
        await settle();
        open.abort();
        assert(text(container).includes(page === "project" ? "Plan" : "Created"), page);
        shown.push(/Created by( key:k1)?/.exec(text(container))?.[0]);
      }
      assert.deepEqual(shown, ["Created by key:k1", undefined], page);
    }
  },

  async money() {
    const { money } = await load("format.js");
    assert.deepEqual([0, 0.00004, 0.0137, 0.0999, 0.1, 12.345, 1234567.891].map((amount) => money(amount, "USD")),
      ["0.00 USD", "< 0.0001 USD", "0.0137 USD", "0.0999 USD", "0.10 USD", "12.35 USD", "1,234,567.89 USD"]);
    assert.equal(money(null, null), null);
    const { modelTable } = await load("project/usage.js");
    const text = (element) => (typeof element === "string" ? element : element.children.map(text).join(" "));
    const models = { a: { prompt_tokens: 1200, completion_tokens: 30, cost: 0.0123 }, b: { prompt_tokens: 7, completion_tokens: 0, cost: null } };
    const shown = (report) => modelTable(report)?.map(text).join(" ");
    assert.equal(shown({ models, currency: "USD" }), "Models Model In Out Cost a 1,200 30 0.0123 USD b 7 0 –");
    assert.equal(shown({ models: { b: models.b }, currency: null }), "Models Model In Out b 7 0");
    assert.equal(shown({ models: {}, currency: "USD" }), undefined);
  },

  async stages() {
    const { stagesOf } = await load("deployment/stages.js");
    const row = (details) => stagesOf({ created_at: new Date().toISOString(), ...details }).map(({ title, state }) => `${title} ${state}`).join(", ");
    const built = [{ name: "queued", seconds: 1 }, { name: "fetch", seconds: 2 }, { name: "plan", seconds: 0.1 }];
    const failed = (reason, stages) => ({ status: "failed", error: { reason }, stages });
    for (const [details, expected] of [
      [{ status: "pending" }, "Found done, Waiting now, Build next, Active next"],
      [{ status: "building" }, "Found done, Build now, Active next"],
      [{ status: "building", stages: [...built, { name: "assemble" }] }, "Found done, Waiting done, Fetch done, Plan done, Assemble now, Active next"],
      [{ status: "building", stages: built }, "Found done, Waiting done, Fetch done, Plan done, Build now, Active next"],
      [{ status: "building", stages: built, smoke_run: "run_smoke" }, "Found done, Waiting done, Fetch done, Plan done, Smoke run now, Active next"],
      [{ status: "active", smoke_run: "run_smoke" }, "Found done, Build done, Smoke run done, Active done"],
      [{ status: "superseded", stages: built.slice(0, 1) }, "Found done, Waiting done, Active done"],
      [failed("DependencyResolution", built), "Found done, Waiting done, Fetch done, Plan done, Dependencies failed, Active next"],
      [failed("ConfigInvalid", built), "Found done, Waiting done, Fetch done, Plan failed, Active next"],
      [failed("BuildTimeout", built), "Found done, Waiting done, Fetch done, Plan failed, Active next"],
      [failed("GitNotFound"), "Found done, Fetch failed, Active next"],
      [failed("Canceled"), "Found done, Build failed, Active next"],
      [{ ...failed("SmokeFailed", built), smoke_run: "run_smoke" }, "Found done, Waiting done, Fetch done, Plan done, Smoke run failed, Active next"],
    ]) assert.equal(row(details), expected);
    const waiting = { reason: "Unschedulable", message: "0/3 nodes" };
    for (const stages of [[...built, { name: "assemble" }], built, []])
      assert.equal(stagesOf({ status: "building", stages, waiting }).find(({ state }) => state === "now").note, "Unschedulable · 0/3 nodes");
  },

  async search() {
    const { matching } = await load("search.js");
    const name = "run_weekdays-202611290700-abcdefghij", rows = [{ name, note: "tides" }];
    for (const text of [name, "run-weekdays-202611290700-abcdefghij", "202611290700-abc", "tides 0700_abc"]) assert.deepEqual(matching(rows, text), rows);
    // Ids that are not listed open, too: those of schedules and of kubectl have several hyphens.
    for (const text of [name, name.replace("_", "-")]) {
      assert.deepEqual(matching([], text), [{ kind: "Run", name, address: `#/runs/${name}`, note: "" }]);
    }
    assert.equal(matching([], "dep-tides-2")[0].name, "dep_tides-2");
    assert.deepEqual(matching([], "crun-a"), []);
    // A project that is not among the newest opens by its whole name.
    assert.deepEqual(matching(rows, " Crun-a ", true), [{ kind: "Project", name: "crun-a", address: "#/projects/crun-a", note: "" }]);
    assert.deepEqual([matching(rows, "tides", true), matching([], "-a", true), matching([], "a b", true), matching([], "", true)], [rows, [], [], []]);
  },

  // All variables of a project are shown, also those of further pages.
  async variables() {
    const count = 250, name = (index) => `NAME_${index}`, perPage = 100;
    globalThis.fetch = async (path) => {
      const page = Number(new URL(path, "https://a").searchParams.get("page") ?? 1), first = (page - 1) * perPage;
      const data = Array.from({ length: Math.min(perPage, count - first) }, (_, index) => ({ name: name(first + index), updated_at: "2026-11-29T10:00:00Z" }));
      const pagination = { total: count, page, per_page: perPage, has_more: first + data.length < count };
      return { ok: true, status: 200, text: async () => JSON.stringify({ data, pagination }) };
    };
    const { variables } = await load("project/variables.js"), container = new Element("div");
    await variables(container, "research", {}, new AbortController().signal);
    const texts = (element) => (element instanceof Element ? element.children.flatMap(texts) : [element]);
    const shown = texts(container);
    assert.deepEqual(Array.from({ length: count }, (_, index) => name(index)).filter((one) => !shown.includes(one)), []);
  },

  // Editing fills the form, and saving keeps what the form does not have, as the service has it now.
  async schedules() {
    const { schedules, settingsOf, specOf } = await load("project/schedules.js");
    const plain = { name: "plain", cron: "@daily", time_zone: "UTC", input: null, entrypoint: null, labels: null, concurrency_policy: "Allow", starting_deadline: null, suspend: false, next_time: null };
    const full = { ...plain, name: "full", input: { topic: "tides" }, entrypoint: "report", labels: { team: "tides" }, concurrency_policy: "Forbid", starting_deadline: "10m", suspend: true };
    const long = settingsOf({ ...plain, input: { text: "x".repeat(100) } });
    assert.deepEqual([settingsOf(plain), settingsOf({ ...plain, input: {}, labels: {} }), long.length, long[0].length], [[], [], 1, "input ".length + 60]);
    assert.deepEqual(settingsOf(full), ["entrypoint report", 'input {"topic":"tides"}', "concurrency Forbid", "deadline 10m", "labels team=tides"]);
    assert.deepEqual(specOf(plain, { suspend: true }), { cron: "@daily", time_zone: "UTC", concurrency_policy: "Allow", suspend: true });
    let rows = [{ ...plain, last_run_id: "run_a", last_time: "2026-11-29T10:00:00Z" }, full];
    const sent = [];
    globalThis.fetch = async (path, { method, body }) => {
      if (method === "PUT") sent.push([path, JSON.parse(body)]);
      return { ok: true, status: 200, text: async () => JSON.stringify({ data: method === "PUT" ? {} : rows }) };
    };
    const container = new Element("div");
    const all = (element) => (element instanceof Element ? [element, ...element.children.flatMap(all)] : []);
    const find = (match) => all(container).find(match), input = (id) => find(({ attributes }) => attributes.id === id);
    const button = (label) => find(({ tag, attributes, children }) => tag === "button" && (attributes["aria-label"] ?? children[0]) === label);
    const heading = () => find(({ tag }) => tag === "h2").children[0];
    const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate); };
    const submit = async () => {
      find(({ tag }) => tag === "form").listeners.submit({ preventDefault() {} });
      await settle();
    };
    await schedules(container, "tides", {}, new AbortController().signal, {});
    assert(all(container).some(({ children }) => children[0] === "concurrency Forbid"));
    // The times are those of the browser, whose zone may be another one than the schedule's.
    const last = new Date(rows[0].last_time).toLocaleString([], { dateStyle: "medium", timeStyle: "long" });
    assert(all(container).some(({ tag, children }) => tag === "a" && children[0] === last));
    button("Edit full").listeners.click();
    assert.deepEqual([heading(), input("schedule").value, input("cron").value, input("zone").value, input("schedule-input-0").value], ["Edit full", "full", "@daily", "UTC", "tides"]);
    assert.equal(input("schedule").attributes.readonly, "");
    input("cron").value = "@hourly";
    rows = [plain, { ...full, starting_deadline: "20m" }];
    await submit();
    const { name, next_time: _next, ...spec } = rows[1], path = "/v1/projects/tides/schedules/";
    assert.deepEqual(sent.pop(), [`${path}${name}`, { ...spec, cron: "@hourly" }]);
    assert.equal(heading(), "Set a schedule");
    // A typed name of a schedule that exists keeps these, too; that of a new one has only what the form has.
    for (const [typed, kept] of [["full", spec], ["other", {}]]) {
      Object.assign(input("schedule"), { value: typed });
      Object.assign(input("cron"), { value: "@weekly" });
      Object.assign(input("zone"), { value: "" });
      await submit();
      assert.deepEqual(sent.pop(), [`${path}${typed}`, { ...kept, cron: "@weekly", time_zone: "UTC", input: {} }]);
    }
    // One that is suspended keeps what has changed since the page read it.
    button("Suspend plain").listeners.click();
    rows = [{ ...plain, cron: "@monthly" }, rows[1]];
    await settle();
    assert.deepEqual(sent.pop()[1], { cron: "@monthly", time_zone: "UTC", concurrency_policy: "Allow", suspend: true });
    // One that was removed while it was edited comes back whole.
    button("Edit full").listeners.click();
    rows = [plain];
    await submit();
    assert.deepEqual(sent.pop(), [`${path}full`, spec]);
    button("Edit plain").listeners.click();
    assert.equal(heading(), "Edit plain");
    button("Cancel").listeners.click();
    assert.deepEqual([heading(), input("schedule").value, sent], ["Set a schedule", "", []]);
  },

  // A new key stays in sight while the one that it replaces is revoked; it goes with its own revocation.
  async keys() {
    Object.assign(globalThis, { confirm: () => true, navigator: {} });
    let rows = [{ id: "old", name: "old", scopes: [] }];
    globalThis.fetch = async (_path, { method }) => {
      const found = method === "POST" ? { id: "new", name: "new", key: "crw_new" } : rows;
      return { ok: true, status: method === "DELETE" ? 204 : 200, text: async () => JSON.stringify({ data: found, pagination: { page: 1 } }) };
    };
    const { keys } = await load("installation/keys.js"), container = new Element("div");
    const all = (element) => (element instanceof Element ? [element, ...element.children.flatMap(all)] : [element]);
    const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate); };
    const revoke = async (name) => {
      all(container).find(({ attributes }) => attributes?.["aria-label"] === `Revoke ${name}`).listeners.click();
      await settle();
    };
    await keys(container, {}, new AbortController().signal);
    rows = [{ id: "new", name: "new", scopes: [] }, ...rows];
    all(container).find(({ tag }) => tag === "form").listeners.submit({ preventDefault() {} });
    await settle();
    await revoke("old");
    assert(all(container).includes("crw_new"));
    await revoke("new");
    assert(!all(container).includes("crw_new"));
  },

  // What was typed when a session ended is typed again after the next sign-in; the link to the content stays on its page.
  async session() {
    const stored = new Map([["crewyard.key", "crw_a"]]), listeners = {}, observers = [], skip = new Element("a");
    const ids = { main: new Element("main"), top: new Element("header"), notification: new Element("div") };
    let principal = "key:a", open = 0, focused = 0;
    globalThis.sessionStorage = { getItem: (name) => stored.get(name) ?? null, setItem: (name, value) => stored.set(name, value), removeItem: (name) => stored.delete(name) };
    Object.assign(document, { getElementById: (id) => ids[id] ?? null, querySelectorAll: () => [], body: new Element("body"),
      querySelector: (text) => (text === ".skip" ? skip : text === "dialog[open]" && open ? { close: () => { open -= 1; } } : null) });
    Object.assign(globalThis, { location: { hash: "#/projects", search: "", pathname: "/console/" }, scrollTo() {}, dispatchEvent: ({ type }) => listeners[type]?.(),
      addEventListener: (name, work) => { listeners[name] = work; }, MutationObserver: class { constructor(work) { observers.push(work); } observe() {} disconnect() {} } });
    globalThis.fetch = async (path) => {
      if (path === "/v1/whoami" && !principal) return { ok: false, status: 401, json: async () => null };
      const data = path === "/v1/whoami" ? { principal, scopes: ["admin"], projects: [] } : path === "/console/sign-in" ? null : [];
      return { ok: true, status: 200, json: async () => ({ data }), text: async () => JSON.stringify({ data, pagination: { page: 1, total: 0 } }) };
    };
    const settle = async () => { for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate); };
    const all = (element) => (element instanceof Element ? [element, ...element.children.flatMap(all)] : []);
    const field = (id, more) => ({ id, value: "", type: "text", tagName: "INPUT", ...more });
    Element.prototype.contains = () => true;
    ids.main.focus = () => { focused += 1; };
    await load("main.js");
    await settle();
    let prevented = 0;
    skip.listeners?.click({ preventDefault: () => { prevented += 1; } });
    assert.deepEqual([prevented, focused, location.hash], [1, 1, "#/projects"]);
    // The session of each principal ends while a dialog is open and two fields are typed into; another one gets none of it.
    for (const [next, view, kept] of [["key:b", "#/projects", true], ["user:c", "#/projects", false], ["user:c", "#/projects", true], ["user:c", "#/runs", false]]) {
      const typed = [field("name", { value: "tides" }), field("choice", { value: "1", tagName: "SELECT" }), field("box", { type: "checkbox", checked: true })];
      ids.main.querySelectorAll = (selector) => { assert(/^form[.]box .*:not\(\[type=password\], [.]masked\)$/.test(selector)); return typed; };
      open = 1;
      principal = null;
      stored.set("crewyard.key", "crw_ended");
      await (await load("api.js")).get("/v1/whoami").catch(() => {});
      await settle();
      assert.deepEqual([open, stored.has("crewyard.key"), all(ids.main).some(({ attributes }) => attributes.id === "key")], [0, false, true]);
      principal = next;
      stored.set("crewyard.key", `crw_${next}`);
      location.hash = view;
      observers.length = 0;
      listeners.hashchange();
      await settle();
      const fresh = { name: field("name"), choice: field("choice", { tagName: "SELECT", changed: 0, dispatchEvent() { this.changed += 1; } }), box: field("box", { type: "checkbox", checked: false }) };
      Object.assign(ids, fresh);
      for (const work of observers) work();
      assert.deepEqual([fresh.name.value, fresh.choice.value, fresh.choice.changed, fresh.box.checked], kept ? ["tides", "1", 1, true] : ["", "", 0, false]);
      for (const id of Object.keys(fresh)) delete ids[id];
      assert(!stored.has("crewyard.draft"));
      location.hash = "#/projects";
    }
  },

  async address() {
    const { currentRoute, route } = await load("router.js");
    route("/projects/:name", () => {});
    globalThis.location = { hash: "#/projects/%E0%A4%A" };
    assert.equal(currentRoute(), undefined);
    globalThis.location = { hash: "#/projects/a%2Fb" };
    assert.equal(currentRoute().parameters.name, "a/b");
  },
};

await PARTS[part]();
process.exit(0);
