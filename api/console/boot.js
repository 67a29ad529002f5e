// Runs first: reload the page if a file fails to load, three times at most, then show an error. Browsers abort
// requests when the machine's network changes, which may happen several times in a row.

(() => {
  const RELOADS_KEY = "loaded-again";
  const RELOAD_PAUSES_MS = [0, 1000, 3000];
  const LOAD_TIMEOUT_MS = 15000;
  let handled = false, message = null;

  function onMissing() {
    if (handled || document.documentElement.dataset.ready) return;
    handled = true;
    const reloads = Number(sessionStorage.getItem(RELOADS_KEY)) || 0;
    if (reloads < RELOAD_PAUSES_MS.length) {
      sessionStorage.setItem(RELOADS_KEY, String(reloads + 1));
      setTimeout(() => document.documentElement.dataset.ready || location.reload(), RELOAD_PAUSES_MS[reloads]);
      return;
    }
    sessionStorage.removeItem(RELOADS_KEY);
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", showMessage);
    else showMessage();
  }

  function showMessage() {
    message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = "Parts of this page failed to load. Reload it; if that does not help, the service or "
      + "a proxy is unreachable.";
    document.getElementById("main").append(message);
  }

  // A failed module or import fires `error` on its script element; such events do not bubble.
  addEventListener("error", (event) => {
    if (event.target instanceof HTMLElement) onMissing();
  }, true);
  addEventListener("load", () => setTimeout(onMissing, LOAD_TIMEOUT_MS));
  setTimeout(onMissing, 2 * LOAD_TIMEOUT_MS);
  addEventListener("ready", () => {
    document.documentElement.dataset.ready = "yes";
    message?.remove();
    sessionStorage.removeItem(RELOADS_KEY);
  }, { once: true });
})();
