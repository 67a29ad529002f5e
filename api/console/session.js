// The API key: kept for this tab, until it is closed or signed out. Never in an address, never on disk.

const NAME = "crewyard.key";

/** The key, or null. */
export function key() {
  return sessionStorage.getItem(NAME);
}

/** Keeps a key. */
export function begin(text) {
  sessionStorage.setItem(NAME, text);
}

/** Forgets the key. */
export function end() {
  sessionStorage.removeItem(NAME);
}
