// Prints every message of an event stream as a line of JSON, in ASCII, until the server says that it is over.
// node read.mjs URL KEY TYPE...
import { EventSource } from "eventsource";

const [url, key, ...types] = process.argv.slice(2);
const ascii = (value) =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (letter) => "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"),
  );
const source = new EventSource(url, {
  fetch: (input, init) =>
    fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } }),
});
const take = (message) =>
  console.log(ascii({ id: message.lastEventId, type: message.type, data: JSON.parse(message.data) }));
for (const type of ["message", ...types]) source.addEventListener(type, take);
source.addEventListener("error", (error) => {
  if (source.readyState !== EventSource.CLOSED) return; // It connects again by itself.
  console.log(ascii({ closed: error.code }));
  process.exit(0);
});
