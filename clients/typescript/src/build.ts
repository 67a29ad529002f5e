/** What a build's log says: lines, some of them in pieces, and how the build ended. */

import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** How a build ended: `active` or `superseded` where there is an image, else `failed` with the error. */
export interface BuildEnd {
  status: Schemas["Deployment"]["status"];
  error?: Schemas["BuildError"];
}

/** Characters of a line above which it is given in pieces. */
const LONGEST = 8 * 1024 * 1024;

/** Puts together the lines that came in several messages. */
export class Lines {
  #begun = "";

  /** The line that is whole with this piece. */
  push(piece: { message: string; continues?: boolean }): string | undefined {
    const line = this.#begun + piece.message;
    const whole = !piece.continues || line.length > LONGEST;
    this.#begun = whole ? "" : line;
    return whole ? line : undefined;
  }
}
