/** Follows an event stream to its end, over broken connections: from the last message that arrived. */

import { CrewyardError, demand, errorOf, lost } from "./errors.js";
import { type Message, Parser } from "./sse.js";

/** A keep-alive comes every 15 s: a connection that is silent for longer than this is broken. */
const SILENCE = 60_000;
/** A connection that lasts this long worked, even without messages: proxies cut idle streams. */
const STABLE = 10_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30_000;

export interface FollowOptions {
  /** The id of the last event that is known already. */
  after?: number | string;
  /** Ends the following; its reason is thrown. */
  signal?: AbortSignal;
  /** How often in a row it may fail within 10 s, without a message between, before the last failure is thrown. */
  attempts?: number;
}

export interface Where {
  url: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
}

/** The messages to the one that `ends`, or until the service says that there are no more. */
export async function* follow(
  where: Where,
  path: string,
  ends: (message: Message) => boolean,
  options: FollowOptions = {},
): AsyncGenerator<Message> {
  const { signal, attempts = 10 } = options;
  let lastId = String(options.after ?? "");
  let retry = FIRST_PAUSE;
  for (let failures = 0; ; ) {
    let problem = new CrewyardError(0, "connection_lost", "the event stream ended before its last event");
    const attempt = new Attempt(signal);
    let opened: number | undefined;
    try {
      const response = await open(where, path, lastId, attempt.signal);
      if (response.status === 204 || response.body === null) return;
      opened = performance.now();
      const parser = new Parser(lastId);
      for await (const piece of pieces(response.body)) {
        attempt.heard();
        for (const message of parser.push(piece)) {
          lastId = message.id;
          failures = 0;
          yield message;
          if (ends(message)) return;
        }
        retry = parser.retry ?? retry;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (attempt.signal.aborted) opened = undefined; // silent: its age does not count
      if (error instanceof RangeError) throw error;
      if (error instanceof CrewyardError && !error.passing) throw error;
      problem = error instanceof CrewyardError ? error : lost(error);
    } finally {
      attempt.end();
    }
    if (opened !== undefined && performance.now() - opened >= STABLE) failures = 0;
    failures += 1;
    if (failures > attempts) throw problem;
    await sleep(pause(failures, retry, problem.retryAfter), signal);
  }
}

/** Milliseconds: doubling, half of it by chance, and never sooner than the service asked. */
function pause(failures: number, retry: number, retryAfter: number | undefined): number {
  const whole = Math.min(LONGEST_PAUSE, retry * 2 ** Math.min(failures - 1, 16));
  return Math.max(whole / 2 + (Math.random() * whole) / 2, (retryAfter ?? 0) * 1000);
}

async function open(where: Where, path: string, lastId: string, signal: AbortSignal): Promise<Response> {
  const headers = { ...where.headers, Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) };
  const response = await where.fetch(where.url + path, { headers, signal });
  if (response.ok) {
    if (response.status !== 204) demand(response, "event-stream");
    return response;
  }
  throw errorOf(response, await response.json().catch(() => undefined));
}

async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}

/** One connection: aborted by the caller, by silence, and at its end. */
class Attempt {
  readonly #controller = new AbortController();
  readonly #give_up = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly outer: AbortSignal | undefined) {
    outer?.throwIfAborted();
    outer?.addEventListener("abort", this.#give_up);
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#give_up, SILENCE);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.outer?.removeEventListener("abort", this.#give_up);
    this.#controller.abort();
  }
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const wake = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", wake);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", wake, { once: true });
  });
}
