/** What the service refuses, and what stands between it and the caller. */

import type { components } from "./schema.js";

export type Failure = components["schemas"]["Failure"];

/** An answer with 4xx or 5xx. `code` is the stable word to branch on; status 0: no answer came at all. */
export class CrewyardError extends Error {
  override readonly name = "CrewyardError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
    /** Finds the request in the log of the service. */
    readonly requestId: string | undefined = undefined,
    /** Seconds after which the service asks to be called again. */
    readonly retryAfter: number | undefined = undefined,
  ) {
    super(message);
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** The error of an answer, from its body if that is one of ours. */
export function errorOf(response: Response, body: unknown): CrewyardError {
  const told = isError(body) ? body.error : undefined;
  const moved = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  return new CrewyardError(
    response.status,
    told?.code ?? (moved ? "redirected" : "unknown"),
    told?.message ?? (moved ? elsewhere(response) : `the service answered ${response.status} ${response.statusText}`.trim()),
    told?.details ?? {},
    response.headers.get("X-Request-Id") ?? undefined,
    Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined,
  );
}

function elsewhere(response: Response): string {
  const place = response.headers.get("Location");
  return `the answer is a redirect${place ? ` to ${place}` : ""}: make the client with the address that it leads to`;
}

/** The error of a call or a stream that got no answer, or not all of it. */
export function lost(problem: unknown): CrewyardError {
  const said = (one: unknown) => (one instanceof Error ? one.message : String(one));
  const cause = problem instanceof Error && problem.cause ? ` (${said(problem.cause)})` : "";
  const error = new CrewyardError(0, "connection_lost", `the connection broke: ${said(problem)}${cause}`);
  error.cause = problem;
  return error;
}

/** Throws where a good answer is none of the service: the page of a proxy or a login, or what another server has there. */
export function demand(response: Response, kind: "json" | "event-stream"): void {
  const type = (response.headers.get("Content-Type") ?? "").toLowerCase();
  if (type.includes(kind)) return;
  void response.body?.cancel().catch(() => undefined);
  const place = response.url ? new URL(response.url).host : "the service";
  throw new CrewyardError(
    response.status,
    "foreign_answer",
    `${place} answers with ${type || "nothing of a known type"} where ${kind} is expected; is the address right, and does no login stand before it?`,
    {},
    response.headers.get("X-Request-Id") ?? undefined,
  );
}

/** The error of an answer whose JSON is none. */
export function broken(problem: SyntaxError): CrewyardError {
  const error = new CrewyardError(200, "foreign_answer", `the answer is no JSON: ${problem.message}; is the address right?`);
  error.cause = problem;
  return error;
}

/** The JSON of a message; throws a CrewyardError where it is none. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (problem) {
    throw problem instanceof SyntaxError ? broken(problem) : problem;
  }
}

function isError(body: unknown): body is { error: Failure } {
  const told = (body as { error?: Partial<Failure> } | null | undefined)?.error;
  return typeof told?.code === "string" && typeof told.message === "string";
}
