// Parser of server-sent events for fetch: EventSource cannot send an Authorization header.

/** Yield the messages of a body in order: {type, id, data}. Call `onChunk` for each chunk received. */
export async function* messages(body, id = "", onChunk = () => {}) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", type = "", data = [], lastId = id;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onChunk();
      text += value;
      const lines = text.split("\n");
      text = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { type: type || "message", id: lastId, data: data.join("\n") };
          type = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const fieldValue = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") data.push(fieldValue);
        else if (field === "event") type = fieldValue;
        else if (field === "id") lastId = fieldValue;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
