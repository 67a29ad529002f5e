// Runs first: reload the page if a file fails to load. Browsers abort requests when the machine's network changes,
// which may happen several times in a row. From the fourth time on an error says so; after the last pause it stays.

(() => {
  const RELOADS_KEY = "loaded-again";
  const RELOAD_PAUSES_MS = [0, 1000, 3000, 5000, 10000, 20000, 30000, 30000];
  const SILENT_RELOADS = 3;
  const LOAD_TIMEOUT_MS = 15000;
  let handled = false, message = null;

  function onMissing() {
    if (handled || isReady()) return;
    handled = true;
    const reloads = Number(sessionStorage.getItem(RELOADS_KEY)) || 0;
    if (reloads >= SILENT_RELOADS) showMessage(reloads < RELOAD_PAUSES_MS.length);
    if (reloads < RELOAD_PAUSES_MS.length) {
      sessionStorage.setItem(RELOADS_KEY, String(reloads + 1));
      setTimeout(reload, RELOAD_PAUSES_MS[reloads]);
    } else {
      sessionStorage.removeItem(RELOADS_KEY);
    }
    // A machine that was without a network has one again.
    addEventListener("online", reload);
  }

  function isReady() {
    return document.documentElement.dataset.ready;
  }

  function reload() {
    if (!isReady()) location.reload();
  }

  function showMessage(loadsAgain) {
    if (document.readyState === "loading") return void addEventListener("DOMContentLoaded", () => showMessage(loadsAgain));
    if (isReady()) return;
    message = document.createElement("p");
    message.setAttribute("role", "alert");
    message.textContent = `Parts of this page failed to load. ${loadsAgain ? "It is loaded again in some seconds."
      : "Reload it; if that does not help, the service or a proxy is unreachable."}`;
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
