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

function isError(body: unknown): body is { error: Failure } {
  const told = (body as { error?: Partial<Failure> } | null | undefined)?.error;
  return typeof told?.code === "string" && typeof told.message === "string";
}
