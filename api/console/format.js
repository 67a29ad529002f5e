// Formats numbers and times.

/** Format the time since a timestamp of the API. */
export function ago(text) {
  if (!text) return "–";
  const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(text)) / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86400)} days ago`;
}

/** Format the time until a timestamp of the API. */
export function until(text) {
  const seconds = Math.ceil((Date.parse(text) - Date.now()) / 1000);
  if (seconds <= 0) return "now";
  if (seconds < 120) return `in ${seconds} s`;
  if (seconds < 7200) return `in ${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `in ${Math.floor(seconds / 3600)} h` : `in ${Math.floor(seconds / 86400)} days`;
}

/** Format why a run or a deployment waits. */
export function waitingText(cause) {
  return cause && [cause.reason, cause.message, cause.since && `since ${ago(cause.since)}`].filter(Boolean).join(" · ");
}

/** Format a duration of the API. */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Format a number of bytes. */
export function size(bytes) {
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1024 || unit === "GiB") return `${unit === "B" ? amount : amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return "";
}

const SMALLEST_AMOUNT = 0.0001;

/** Format an amount of money, below 0.1 with four digits, as a run costs little; none without prices. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return null;
  const digits = amount && amount < 0.1 ? 4 : 2, isTiny = amount > 0 && amount < SMALLEST_AMOUNT;
  const text = Math.max(amount, isTiny ? SMALLEST_AMOUNT : 0).toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${isTiny ? "< " : ""}${text} ${currency}`;
}

/** Return values as the query of a URL, with its question mark; empty without a value. */
export function queryText(values) {
  const entries = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return entries.length ? `?${new URLSearchParams(entries)}` : "";
}

/** Format the time of day of a timestamp. */
export function timeOfDay(text) {
  const time = new Date(text);
  // Far cheaper than toLocaleTimeString, and a list has thousands of them.
  return Number.isNaN(time.getTime()) ? "" : time.toTimeString().slice(0, 8);
}

/** Format any value on one line, truncated. */
export function shorten(value, maxLength = 300) {
  const text = (typeof value === "string" ? value : JSON.stringify(value) ?? "").replace(/\s+/g, " ").trim();
  return text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text;
}

/** Format any value as indented text. */
export function formatValue(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Format labels as one line; null without one. */
export function labelsText(labels) {
  return Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`).join(", ") || null;
}
