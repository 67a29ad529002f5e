// The calls of the API. Errors are ApiError; a 401 ends the session.

import { end, key } from "./session.js";
import { messages } from "./stream.js";

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `the service answered ${status}`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
    this.details = body?.error?.details ?? {};
  }
}

async function send(method, path, { body, headers, signal, accept = "application/json", bearer = key() } = {}) {
  const given = { Authorization: `Bearer ${bearer}`, Accept: accept, ...headers };
  if (method !== "GET") given["Content-Type"] = "application/json";
  const response = await fetch(path, {
    method, headers: given, signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    body: method === "GET" || body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => null);
  if (response.status === 401 && bearer === key()) {
    end();
    dispatchEvent(new Event("signed-out"));
  }
  throw new ApiError(response.status, told);
}

function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** The `data` of a GET. */
export async function get(path, values = {}, signal) {
  return (await (await send("GET", path + query(values), { signal })).json()).data;
}

/** Returns if a key holds; throws ApiError. */
export async function prove(bearer) {
  await send("GET", "/v1/projects?per_page=1", { bearer });
}

/** A page of a list: {data, pagination}. */
export async function list(path, values = {}, signal) {
  return (await send("GET", path + query(values), { signal })).json();
}

/** The `data` of a POST, PUT or PATCH; null where there is none. */
export async function change(method, path, body, headers) {
  const response = await send(method, path, { body, headers });
  return response.status === 204 ? null : (await response.json()).data;
}

/** The bytes of an artifact of that size as a Blob. */
export async function blob(path, size, signal) {
  // A range is never answered by the address of another host, where the page's policy does not let it read.
  const headers = size > 0 ? { Range: "bytes=0-" } : {};
  return (await send("GET", path, { signal, headers, accept: "*/*" })).blob();
}

/** A text that nobody guesses, also where the page came without encryption. */
export function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PAUSES = [500, 1000, 2000, 4000, 8000, 15000];
// The service gives a sign of life every 15 s. A connection of a laptop that slept is dead, and does not say so.
const SILENCE = 45000;
// A proxy that ends every connection after some time is no failure.
const SOON = 10000;

/**
 * Follows a stream: `told({type, id, data})` for each message, each once, until `last(message)`.
 * What breaks off is opened again behind the last message, with growing pauses.
 */
export async function follow(path, signal, told, last) {
  let id = "";
  for (let failures = 0; ; failures += 1) {
    const opened = performance.now(), own = new AbortController(), leave = () => own.abort();
    let timer, silent = false;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { silent = true; own.abort(); }, SILENCE);
    };
    signal.addEventListener("abort", leave);
    alive();
    try {
      const headers = id ? { "Last-Event-ID": id } : {};
      const response = await send("GET", path, { headers, signal: own.signal, accept: "text/event-stream" });
      if (response.status === 204) return;
      for await (const message of messages(response.body, id, alive)) {
        failures = 0;
        id = message.id;
        told({ ...message, data: JSON.parse(message.data) });
        if (last(message)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status < 500 && error.status !== 429 && error.status !== 408) throw error;
      if (failures > 20) throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
    }
    if (!silent && performance.now() - opened > SOON) failures = 0;
    if (signal.aborted) return;
    await new Promise((done) => { setTimeout(done, PAUSES[Math.min(failures, PAUSES.length - 1)]); });
  }
}
