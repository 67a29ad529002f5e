// API client. Errors are ApiError; a 401 ends the session.

import { setConnected } from "./connection.js";
import { pause } from "./dom.js";
import { parseExact } from "./exact_json.js";
import { queryText } from "./format.js";
import { removeKey, key } from "./session.js";
import { messages } from "./stream.js";

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? (status < 500 ? `the service returned ${status}` : `The service or a proxy before it is not ready: it returned ${status}. Try again.`));
    this.status = status;
    this.code = body?.error?.code ?? "";
    this.details = body?.error?.details ?? {};
  }
}

/** A call that got no response. */
export class Unreachable extends Error {
  constructor(cause) {
    super("The service is unreachable.", { cause });
  }
}

async function request(method, path, { body, headers, signal, accept = "application/json", bearer = key() } = {}) {
  const requestHeaders = { Accept: accept, ...headers };
  if (bearer) requestHeaders.Authorization = `Bearer ${bearer}`;
  if (method !== "GET") requestHeaders["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, headers: requestHeaders, signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    body: method === "GET" || body === undefined ? undefined : JSON.stringify(body),
  }).catch((error) => { throw error instanceof TypeError ? new Unreachable(error) : error; });
  if (response.ok) return response;
  const errorBody = await response.json().catch(() => null);
  if (response.status === 401 && bearer && bearer === key()) {
    removeKey();
    dispatchEvent(new Event("signed-out"));
  }
  throw new ApiError(response.status, errorBody);
}

const READ_PAUSES_MS = [200, 1000];

/** Return the body of a GET; try again if the connection fails, as it does when a laptop changes its network. */
async function read(path, values, signal) {
  for (let failures = 0; ; failures += 1) {
    try {
      return await bodyOf(await request("GET", path + queryText(values), { signal }));
    } catch (error) {
      if (!(error instanceof Unreachable) || signal?.aborted || failures >= READ_PAUSES_MS.length) throw error;
    }
    await pause(READ_PAUSES_MS[failures]);
  }
}

async function bodyOf(response) {
  const text = await response.text().catch((error) => { throw error instanceof TypeError ? new Unreachable(error) : error; });
  return parseExact(text);
}

/** Return the `data` of a GET. */
export async function get(path, values = {}, signal) {
  return (await read(path, values, signal)).data;
}

/** Return if the key is valid, else throw ApiError. */
export async function checkKey(bearer) {
  await request("GET", "/v1/whoami", { bearer });
}

/** Return the `data` of a call that takes no key. */
export async function callWithoutKey(method, path, body) {
  return (await (await request(method, path, { body, bearer: null })).json()).data;
}

/** Return a page of a list: {data, pagination}. */
export async function list(path, values = {}, signal) {
  return read(path, values, signal);
}

/** Return the `data` of a POST, PUT, PATCH or DELETE; null after 204. */
export async function change(method, path, body, headers) {
  const response = await request(method, path, { body, headers });
  return response.status === 204 ? null : (await bodyOf(response)).data;
}

/** Return the bytes of an artifact of that size as a Blob; with a limit at most so many. */
export async function fetchBlob(path, size, signal, limit = Infinity) {
  // The API never redirects a range request to the bucket, which the page's CSP does not allow.
  const headers = size > 0 ? { Range: `bytes=0-${size > limit ? limit - 1 : ""}` } : {};
  return (await request("GET", path, { signal, headers, accept: "*/*" })).blob();
}

/** Return random bytes in hexadecimal; works without HTTPS too, unlike crypto.randomUUID. */
export function randomHex(bytes = 16) {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const RETRY_DELAYS_MS = [500, 1000, 2000, 4000, 8000, 15000];
// The service sends a heartbeat every 15 s. After a laptop sleeps, its connection is dead without an error.
const SILENCE_TIMEOUT_MS = 45000;
// A connection that lived this long counts as success: proxies may limit the duration of connections.
const STABLE_AFTER_MS = 10000;
// Messages that have arrived together are handled for so long at once, so that a click never waits for them.
const WORK_PER_TASK_MS = 5;

/** Return after the browser has handled what waits, such as a click. */
function nextTask() {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); done(); };
    port2.postMessage(null);
  });
}

/**
 * Follow an event stream: call `onMessage({type, id, data})` once for each message until `isLast(message)`.
 * Reconnect after the last message, with exponential back-off, as long as the page is open: it may have a form with input.
 */
export async function followStream(path, signal, onMessage, isLast) {
  try {
    await follow(path, signal, onMessage, isLast);
  } finally {
    setConnected(signal, true);
  }
}

async function follow(path, signal, onMessage, isLast) {
  let id = "";
  for (let failures = 0; ; failures += 1) {
    const openedAt = performance.now(), controller = new AbortController(), abort = () => controller.abort();
    let timer, silent = false;
    const resetTimer = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { silent = true; controller.abort(); }, SILENCE_TIMEOUT_MS);
    };
    signal.addEventListener("abort", abort);
    resetTimer();
    try {
      const headers = id ? { "Last-Event-ID": id } : {};
      const response = await request("GET", path, { headers, signal: controller.signal, accept: "text/event-stream" });
      setConnected(signal, true);
      if (response.status === 204) return;
      let until = performance.now() + WORK_PER_TASK_MS;
      for await (const message of messages(response.body, id, resetTimer)) {
        failures = 0;
        id = message.id;
        onMessage({ ...message, data: parseExact(message.data) });
        if (isLast(message)) return;
        if (performance.now() > until) {
          await nextTask();
          until = performance.now() + WORK_PER_TASK_MS;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      setConnected(signal, false);
      if (error instanceof ApiError && error.status < 500 && error.status !== 429 && error.status !== 408) throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
    if (!silent && performance.now() - openedAt > STABLE_AFTER_MS) failures = 0;
    if (signal.aborted) return;
    await new Promise((done) => { setTimeout(done, RETRY_DELAYS_MS[Math.min(failures, RETRY_DELAYS_MS.length - 1)]); });
  }
}
