// Whether the service answers: streams tell it, the page says so while they reconnect.

const lost = new Set();

/** Say that a stream has lost the service, or has it again. */
export function setConnected(stream, connected) {
  if (connected) lost.delete(stream);
  else lost.add(stream);
  const note = document.getElementById("connection");
  const text = lost.size ? "The connection to the service is lost. Reconnecting…" : "";
  if (note && note.textContent !== text) note.textContent = text;
}
