/** One Crewyard: the calls of the API, the streams, and the upload of archives. */

import createClient, { type Client } from "openapi-fetch";
import { type BuildEnd, Lines } from "./build.js";
import { broken, demand, errorOf, lost, parsed } from "./errors.js";
import { isLast, type RunEvent } from "./events.js";
import type { components, paths } from "./schema.js";
import { follow, type FollowOptions, type Where } from "./stream.js";

export interface Options {
  /** The installation's address. */
  url: string;
  /** An API key, or a token that the installation takes. */
  apiKey: string;
  /** Another fetch than the global one. */
  fetch?: typeof fetch;
}

export type Upload = components["schemas"]["Upload"];

export class Crewyard {
  /** All calls, typed: `crewyard.api.GET("/v1/runs/{id}", …)`. Their errors are values; see `ok`. */
  readonly api: Client<paths>;
  readonly #where: Where;

  constructor(options: Options) {
    const url = options.url.replace(/\/+$/, "");
    const authorization = { Authorization: `Bearer ${options.apiKey}` };
    // What can come as a stream comes as JSON where JSON is named.
    const headers = { ...authorization, Accept: "application/json, */*;q=0.5" };
    const chosen = options.fetch ?? fetch;
    // A browser's fetch must not be called as a method of something else.
    this.#where = { url, headers: authorization, fetch: (input, init) => chosen(input, init) };
    this.api = createClient<paths>({ baseUrl: url, headers, fetch: (request: Request) => chosen(steady(request)) });
    this.api.use({
      onResponse({ response, options }) {
        // A proxy's or a login's page comes with 200, too, and would fail as a broken JSON of unknown origin.
        if (response.ok && response.status !== 204 && options.parseAs === "json") demand(response, "json");
      },
    });
  }

  /** A run's events, the past ones first, to the last; it comes back by itself where the connection breaks. */
  async *followRun(id: string, options: FollowOptions = {}): AsyncGenerator<RunEvent> {
    const path = `/v1/runs/${encodeURIComponent(id)}/events`;
    for await (const { id: number, type, data } of follow(this.#where, path, isLast, options)) {
      yield { id: Number(number), type, data: parsed(data) as RunEvent["data"] };
    }
  }

  /** The lines of a build's log as they come, to the build's end, which the generator returns. */
  async *followBuildLog(id: string, options: FollowOptions = {}): AsyncGenerator<string, BuildEnd> {
    const path = `/v1/deployments/${encodeURIComponent(id)}/logs`;
    const ends = (message: { type: string }) => message.type === "end";
    const lines = new Lines();
    for await (const message of follow(this.#where, path, ends, options)) {
      const told = parsed(message.data);
      if (ends(message)) return told as BuildEnd;
      const line = lines.push(told as { message: string; continues?: boolean });
      if (line !== undefined) yield line;
    }
    throw lost("the service has nothing more of this log, and did not say how it ended");
  }

  /** Waits for a build's end, which it gives; each line of the log is told as it comes. */
  async waitForBuild(id: string, tell: (line: string) => void = () => {}, options: FollowOptions = {}): Promise<BuildEnd> {
    const log = this.followBuildLog(id, options);
    for (;;) {
      const step = await log.next();
      if (step.done) return step.value;
      tell(step.value);
    }
  }

  /** Sends an archive to the address that `POST /v1/uploads` gave; that is signed, no key goes along. */
  async sendUpload(upload: Upload, archive: Blob | ArrayBuffer | Uint8Array<ArrayBuffer>): Promise<void> {
    const { method, headers, upload_url } = upload;
    const response = await this.#where.fetch(upload_url, { method, headers, body: archive }).catch(unanswered);
    if (!response.ok) throw errorOf(response, await response.json().catch(() => undefined));
  }
}

/** What changes something goes where it was sent: fetch would follow a 301 or 302 with a GET. */
function steady(request: Request): Request {
  return request.method === "GET" ? request : new Request(request, { redirect: "manual" });
}

interface Answered {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/** A TypeError is what fetch throws where it reached nobody. */
function unanswered(problem: unknown): never {
  throw problem instanceof TypeError ? lost(problem) : problem instanceof SyntaxError ? broken(problem) : problem;
}

/** The body of an answer; throws a CrewyardError where it is a refusal, or where none came. */
export async function ok<T extends Answered>(answer: Promise<T>): Promise<Exclude<T["data"], undefined>> {
  const { data, error, response } = await answer.catch(unanswered);
  if (error !== undefined || !response.ok) throw errorOf(response, error);
  return data as Exclude<T["data"], undefined>;
}
