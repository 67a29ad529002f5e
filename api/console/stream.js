// Server-Sent Events of a fetch: EventSource cannot send an Authorization header.

/** The messages of a body, in order: {type, id, data}; `alive` is called whenever something comes. */
export async function* messages(body, id = "", alive = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", type = "", data = [], last = id;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      text += value;
      const lines = text.split("\n");
      text = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { type: type || "message", id: last, data: data.join("\n") };
          type = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const rest = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") data.push(rest);
        else if (name === "event") type = rest;
        else if (name === "id") last = rest;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
