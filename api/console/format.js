// Numbers and moments as people read them.

/** How long ago a moment of the API was. */
export function ago(text) {
  if (!text) return "–";
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(text)) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} days ago`;
}

/** A duration of the API. */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A number of bytes. */
export function size(bytes) {
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1024 || unit === "GiB") return `${unit === "B" ? amount : amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return "";
}

/** The time of day of a moment. */
export function clock(text) {
  const moment = new Date(text);
  return Number.isNaN(moment.getTime()) ? "" : moment.toLocaleTimeString([], { hour12: false });
}

/** Any value on one line, cut where it is long. */
export function short(value, most = 300) {
  const text = (typeof value === "string" ? value : JSON.stringify(value) ?? "").replace(/\s+/g, " ").trim();
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Any value as text to be read. */
export function whole(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
