// Before everything else: a page whose files did not all come is loaded once more, and then says so.

(() => {
  const AGAIN = "loaded-again";
  const PATIENCE = 15000;
  let given = false, said = null;

  function missing() {
    if (given || document.documentElement.dataset.ready) return;
    given = true;
    if (!sessionStorage.getItem(AGAIN)) {
      sessionStorage.setItem(AGAIN, "yes");
      location.reload();
      return;
    }
    sessionStorage.removeItem(AGAIN);
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", say);
    else say();
  }

  function say() {
    said = document.createElement("p");
    said.setAttribute("role", "alert");
    said.textContent = "Parts of this page did not arrive. Load it again; if that does not help, the service or "
      + "what lies between cannot be reached.";
    document.getElementById("main").append(said);
  }

  // Of a module that fails, or of one it needs, the element tells; such events do not bubble.
  addEventListener("error", (event) => {
    if (event.target instanceof HTMLElement) missing();
  }, true);
  addEventListener("load", () => setTimeout(missing, PATIENCE));
  setTimeout(missing, 2 * PATIENCE);
  addEventListener("ready", () => {
    document.documentElement.dataset.ready = "yes";
    said?.remove();
    sessionStorage.removeItem(AGAIN);
  }, { once: true });
})();
