// Tests of console modules outside a browser: `node console_parts.mjs DIRECTORY PART` exits with 0 on success.

import assert from "node:assert";
import { pathToFileURL } from "node:url";

const [directory, part] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${directory}/${name}`));

class Element {
  constructor(tag) { Object.assign(this, { tag, children: [], scrollTop: 0, clientHeight: 0, scrollHeight: 0 }); }
  append(...children) { this.children.push(...children); }
  setAttribute() {}
  addEventListener() {}
  remove() {}
  get childElementCount() { return this.children.length; }
  get lastChild() { return this.children.at(-1); }
}
globalThis.document = { createElement: (tag) => new Element(tag), getElementById: () => new Element("div"), hidden: true };
globalThis.sessionStorage = { getItem: () => "crw_key", setItem() {}, removeItem() {} };

const PARTS = {
  async markdown() {
    const { markdown } = await load("run/markdown.js");
    const many = 500000;
    const texts = ["*", "[", "`", "_", "[a](", "`a`", "# a\n", "- a\n", "> a\n", "- ", "1", "**a", "![", "|"].map((text) => text.repeat(many));
    texts.push(`# ${" ".repeat(many)}\u2028x\u2028y`, `- ${" ".repeat(many)}\u2028x\u2028y`, `${" ".repeat(many)}x`);
    for (const text of texts) assert(markdown(text).length > 0);
    const text = (element) => (typeof element === "string" ? element : element.children.map(text).join(""));
    const lists = markdown("- a\n- b\n  c\n\n1. d\n\nsee [e](https://f) and **g**\n");
    assert.deepEqual(lists.map((element) => [element.tag, text(element)]),
      [["ul", "ab c"], ["ol", "d"], ["p", "see e (https://f) and g"]]);
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

  // Downloads use a range request, which the API never redirects to a bucket.
  async files() {
    const requested = [];
    globalThis.fetch = async (path, { headers }) => { requested.push(headers.Range); return { ok: true, blob: async () => "b" }; };
    const { fetchBlob, randomHex } = await load("api.js");
    await fetchBlob("/a", 5);
    await fetchBlob("/b", 0);
    assert.deepEqual(requested, ["bytes=0-", undefined]);
    assert(/^[0-9a-f]{32}$/.test(randomHex()));
  },

  // Memory stays bounded with many events.
  async timeline() {
    const { Timeline } = await load("run/timeline.js");
    const timeline = new Timeline();
    timeline.schedule = () => {};
    Element.prototype.remove = function remove() { timeline.element.children.splice(1, 1); };
    const count = 200000;
    for (let number = 1; number <= count; number += 1) timeline.add({ type: "log", data: { message: String(number) } });
    while (timeline.waiting.length) timeline.write();
    const lines = timeline.element.children.slice(1).flatMap((block) => block.children);
    assert(lines.length <= 20000 && lines.length > 19000);
    assert.equal(lines.at(-1).children[1].children[0], String(count));
    assert.equal(timeline.dropped + lines.length, count);
    assert(timeline.note.textContent.includes(String(timeline.dropped)));
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
