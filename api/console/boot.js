// Runs first: reload the page once if a file fails to load, then show an error.

(() => {
  const RELOADED_KEY = "loaded-again";
  const LOAD_TIMEOUT_MS = 15000;
  let handled = false, message = null;

  function onMissing() {
    if (handled || document.documentElement.dataset.ready) return;
    handled = true;
    if (!sessionStorage.getItem(RELOADED_KEY)) {
      sessionStorage.setItem(RELOADED_KEY, "yes");
      location.reload();
      return;
    }
    sessionStorage.removeItem(RELOADED_KEY);
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
    sessionStorage.removeItem(RELOADED_KEY);
  }, { once: true });
})();
