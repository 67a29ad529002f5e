// The API key in sessionStorage: kept in this tab until it is closed or signed out. Never in a URL.

const NAME = "crewyard.key";

/** Return the key, or null. */
export function key() {
  return sessionStorage.getItem(NAME);
}

/** Store a key. */
export function saveKey(text) {
  sessionStorage.setItem(NAME, text);
}

/** Remove the key. */
export function removeKey() {
  sessionStorage.removeItem(NAME);
}
