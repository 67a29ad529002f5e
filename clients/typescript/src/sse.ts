/** Server-sent events as text: pieces go in, whole messages come out (HTML standard, section 9.2). */

export interface Message {
  id: string;
  type: string;
  data: string;
}

/** Characters that one message may have; the service sends none as long. */
export const MOST = 8 * 1024 * 1024;

export class Parser {
  /** Milliseconds after which the service wants a reader to come back. */
  retry: number | undefined;
  #rest = "";
  #type = "";
  #data: string[] = [];
  #size = 0;

  constructor(public lastId: string) {}

  /** The messages that are whole with this piece. Throws a RangeError for one that never ends. */
  *push(piece: string): Generator<Message> {
    const text = this.#rest + piece;
    let start = 0;
    for (;;) {
      const end = nextEnd(text, start);
      if (end === undefined) break;
      const message = this.#take(text.slice(start, end.at));
      start = end.next;
      if (message) yield message;
    }
    this.#rest = text.slice(start);
    if (this.#rest.length + this.#size > MOST) throw new RangeError(`a message has more than ${MOST} characters`);
  }

  #take(line: string): Message | undefined {
    if (line === "") {
      const message = this.#data.length
        ? { id: this.lastId, type: this.#type || "message", data: this.#data.join("\n") }
        : undefined;
      this.#type = "";
      this.#data = [];
      this.#size = 0;
      return message;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) this.lastId = value;
    else if (name === "retry" && /^[0-9]{1,9}$/.test(value)) this.retry = Number(value);
    return undefined;
  }
}

/** Where the line ends and the next begins. A CR at the very end waits: an LF may belong to it. */
function nextEnd(text: string, start: number): { at: number; next: number } | undefined {
  const mark = /\r\n|\n|\r(?!$)/g;
  mark.lastIndex = start;
  const found = mark.exec(text);
  return found ? { at: found.index, next: found.index + found[0].length } : undefined;
}
